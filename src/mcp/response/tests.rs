//! One table a rule. A case is a message, what was asked, and the verdict on it.

use super::*;
use crate::ids::RequestId;
use crate::limits::{BATCH_REQUESTS_MAX, JSON_CAPTURE_BYTES_MAX};

const DEPTH_MAX: usize = 128;

fn one(token: &str) -> Asked {
    Asked::One(RequestId::from_token(token.as_bytes()))
}

fn many(tokens: &[&str]) -> Asked {
    let id = |token: &&str| RequestId::from_token(token.as_bytes());
    Asked::Many(tokens.iter().map(id).collect())
}

fn judge(carrier: Carrier, asked: &Asked, pieces: &[&[u8]]) -> Result<Message, Refusal> {
    let mut awaited = Awaited::new(asked.clone());
    let mut checker = Checker::new(carrier, DEPTH_MAX);
    for piece in pieces {
        checker.push(piece, &awaited)?;
    }
    checker.finish(&mut awaited)
}

/// The verdict in a word: the message, or the label of the refusal and its offset.
fn told(verdict: Result<Message, Refusal>) -> String {
    match verdict {
        Ok(message) => format!("{message:?}").to_lowercase(),
        Err(Refusal { why, offset }) => format!("{} {offset}", why.label()),
    }
}

/// Compares the verdict on `text`, whole, cut in two anywhere, and byte by byte. An `expected`
/// without offset compares the word alone.
fn check_bytes(carrier: Carrier, asked: &Asked, text: &[u8], expected: &str) {
    let whole = told(judge(carrier, asked, &[text]));
    let word = whole.split(' ').next().expect("there is a word");
    let shown = String::from_utf8_lossy(text);
    assert!(
        whole == expected || word == expected,
        "{whole}, not {expected}: {shown} as {carrier:?} for {asked:?}"
    );
    for cut in 0..=text.len().min(300) {
        let (head, tail) = text.split_at(cut);
        let cut_verdict = told(judge(carrier, asked, &[head, tail]));
        assert_eq!(cut_verdict, whole, "{shown} cut at {cut}");
    }
    let single: Vec<&[u8]> = text.chunks(1).collect();
    assert_eq!(told(judge(carrier, asked, &single)), whole, "{shown} byte by byte");
}

/// A body that answers the request 1.
fn check(text: &str, expected: &str) {
    check_bytes(Carrier::Body, &one("1"), text.as_bytes(), expected);
}

fn result(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

fn error(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"m"}}}}"#)
}

