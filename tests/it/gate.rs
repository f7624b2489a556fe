//! What the head of a request decides, on the wire: methods, hosts and origins (RC-3, HT-5).

use crate::support::client::{Answer, bare, exchange, post};
use crate::support::pod::{Pod, json};
use crate::support::process::Ringgate;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const PONG: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const MODERN: &str = "MCP-Protocol-Version: 2026-07-28\r\n";

/// A request with this host in place of the usual one.
fn with_host(host: &str, fields: &str) -> String {
    bare("GET", fields).replace("Host: localhost", &format!("Host: {host}"))
}

fn origin(origin: &str) -> String {
    format!("Origin: {origin}\r\n")
}

/// Asserts that a request was served by the pod, or refused by the proxy with the fault alone.
fn assert_served(pod: &Pod, answer: &Answer, refusal: Option<(u16, &str)>, request: &str) {
    let Some((status, reason)) = refusal else {
        assert_eq!((answer.status, answer.fault()), (200, None), "{request:?}");
        pod.received();
        return;
    };
    assert_eq!((answer.status, answer.fault()), (status, Some(reason)), "{request:?}");
    pod.assert_untouched();
}

/// RC-3: GET, HEAD and DELETE of the stateless revision are refused with what is allowed, from the
/// head alone; with `--stateless` those of any client are.
#[test]
fn methods_of_the_stateless_revision() {
    let pod = Pod::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let check = |flags: &[&str], fields: &str, is_refused: bool| {
        let proxy = Ringgate::before(pod.address(), flags);
        for method in ["GET", "HEAD", "DELETE", "OPTIONS", "PUT"] {
            let request = bare(method, fields);
            let mut client = crate::support::client::Client::connect(proxy.address());
            client.send(&request);
            let answer = if method == "HEAD" { client.head() } else { client.answer() };
            let is_gated = matches!(method, "GET" | "HEAD" | "DELETE");
            let refusal = (is_refused && is_gated).then_some((405, "method_not_allowed"));
            assert_served(&pod, &answer, refusal, &request);
            let allow = refusal.map(|_| "POST, OPTIONS");
            assert_eq!(answer.value("Allow"), allow, "{request:?}");
            // The refusal leaves the connection usable, HEAD's without a body.
            client.send(bare("PUT", ""));
            assert_eq!(client.answer().status, 200, "{request:?}");
            pod.received();
        }
    };
    check(&[], "", false);
    check(&[], "MCP-Protocol-Version: 2025-11-25\r\n", false);
    check(&[], MODERN, true);
    check(&["--stateless"], "", true);
    check(&["--stateless"], MODERN, true);
    check(&["--stateless"], "MCP-Protocol-Version: 2025-06-18\r\n", true);
}

/// RC-3: the gate comes before anything else: neither a session nor a host or a body changes it.
#[test]
fn the_method_gate_comes_first() {
    let pod = Pod::answering(json(PONG));
    let proxy = Ringgate::before(pod.address(), &["--max-request-bytes", "10"]);
    let check = |request: &str| {
        let answer = exchange(proxy.address(), request);
        assert_served(&pod, &answer, Some((405, "method_not_allowed")), request);
    };
    check(&bare("GET", &format!("{MODERN}Mcp-Session-Id: no-such\r\n")));
    check(&with_host("evil.example", MODERN));
    check(&bare("DELETE", &format!("{MODERN}Content-Length: 99\r\n")));
}

/// HT-5: which Host fields are served: by default loopback names on a loopback listener and all on
/// another, else those listed. The pod gets the field as it came.
#[test]
fn hosts_are_checked() {
    let pod = Pod::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let upstream = format!("http://{}", pod.address());
    let check = |listen: &str, allowed: &[&str], served: &[&str], refused: &[&str]| {
        let mut flags = vec!["--listen", listen, "--upstream", &upstream];
        for host in allowed {
            flags.extend(["--allowed-host", host]);
        }
        let proxy = Ringgate::start_under(&[], &flags);
        for host in served {
            let answer = exchange(proxy.address(), with_host(host, ""));
            assert_eq!(answer.status, 200, "{host} with {allowed:?}");
            assert_eq!(pod.received().value("Host"), Some(*host));
        }
        for host in refused {
            let answer = exchange(proxy.address(), with_host(host, ""));
            let refusal = Some((403, "host_forbidden"));
            assert_served(&pod, &answer, refusal, host);
        }
    };
    let own = ["localhost", "LOCALHOST:1", "127.0.0.1:8080", "[::1]:80"];
    let foreign = ["evil.example", "localhost.evil.example", "127.0.0.1.evil", "10.0.0.1"];
    let loopback = "127.0.0.1:0";
    check(loopback, &[], &own, &foreign);
    check("0.0.0.0:0", &[], &[&own[..], &foreign].concat(), &[]);
    check(loopback, &["*"], &[&own[..], &foreign].concat(), &[]);
    let listed = ["mcp.example", "other.example:8443"];
    let served = ["mcp.example", "MCP.example:443", "other.example:8443"];
    let refused = ["localhost", "other.example", "other.example:1", "a.mcp.example"];
    check(loopback, &listed, &served, &refused);
    check("0.0.0.0:0", &listed, &served, &refused);
}

