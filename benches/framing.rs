//! Reading heads: our framing against the codec of monoio-http, the yardstick (decision 1).

use std::hint::black_box;

use bytes::BytesMut;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use monoio_codec::Decoder as _;
use monoio_http::h1::codec::decoder::{RequestHeadDecoder, ResponseHeadDecoder};
use ringgate::http::head::{EndFinder, Method, read_request, read_response};
use ringgate::limits::Limits;

const REQUEST: &[u8] = b"POST /mcp HTTP/1.1\r\nHost: mcp.example:8080\r\n\
    Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
    MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n\
    User-Agent: client/1.0\r\nAccept-Encoding: gzip, deflate\r\nContent-Length: 206\r\n\r\n";

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
    Date: Tue, 01 Dec 2026 00:00:00 GMT\r\nCache-Control: no-cache\r\n\
    Connection: keep-alive\r\nContent-Length: 1024\r\n\r\n";

fn heads(criterion: &mut Criterion) {
    let limits = Limits::default();
    let mut group = criterion.benchmark_group("request head");
    group.throughput(Throughput::Bytes(REQUEST.len() as u64));
    group.bench_function("own", |bencher| {
        bencher.iter(|| {
            let bytes = EndFinder::default().find(black_box(REQUEST), limits.head_bytes_max);
            let bytes = bytes.expect("it is sound").expect("it is whole");
            read_request(&REQUEST[..bytes], &limits).expect("it is valid")
        });
    });
    group.bench_function("monoio-http", |bencher| {
        bencher.iter(|| {
            let mut buffer = BytesMut::from(black_box(REQUEST));
            RequestHeadDecoder.decode(&mut buffer).expect("it is valid")
        });
    });
    group.finish();
    let mut group = criterion.benchmark_group("response head");
    group.throughput(Throughput::Bytes(RESPONSE.len() as u64));
    group.bench_function("own", |bencher| {
        bencher.iter(|| {
            let bytes = EndFinder::default().find(black_box(RESPONSE), limits.head_bytes_max);
            let bytes = bytes.expect("it is sound").expect("it is whole");
            read_response(&RESPONSE[..bytes], Method::Post, &limits).expect("it is valid")
        });
    });
    group.bench_function("monoio-http", |bencher| {
        bencher.iter(|| {
            let mut buffer = BytesMut::from(black_box(RESPONSE));
            ResponseHeadDecoder.decode(&mut buffer).expect("it is valid")
        });
    });
    group.finish();
}

criterion_group!(benches, heads);
criterion_main!(benches);
