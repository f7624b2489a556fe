//! Reading messages: the check of an answer and the classification of a request, and what a parse of
//! the same bytes without any rule costs.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ringgate::ids::RequestId;
use ringgate::mcp::headers::Mirrored;
use ringgate::mcp::request::{classify, read};
use ringgate::mcp::response::{Asked, Awaited, Carrier, Checker};

const DEPTH: usize = 128;

fn answer(text_bytes: usize) -> Vec<u8> {
    let text = "The quick brown fox jumps over the lazy dog.\\n".repeat(text_bytes / 46 + 1);
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
    .into_bytes()
}

fn answers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("answer");
    for size in [1_024, 65_536] {
        let body = answer(size);
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_with_input(BenchmarkId::new("checker", size), &body, |bencher, body| {
            bencher.iter(|| {
                let mut awaited = Awaited::new(Asked::One(RequestId::from_token(b"1")));
                let mut checker = Checker::new(Carrier::Body, DEPTH);
                checker.push(black_box(body), &awaited).expect("it is valid");
                checker.finish(&mut awaited).expect("it is valid")
            });
        });
        group.bench_with_input(BenchmarkId::new("serde_json", size), &body, |bencher, body| {
            bencher
                .iter(|| serde_json::from_slice::<&serde_json::value::RawValue>(black_box(body)));
        });
    }
    group.finish();
}

fn requests(criterion: &mut Criterion) {
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo",
        "arguments":{"text":"hello"},"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let mirrored = Mirrored {
        protocol_version: Some(b"2026-07-28"),
        method: Some(b"tools/call"),
        name: Some(b"echo"),
        params: &[],
    };
    let mut group = criterion.benchmark_group("request");
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function("read and classify", |bencher| {
        bencher.iter(|| {
            let message = read(black_box(body), DEPTH).expect("it is valid");
            classify(message, &mirrored).expect("it is valid")
        });
    });
    group.finish();
}

criterion_group!(benches, answers, requests);
criterion_main!(benches);
