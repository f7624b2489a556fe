//! Answers that were seen to hang or kill deployed clients, or that look as if they could, and
//! what becomes of each. Tests only.

use super::response::{Asked, Awaited, Carrier, Checker};
use super::stream::{End, EventStream};
use crate::ids::RequestId;
use crate::limits::Limits;

const GOOD: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","#,
    r#""content":[{"type":"text","text":"hi"}]}}"#
);

fn good(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "the case differs from the good answer");
    GOOD.replacen(from, to, 1)
}

fn good_and(more: &str) -> String {
    good("]}}", &format!("]}}{more}}}"))
}

fn error(id: &str, code: &str, more: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0"{id},"error":{{"code":{code},"message":"boom"{more}}}}}"#)
}

fn usual_error() -> String {
    error(",\"id\":1", "-32000", "")
}

fn event(data: &str) -> String {
    format!("event: message\ndata: {data}\n\n")
}

fn awaited() -> Awaited {
    Awaited::new(Asked::One(RequestId::from_token(b"1")))
}

fn check_body(case: &str, body: &str, expected: &str) {
    let mut awaited = awaited();
    let mut checker = Checker::new(Carrier::Body, Limits::default().json_depth_max);
    let pushed = checker.push(body.as_bytes(), &awaited);
    let told = match pushed.and_then(|()| checker.finish(&mut awaited)) {
        Ok(_) => "valid",
        Err(refusal) => refusal.why.label(),
    };
    assert_eq!(told, expected, "{case}: {body}");
    assert_eq!(awaited.is_answered(), told == "valid", "{case}");
}

fn check_events(case: &str, stream: &str, expected: &str) {
    let mut events = EventStream::new(awaited(), &Limits::default());
    let told = match (events.push(stream.as_bytes()).refusal, events.finish()) {
        (Some(refusal), _) => refusal.why.label(),
        (None, End::Answered) => "valid",
        (None, End::Resumable) => "resumable",
        (None, End::Unanswered) => "unanswered",
    };
    assert_eq!(told, expected, "{case}: {stream}");
}

/// RV-1, RV-3: bodies.
#[test]
fn bodies() {
    check_body("no-resulttype", r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#, "valid");
    check_body("unknown-resulttype", &good("complete", "zzz"), "valid");
    check_body("ok-json", GOOD, "valid");
    check_body("err200", &usual_error(), "valid");
    check_body("err200-idnull", &error(",\"id\":null", "-32000", ""), "error_without_id");
    check_body("err200-noid", &error("", "-32000", ""), "error_without_id");
    let extra = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"boom"},"x":1}"#;
    check_body("err200-extra-top", extra, "valid");
    check_body("err200-extra-in-error", &error(",\"id\":1", "-32000", ",\"x\":1"), "valid");
    check_body("ok-extra-top", &good_and(",\"x\":1"), "valid");
    let both = good_and(r#","error":{"code":1,"message":"m"}"#);
    check_body("both-result-error", &both, "result_and_error");
    check_body("result-and-error-null", &good_and(",\"error\":null"), "result_and_error");
    check_body("missing-jsonrpc", r#"{"id":1,"result":{"content":[]}}"#, "version_missing");
    check_body("jsonrpc-1.0", &good("\"2.0\"", "\"1.0\""), "version_wrong");
}

/// RV-1, RV-2, RV-3: bodies that differ in an id, in an error or around the object.
#[test]
fn bodies_in_detail() {
    check_body("id-as-string", &good("1", "\"1\""), "id_not_asked");
    check_body("id-float-text", &good("1", "1.0"), "id_not_asked");
    check_body("id-wrong", &good("1", "99999"), "id_not_asked");
    check_body("id-null-result", &good("1", "null"), "id_invalid");
    check_body("code-float", &error(",\"id\":1", "1.5", ""), "error_code_invalid");
    check_body("code-string", &error(",\"id\":1", "\"x\"", ""), "error_code_invalid");
    check_body("code-huge", &error(",\"id\":1", "12345678901234567890", ""), "valid");
    let without_message = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000}}"#;
    check_body("msg-missing", without_message, "error_message_missing");
    check_body("result-null", r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "result_not_object");
    check_body("result-array", r#"{"jsonrpc":"2.0","id":1,"result":[]}"#, "result_not_object");
    check_body("batch1", &format!("[{GOOD}]"), "array_not_asked");
    check_body("empty-array", "[]", "array_not_asked");
    check_body("dup-id-last-right", &good("\"id\":1", "\"id\":99999,\"id\":1"), "key_duplicated");
    check_body("dup-id-first-right", &good("\"id\":1", "\"id\":1,\"id\":99999"), "key_duplicated");
    check_body("trailing-garbage", &format!("{GOOD} {{}}"), "json_trailing");
    check_body("bom", &format!("\u{FEFF}{GOOD}"), "json_unexpected");
    check_body("ct-html", "<html>x</html>", "json_unexpected");
    check_body("empty200", "", "json_truncated");
    check_body("truncated", GOOD.get(..50).expect("it is longer"), "json_truncated");
}