/// RV-1: a body is one response object.
#[test]
fn body_is_one_response() {
    check(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "response");
    check(r#" { "result" : { "a" : [ 1 , {} ] } , "id" : 1 , "jsonrpc" : "2.0" } "#, "response");
    check(r#"{"jsonrpc":"2\u002e0","\u0069d":1,"result":{}}"#, "response");
    check(r#"{"jsonrpc":"2.0","id":1,"result":{},"x":[1],"y":{"id":2,"id":3}}"#, "response");
    check(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":""}}"#, "response");
    check("", "json_truncated 0");
    check("  ", "json_truncated 2");
    check("1", "not_object 0");
    check("12 ", "not_object 1");
    check("null", "not_object 3");
    check("\"a\"", "not_object 2");
    check("{}", "version_missing 1");
    check(r#"{"jsonrpc":"2.0","id":1,"result":{}}{}"#, "json_trailing 36");
    check(r#"{"jsonrpc":"2.0","id":1,"result":{}} ,"#, "json_trailing 37");
    check(r#"{"jsonrpc":"2.0","id":1,"result":{}"#, "json_truncated 35");
    check("\u{FEFF}{}", "json_unexpected 0");
}

/// RV-1: an array answers an array only, and holds objects, at least one.
#[test]
fn arrays_answer_arrays() {
    let both = format!("[{},{}]", result("1"), error("\"a\""));
    let asked = many(&["1", "\"a\""]);
    let check_many = |text: &str, expected| {
        check_bytes(Carrier::Body, &asked, text.as_bytes(), expected);
        check_bytes(Carrier::Event, &asked, text.as_bytes(), expected);
    };
    check_many(&both, "batch");
    check_many(&format!("[{}]", result("1")), "batch");
    check_many(&result("\"a\""), "response");
    check_many("[]", "array_empty 1");
    check_many("[ ]", "array_empty 2");
    check_many("[[]]", "not_object 1");
    check_many("[1]", "not_object 1");
    check_many(&format!("[{},null]", result("1")), "not_object");
    check_many(&format!("[{},{{}}]", result("1")), "version_missing");
    check_many(&format!("[{}", result("1")), "json_truncated");
    check(&format!("[{}]", result("1")), "array_not_asked 0");
    check("[]", "array_not_asked 0");
    check_bytes(Carrier::Event, &one("1"), both.as_bytes(), "array_not_asked 0");
    check_bytes(Carrier::Body, &Asked::Anything, both.as_bytes(), "batch");
    check_bytes(Carrier::Event, &Asked::Anything, both.as_bytes(), "batch");
    check_bytes(Carrier::Body, &Asked::Anything, b"[]", "array_empty 1");
}

/// RV-1: `jsonrpc` is the string "2.0".
#[test]
fn version_is_two() {
    for wrong in [
        "2.0",
        "2",
        "\"2\"",
        "\"1.0\"",
        "\"2.0 \"",
        "\"\"",
        "null",
        "true",
        "[]",
        "{}",
        "[\"2.0\"]",
    ] {
        check(&format!(r#"{{"jsonrpc":{wrong},"id":1,"result":{{}}}}"#), "version_wrong");
    }
    check(r#"{"id":1,"result":{}}"#, "version_missing 19");
    check(r#"{"x":{"jsonrpc":"2.0"},"id":1,"result":{}}"#, "version_missing");
}

/// RV-1: exactly one of `result` and `error`.
#[test]
fn result_or_error_but_not_both() {
    check(r#"{"jsonrpc":"2.0","id":1}"#, "result_missing 23");
    check(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#, "result_and_error 42");
    check(
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""},"result":{}}"#,
        "result_and_error",
    );
    check(r#"{"jsonrpc":"2.0","id":1,"result":{},"err\u006fr":{}}"#, "result_and_error");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#, "method_beside_answer 44");
    check(r#"{"jsonrpc":"2.0","id":1,"result":{},"method":"m"}"#, "method_beside_answer");
    check(r#"{"jsonrpc":"2.0","id":1,"result":{},"params":[]}"#, "response");
}

/// RV-1: a result is an object; clients were seen to wait for ever on others.
#[test]
fn result_is_an_object() {
    for wrong in ["null", "[]", "[{}]", "0", "\"\"", "true"] {
        check(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{wrong}}}"#), "result_not_object");
    }
}

/// RV-1: an error has an integer code and a string message.
#[test]
fn error_has_code_and_message() {
    let check_error = |error: &str, expected| {
        check(&format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#), expected);
    };
    for code in ["0", "-0", "-32000", "1.0", "1e3", "12345678901234567890", "1e400", "10e-1"] {
        check_error(&format!(r#"{{"code":{code},"message":"m"}}"#), "response");
    }
    for code in ["1.5", "1e-1", "\"1\"", "null", "true", "{}", "[]"] {
        check_error(&format!(r#"{{"code":{code},"message":"m"}}"#), "error_code_invalid");
    }
    for message in ["1", "null", "false", "{}", "[]"] {
        check_error(&format!(r#"{{"message":{message},"code":1}}"#), "error_message_invalid");
    }
    for other in ["null", "[]", "\"m\"", "1", "true"] {
        check_error(other, "error_not_object");
    }
    check_error("{}", "error_code_missing 33");
    check_error(r#"{"message":"m"}"#, "error_code_missing");
    check_error(r#"{"code":1}"#, "error_message_missing");
    check_error(r#"{"code":1,"message":"m","data":{"code":1,"code":2},"x":1,"x":2}"#, "response");
    check_error(r#"{"c\u006fde":1,"message":"\ud800","data":1e400}"#, "response");
    let endless = "1".repeat(JSON_CAPTURE_BYTES_MAX + 1);
    check_error(&format!(r#"{{"code":{endless},"message":"m"}}"#), "error_code_invalid");
    let endless = "m".repeat(JSON_CAPTURE_BYTES_MAX + 1);
    check_error(&format!(r#"{{"code":1,"message":"{endless}"}}"#), "response");
}

/// RV-1, RV-3: an id is a string or an integer, and in an error of an array null or absent.
#[test]
fn id_is_a_string_or_an_integer() {
    for wrong in ["true", "[]", "[1]", "{}", "1.5", "1e-1"] {
        check(&result(wrong), "id_invalid");
        check(&error(wrong), "id_invalid");
    }
    check(&result("null"), "id_invalid 38");
    check(r#"{"jsonrpc":"2.0","result":{}}"#, "id_missing 28");
    let without = r#"{"jsonrpc":"2.0","error":{"code":1,"message":""}}"#;
    check(without, "error_without_id 48");
    check(&error("null"), "error_without_id");
    for asked in [many(&["1"]), Asked::Anything] {
        for text in [without, &error("null")] {
            check_bytes(Carrier::Body, &asked, text.as_bytes(), "response");
            check_bytes(Carrier::Body, &asked, format!("[{text}]").as_bytes(), "batch");
        }
        check_bytes(Carrier::Body, &asked, result("null").as_bytes(), "id_invalid");
        let id_of_another = format!(r#"[{},{{"jsonrpc":"2.0","result":{{}}}}]"#, result("1"));
        check_bytes(Carrier::Body, &asked, id_of_another.as_bytes(), "id_missing");
    }
}

/// RV-3: the id equals the request's.
#[test]
fn id_is_the_one_that_was_asked() {
    let check_id = |asked: &str, id: &str, expected: &str| {
        check_bytes(Carrier::Body, &one(asked), result(id).as_bytes(), expected);
        check_bytes(Carrier::Event, &one(asked), error(id).as_bytes(), expected);
    };
    let big = "123456789012345678901234567890";
    let long = format!("\"{}\"", "a".repeat(1022));
    let long_escaped = format!("\"{}\"", r"\u0061".repeat(1022));
    for (asked, id) in [
        ("1", "1"),
        ("0", "-0"),
        ("-0", "0"),
        ("-1", "-1"),
        (big, big),
        ("1.0", "1.0"),
        ("1e3", "1e3"),
        ("1.5", "1.5"),
        ("\"a\"", "\"a\""),
        ("\"a\"", r#""\u0061""#),
        (r#""\u0061""#, "\"a\""),
        (r#""\/""#, "\"/\""),
        ("\"\"", "\"\""),
        (r#""\ud800""#, r#""\uD800""#),
        ("\"1\"", "\"1\""),
        (&long, &long),
        (&long, &long_escaped),
        (r#""\ud83d\ude00""#, "\"\u{1F600}\""),
    ] {
        check_id(asked, id, "response");
    }
    let bigger = format!("{big}0");
    for (asked, id) in [
        ("1", "2"),
        ("1", "-1"),
        ("1", "10"),
        ("10", "1"),
        ("1", "1.0"),
        ("1", "1e0"),
        ("1.0", "1"),
        ("1.0", "1.00"),
        ("1000", "1e3"),
        ("1e3", "1E3"),
        ("0", "0.0"),
        (big, &bigger),
        ("9007199254740993", "9007199254740992"),
        ("1", "\"1\""),
        ("\"1\"", "1"),
        ("\"a\"", "\"A\""),
        ("\"a\"", "\"a \""),
        ("\"\"", "\"0\""),
        ("\"e\u{301}\"", "\"\u{e9}\""),
        (r#""\ud800""#, r#""\udc00""#),
    ] {
        check_id(asked, id, "id_not_asked");
    }
    let endless = format!("\"{}\"", "a".repeat(JSON_CAPTURE_BYTES_MAX + 1));
    check_id("\"a\"", &endless, "id_not_asked");
    for any in ["1", "\"x\"", "1.0", "1e400", "-0"] {
        check_bytes(Carrier::Body, &Asked::Anything, result(any).as_bytes(), "response");
    }
    check_bytes(Carrier::Body, &Asked::Anything, result("1.5").as_bytes(), "id_invalid");
}

/// RV-3: each id of an array is answered once, over all messages of the exchange.
#[test]
fn ids_are_answered_once() {
    let check_many = |asked: &[&str], ids: &[&str], expected| {
        let answers: Vec<String> = ids.iter().map(|id| result(id)).collect();
        let text = format!("[{}]", answers.join(","));
        check_bytes(Carrier::Body, &many(asked), text.as_bytes(), expected);
    };
    check_many(&["1", "2", "3"], &["3", "1"], "batch");
    check_many(&["1", "2"], &["1", "1"], "id_answered");
    check_many(&["1", "\"1\""], &["\"1\"", "1"], "batch");
    check_many(&["0", "2"], &["0", "-0"], "id_answered");
    check_many(&["1", "1"], &["1", "1"], "batch");
    check_many(&["1", "1"], &["1", "1", "1"], "id_answered");
    check_many(&["1"], &["1", "2"], "id_not_asked");
    check_many(&[], &["1"], "id_not_asked");

    let tokens: Vec<String> = (0..=BATCH_REQUESTS_MAX).map(|id| id.to_string()).collect();
    let asked: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let (beyond, within) = asked.split_last().expect("there are ids");
    let text = format!("[{}]", within.iter().map(|id| result(id)).collect::<Vec<_>>().join(","));
    assert_eq!(told(judge(Carrier::Body, &many(within), &[text.as_bytes()])), "batch");
    check_many(&asked, &[beyond], "id_not_asked");
}

/// RV-3: what a valid message answers is struck off; what an invalid one names is not.
#[test]
fn answers_are_struck_off_at_the_end() {
    let mut awaited = Awaited::new(many(&["1", "\"a\"", "3"]));
    let mut answer = |text: &str| {
        let mut checker = Checker::new(Carrier::Event, DEPTH_MAX);
        let pushed = checker.push(text.as_bytes(), &awaited);
        let told = told(pushed.and_then(|()| checker.finish(&mut awaited)));
        let open: Vec<_> = awaited
            .unanswered()
            .map(|id| String::from_utf8_lossy(id.token()).into_owned())
            .collect();
        format!("{told}: {} {}", open.join(" "), awaited.is_answered())
    };
    assert_eq!(answer(&result("\"b\"")), "id_not_asked 37: 1 \"a\" 3 false");
    assert_eq!(answer(&format!("[{},7]", result("1"))), "not_object 38: 1 \"a\" 3 false");
    assert_eq!(answer(&format!("[{}]", result("1"))), "batch: \"a\" 3 false");
    assert_eq!(answer(&error("1")), "id_answered 57: \"a\" 3 false");
    assert_eq!(answer(&error("null")), "response: \"a\" 3 false");
    assert_eq!(answer(&error("\"a\"")), "response: 3 false");
    assert_eq!(answer(&result("3")), "response:  true");
    assert!(Awaited::new(Asked::Anything).is_answered(), "nothing waits");
    assert!(Awaited::new(many(&[])).is_answered(), "nothing waits");
}

/// RV-2: no key of the envelope or of `error` stands twice, or in disguise.
#[test]
fn keys_are_unique() {
    for key in ["jsonrpc", "id", "result", "error", "method", "params"] {
        let value = match key {
            "jsonrpc" => "\"2.0\"",
            "id" => "1",
            "method" => "\"m\"",
            "error" => "{\"code\":1,\"message\":\"\"}",
            _ => "{}",
        };
        check_repeated(
            key,
            |key| format!(r#"{{"{key}":{value}"#),
            |first, second| format!("{first},{}}}", second.trim_start_matches('{')),
        );
    }
    for (key, value) in [("code", "1"), ("message", "\"\""), ("data", "1")] {
        check_repeated(
            key,
            |key| format!(r#""{key}":{value}"#),
            |first, second| format!(r#"{{"error":{{{first},{second}}}}}"#),
        );
    }
    check(r#"{"jsonrpc":"2.0","\u212A":1,"id":1,"result":{}}"#, "response");
    check(r#"{"jsonrpc":"2.0","re\u017fult":{},"id":1}"#, "key_disguised 29");
    check("{\"jsonrpc\":\"2.0\",\"re\u{17f}ult\":{},\"id\":1}", "key_disguised");
    check(r#"{"jsonrpc":"2.0","\u0049\u0044":1,"result":{}}"#, "key_disguised");
    check(r#"{"jsonrpc":"2.0","\u0130d":1,"id":1,"result":{}}"#, "response");
    check(r#"{"jsonrpc":"2.0","id\u0000":1,"id":1,"result":{}}"#, "key_disguised 26");
    check(r#"{"jsonrpc":"2.0","id ":1,"id":1,"result":{}}"#, "response");
    check(r#"{"jsonrpc":"2.0","\ud800":1,"\ud800":1,"id":1,"result":{}}"#, "response");
    check(r#"{"jsonrpc":"2.0","code":1,"Code":2,"code":3,"id":1,"result":{}}"#, "response");
    check(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","ID":1,"id":2}}"#, "response");
    let endless = "i".repeat(JSON_CAPTURE_BYTES_MAX + 1);
    check(
        &format!(r#"{{"{endless}":1,"{endless}":1,"jsonrpc":"2.0","id":1,"result":{{}}}}"#),
        "response",
    );
}

/// The member of `key` twice: as it is, the second one escaped, and the second one in capitals.
fn check_repeated(
    key: &str,
    member: impl Fn(&str) -> String,
    document: impl Fn(&str, &str) -> String,
) {
    let units: Vec<String> = key.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let escaped = units.concat();
    let plain = member(key);
    check(&document(&plain, &plain), "key_duplicated");
    check(&document(&plain, &member(&escaped)), "key_duplicated");
    check(&document(&member(&escaped), &plain), "key_duplicated");
    check(&document(&plain, &member(&key.to_uppercase())), "key_disguised");
    check(&document(&member(&key.to_uppercase()), &plain), "key_disguised");
}

/// RV-2: the limit of depth is exact, the envelope included.
#[test]
fn depth_is_bounded() {
    for (levels, expected) in [(126, "response"), (127, "json_depth"), (10_000, "json_depth")] {
        let nested = format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{nested}}}"#);
        assert_eq!(
            told(judge(Carrier::Body, &one("1"), &[text.as_bytes()])).split(' ').next(),
            Some(expected),
            "{levels} levels in a result in an envelope"
        );
    }
}

/// RV-5: an event carries responses, requests and notifications; a body only responses.
#[test]
fn pods_ask_and_notify_in_events_only() {
    let check_event = |text: &str, expected: &str| {
        for asked in [one("1"), many(&["1"]), Asked::Anything] {
            check_bytes(Carrier::Event, &asked, text.as_bytes(), expected);
        }
    };
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    check_event(notification, "notification");
    check_event(request, "request");
    check_event(&request.replace('1', "\"s\""), "request");
    check_event(&request.replace('1', "1.0"), "request");
    check_event(&request.replace('1', "1.5"), "id_invalid");
    check_event(&request.replace('1', "null"), "id_invalid");
    check_event(&request.replace("\"ping\"", "1"), "method_invalid");
    check_event(&request.replace("\"ping\"", "null"), "method_invalid");
    check_event(r#"{"method":"ping"}"#, "version_missing");
    check_event(&result("1"), "response");
    check(notification, "not_response");
    check(request, "not_response");
    let mixed = format!("[{notification},{request},{}]", result("1"));
    check_bytes(Carrier::Event, &many(&["1"]), mixed.as_bytes(), "batch");
    check_bytes(Carrier::Body, &many(&["1"]), mixed.as_bytes(), "not_response");
    check_bytes(Carrier::Body, &Asked::Anything, request.as_bytes(), "not_response");
}

/// FA-3, RV-11: the fault that answers, by the class of the reason.
#[test]
fn reasons_have_their_faults() {
    use crate::mcp::fault::Fault;
    let check_fault = |text: &str, fault| {
        let refusal =
            judge(Carrier::Body, &one("1"), &[text.as_bytes()]).expect_err("it is invalid");
        assert_eq!(refusal.why.fault(), fault, "{text}");
    };
    check_fault("", Fault::UpstreamNotJson);
    check_fault("<html>", Fault::UpstreamNotJson);
    check_fault("{\"a\":\"\u{1}\"}", Fault::UpstreamNotJson);
    check_fault(&"[".repeat(1000).replacen('[', "{\"a\":", 1), Fault::UpstreamNotJson);
    check_fault(&result("2"), Fault::UpstreamWrongId);
    check_fault(&result("\"1\""), Fault::UpstreamWrongId);
    check_fault(&error("null"), Fault::UpstreamWrongId);
    check_fault(&result("null"), Fault::UpstreamNotJsonRpc);
    check_fault("[]", Fault::UpstreamNotJsonRpc);
    check_fault("{}", Fault::UpstreamNotJsonRpc);
    assert_eq!(Why::EventTooLarge.fault(), Fault::UpstreamEventTooLarge);
}

/// The first refusal is repeated, whatever comes after it.
#[test]
fn refusal_is_final() {
    let mut awaited = Awaited::new(one("1"));
    let mut checker = Checker::new(Carrier::Body, DEPTH_MAX);
    let first = checker.push(b"[", &awaited);
    assert_eq!(told(first.map(|()| Message::Response)), "array_not_asked 0");
    assert_eq!(checker.push(result("1").as_bytes(), &awaited), first);
    assert_eq!(checker.finish(&mut awaited).map(|_| ()), first);
    assert!(!awaited.is_answered(), "a refused message answers nothing");
}