/// HT-5: which Origin fields are served, of requests and of preflights alike; `null` and what only
/// looks allowed are not.
#[test]
fn origins_are_checked() {
    let pod = Pod::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let upstream = format!("http://{}", pod.address());
    let check = |listen: &str, allowed: &[&str], served: &[&str], refused: &[&str]| {
        let mut flags = vec!["--listen", listen, "--upstream", &upstream];
        for origin in allowed {
            flags.extend(["--allowed-origin", origin]);
        }
        let proxy = Ringgate::start_under(&[], &flags);
        let preflight = |name: &str| {
            let fields = format!("{}Access-Control-Request-Method: POST\r\n", origin(name));
            exchange(proxy.address(), bare("OPTIONS", &fields))
        };
        for name in served {
            let answer = exchange(proxy.address(), bare("GET", &origin(name)));
            assert_served(&pod, &answer, None, name);
            let shared = answer.value("Access-Control-Allow-Origin");
            assert_eq!(shared, Some(*name), "with {allowed:?}");
            let answer = preflight(name);
            assert_eq!((answer.status, answer.fault()), (204, None), "{name}");
            pod.assert_untouched();
        }
        for name in refused {
            let refusal = Some((403, "origin_forbidden"));
            for answer in [
                exchange(proxy.address(), bare("GET", &origin(name))),
                exchange(proxy.address(), post(PING, &origin(name))),
                preflight(name),
            ] {
                assert_served(&pod, &answer, refusal, name);
                assert_eq!(answer.value("Access-Control-Allow-Origin"), None, "{name}");
            }
        }
        // What no browser sends needs no leave.
        let answer = exchange(proxy.address(), bare("GET", ""));
        assert_served(&pod, &answer, None, "no origin");
        assert_eq!(answer.value("Access-Control-Allow-Origin"), None);
    };
    let own = ["http://localhost:6274", "https://127.0.0.1", "http://[::1]:1"];
    let foreign = ["null", "https://evil.example", "http://localhost.evil", "localhost"];
    let loopback = "127.0.0.1:0";
    check(loopback, &[], &own, &foreign);
    check("0.0.0.0:0", &[], &[], &[&own[..], &foreign].concat());
    check(loopback, &["*"], &[&own[..], &foreign].concat(), &[]);
    let listed = ["https://app.example", "http://other.example:81"];
    let refused = ["https://app.example:444", "http://app.example", "http://localhost", "null"];
    check(loopback, &listed, &listed, &refused);
}

/// HT-5: the preflight of an allowed origin is answered by the proxy: which methods and fields, and
/// for how long. Other OPTIONS requests go to the pod.
#[test]
fn preflights_are_answered() {
    let pod = Pod::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let proxy = Ringgate::before(pod.address(), &[]);
    let page = origin("http://localhost:6274");
    let asking = format!("{page}Access-Control-Request-Method: POST\r\n");
    let answer = exchange(proxy.address(), bare("OPTIONS", &asking));
    assert_eq!(answer.status, 204);
    pod.assert_untouched();
    let allows = |name: &str, part: &str| {
        let value = answer.value(name).unwrap_or_default();
        let is_listed = value.split(',').any(|item| item.trim().eq_ignore_ascii_case(part));
        assert!(is_listed, "{name} lacks {part}: {answer:?}");
    };
    for method in ["POST", "GET", "DELETE"] {
        allows("Access-Control-Allow-Methods", method);
    }
    let names = [
        "Content-Type",
        "Authorization",
        "MCP-Protocol-Version",
        "Mcp-Session-Id",
        "Mcp-Method",
        "Mcp-Name",
        "Last-Event-ID",
    ];
    for name in names {
        allows("Access-Control-Allow-Headers", name);
    }
    allows("Vary", "Origin");
    assert!(answer.value("Access-Control-Max-Age").is_some());
    for fields in ["", &page, "Access-Control-Request-Method: POST\r\n"] {
        let request = bare("OPTIONS", fields);
        let answer = exchange(proxy.address(), &request);
        assert_served(&pod, &answer, None, &request);
    }
}

/// HT-5: a page may read the session id of an answer, and what the pod says of sharing is replaced;
/// faults can be read too. Without an Origin the pod's fields travel on.
#[test]
fn answers_are_shared_by_the_proxy_alone() {
    let fields = "Access-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: X-Pod\r\n\
                  Access-Control-Allow-Credentials: true\r\nMcp-Session-Id: abc\r\n";
    let pods = json(PONG).replace("\r\nContent-Type", &format!("\r\n{fields}Content-Type"));
    let pod = Pod::answering(pods);
    let proxy = Ringgate::before(pod.address(), &[]);
    let values = |answer: &Answer, name: &str| {
        let lines = answer.head.lines().skip(1).filter_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        });
        lines.collect::<Vec<String>>()
    };
    let page = "http://localhost:6274";
    let check = |answer: &Answer| {
        assert_eq!(values(answer, "Access-Control-Allow-Origin"), [page]);
        assert!(values(answer, "Access-Control-Allow-Credentials").is_empty());
        let exposed = values(answer, "Access-Control-Expose-Headers").join(",");
        assert!(exposed.contains("Mcp-Session-Id"), "{exposed}");
        assert!(!exposed.contains("X-Pod"), "{exposed}");
    };
    let answer = exchange(proxy.address(), post(PING, &origin(page)));
    assert_eq!((answer.status, answer.body.as_str()), (200, PONG));
    assert_eq!(answer.value("Mcp-Session-Id"), Some("abc"));
    check(&answer);
    let fault = exchange(
        proxy.address(),
        post(PING, &format!("{}Mcp-Session-Id: no-such\r\n", origin(page))),
    );
    assert_eq!(fault.status, 404);
    check(&fault);
    let answer = exchange(proxy.address(), post(PING, ""));
    assert_eq!(values(&answer, "Access-Control-Allow-Origin"), ["*"]);
    assert_eq!(values(&answer, "Access-Control-Expose-Headers"), ["X-Pod"]);
}