/// RV-4: cases told apart by their head; where the head makes them be checked, this is the verdict.
#[test]
fn heads() {
    for case in
        ["ct-text", "ct-none", "ct-charset", "ct-json-rpc", "ct-upper", "201-json", "gzip-bad"]
    {
        check_body(case, GOOD, "valid");
    }
    for case in [
        "400-json",
        "400-32020",
        "403-json",
        "404-json",
        "404-session",
        "413-json",
        "429-json",
        "500-json",
        "502-json",
        "503-json",
        "504-json",
    ] {
        check_body(case, &usual_error(), "valid");
    }
    for case in ["400-json-noid", "401", "405", "415", "502-json-noid"] {
        check_body(case, &error("", "-32000", ""), "error_without_id");
    }
    for (case, body) in [("400-text", "nope"), ("404-text", "nf"), ("502-text", "bad gateway")] {
        check_body(case, body, "json_unexpected");
    }
    for case in ["202", "204", "reset"] {
        check_body(case, "", "json_truncated");
    }
}

/// RV-5: event streams.
#[test]
fn streams() {
    check_events("ok-sse", &event(GOOD), "valid");
    check_events("sse-err", &event(&usual_error()), "valid");
    check_events("sse-err-noid", &event(&error("", "-32000", "")), "error_without_id");
    let null = error(",\"id\":null", "-32000", "");
    check_events("sse-err-idnull", &event(&null), "error_without_id");
    check_events("sse-bare-json", &format!("{GOOD}\n"), "unanswered");
    let garbage = format!("event: message\ndata: {{oops\n\n{}", event(GOOD));
    check_events("sse-garbage-then-ok", &garbage, "json_unexpected");
    check_events("sse-garbage-only", "data: {oops\n\n", "json_unexpected");
    check_events("sse-close-early", ": hi\n\n", "unanswered");
    check_events("sse-prime-close", "id: e1\nretry: 100\ndata: \n\n", "resumable");
    let lines = good("\"2.0\",", "\"2.0\",\ndata: ");
    check_events("sse-multiline", &format!("data: {lines}\n\n"), "valid");
    let returns = format!(": c\r\nevent: message\r\ndata: {GOOD}\r\n\r\n");
    check_events("sse-crlf", &returns, "valid");
    check_events("sse-no-event-field", &format!("data: {GOOD}\n\n"), "valid");
    check_events("sse-no-space", &format!("data:{GOOD}\n\n"), "valid");
    let other = format!("event: error\ndata: {}\n\n", usual_error());
    check_events("sse-event-error", &other, "unanswered");
    let custom = format!("event: ping\ndata: x\n\n{}", event(GOOD));
    check_events("sse-event-custom-then-ok", &custom, "valid");
    check_events("sse-unterminated", &format!("data: {GOOD}\n"), "unanswered");
    check_events("sse-batch", &event(&format!("[{GOOD}]")), "array_not_asked");
    check_events("sse-ct-upper", &event(GOOD), "valid");
    check_events("sse-502", &event(&usual_error()), "valid");
    let unknown = event(r#"{"jsonrpc":"2.0","method":"notifications/xyz"}"#) + &event(GOOD);
    check_events("sse-unknown-notif-then-ok", &unknown, "valid");
    check_events("sse-ok-extra-top", &event(&good_and(",\"x\":1")), "member_foreign");
    check_events("sse-reset", ": x\n\n", "unanswered");
}
