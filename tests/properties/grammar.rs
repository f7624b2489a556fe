//! Texts of each class of the grammar, valid and not, at every offset and with every cut.

use crate::oracle;
use ringgate::json::{Automaton, Container, Members, Scalar, Text, Visitor};

const GOOD_STRUCTURE: &[&str] = &[
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "[[]]",
    "[{}]",
    "[1,2]",
    "[ 1 , 2 ]",
    "{\"a\":1}",
    "{\"a\":1,\"a\":2}",
    "{\"\":{\"\":{}}}",
    "\t1\n",
    "\r\n{ } ",
    "[null,true,false]",
    "[\"a\",1,{\"b\":[]}]",
];

const BAD_STRUCTURE: &[&str] = &[
    "nul",
    "nulll",
    "tru",
    "truee",
    "fals",
    "True",
    "NULL",
    "truefalse",
    "1true",
    "true1",
    "nullnull",
    "\"a\"1",
    "1\"a\"",
    "1[2]",
    "[1]2",
    "{}1",
    "{}{}",
    "[][]",
    "[",
    "]",
    "{",
    "}",
    "[}",
    "{]",
    "[1}",
    "{\"a\":1]",
    "[1,]",
    "[,1]",
    "[,]",
    "[1,,2]",
    "[1 2]",
    "{,}",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\":1,}",
    "{\"a\" 1}",
    "{\"a\"::1}",
    "{\"a\",1}",
    "{1:2}",
    "{a:1}",
    "{null:1}",
    "{\"a\":1 \"b\":2}",
    "{\"a\":1,,\"b\":2}",
    "[:]",
    "[1:2]",
    ":",
    ",",
    "[[]",
    "{{}}",
    "{[]:1}",
    "/**/1",
    "1//",
    "\u{b}1",
    "\u{c}1",
    "1\u{c}",
    "\u{a0}1",
    "\u{1a}",
    "\u{0}1",
    "1\u{0}",
    "\u{85}1",
    "\u{2028}1",
    "\\",
    "[\\\"a\"]",
    "d",
    "<",
    "*",
    "\"",
];

/// Asks to see everything and accepts it.
struct Everything;

impl Visitor for Everything {
    type Why = std::convert::Infallible;

    fn open(&mut self, _: Container) -> Result<Members, Self::Why> {
        Ok(Members::Reported)
    }

    fn close(&mut self, _: Container) -> Result<(), Self::Why> {
        Ok(())
    }

    fn key(&mut self, _: Text<'_>) -> Result<(), Self::Why> {
        Ok(())
    }

    fn scalar(&mut self, _: Scalar, _: Text<'_>) -> Result<(), Self::Why> {
        Ok(())
    }
}

fn is_accepted(pieces: &[&[u8]], depth_max: usize) -> bool {
    let mut automaton = Automaton::new(depth_max);
    let pushed = pieces.iter().try_for_each(|piece| automaton.push(piece, &mut Everything));
    pushed.and_then(|()| automaton.finish(&mut Everything)).is_ok()
}

/// The verdict on `text` bare, in an array, as a member and as the end of a long string's object,
/// behind 0 to 16 blanks and cut anywhere.
fn check(text: &[u8], expected: bool) {
    let forms = [
        text.to_vec(),
        [b"[".as_slice(), text, b"]"].concat(),
        [b"{\"a\":".as_slice(), text, b"}"].concat(),
        [b"{\"".as_slice(), &[b'k'; 70], b"\":[0,", text, b"]}"].concat(),
    ];
    for form in forms {
        for blanks in 0..=16 {
            let padded = [vec![b' '; blanks], form.clone()].concat();
            assert_eq!(
                oracle::is_json(&padded, 512),
                expected,
                "oracle: {}",
                padded.escape_ascii()
            );
            assert_eq!(is_accepted(&[&padded], 512), expected, "{}", padded.escape_ascii());
            for cut in 0..=padded.len() {
                let (head, tail) = padded.split_at(cut);
                assert_eq!(
                    is_accepted(&[head, tail], 512),
                    expected,
                    "{} cut at {cut}",
                    padded.escape_ascii()
                );
            }
        }
    }
}

/// RV-1: numbers.
#[test]
fn numbers() {
    for good in [
        "0",
        "-0",
        "1",
        "-1",
        "10",
        "123456789",
        "0.0",
        "-0.5",
        "1.25",
        "1e1",
        "1E1",
        "1e+1",
        "1e-1",
        "1.5e10",
        "0e0",
        "0.0e-0",
        "1e400",
        "-1e-400",
        "1e0001",
        "100000000000000000000000000000000000000",
    ] {
        check(good.as_bytes(), true);
    }
    for bad in [
        "01",
        "-01",
        "00",
        "-",
        "+1",
        ".5",
        "-.5",
        "1.",
        "1.e1",
        "1e",
        "1e+",
        "1e-",
        "1ee1",
        "1.2.3",
        "1e1.5",
        "0x10",
        "1_000",
        "--1",
        "1-",
        "1+1",
        "NaN",
        "-NaN",
        "Infinity",
        "-Infinity",
        "1a",
        "0e",
        "1 2",
        "- 1",
        "1. 5",
        "\u{ff11}",
    ] {
        check(bad.as_bytes(), false);
    }
}

/// RV-1: strings, their escapes and control characters.
#[test]
fn strings() {
    for good in [
        r#""""#,
        r#""a""#,
        r#""\"\\\/\b\f\n\r\t""#,
        r#""\u0000\uAbCd\uffff""#,
        r#""\ud800""#,
        r#""\udc00\ud800""#,
        r#""\ud83d\ude00""#,
        "\"\u{7f}\"",
        "\"\u{80}\u{7ff}\u{800}\"",
        "\"\u{d7ff}\u{e000}\u{ffff}\"",
        "\"\u{10000}\u{10ffff}\"",
        "\"\u{2028}\u{2029}\"",
        "\"// /* */\"",
        "\"{[,:]}\"",
    ] {
        check(good.as_bytes(), true);
    }
    for bad in [
        r#"""#,
        r#""a"#,
        r#"a""#,
        r#""\x""#,
        r#""\a""#,
        r#""\u""#,
        r#""\u12""#,
        r#""\u123g""#,
        r#""\uZZZZ""#,
        r#""\U0041""#,
        r#""\'""#,
        r#""\"#,
        r"'a'",
        r#""\u00""#,
        r#"["\u",1,"]"#,
        r#""\ ""#,
        r#"\"a""#,
        r#""a" "b""#,
        r#""a""b""#,
        "\"\\\n\"",
        "\"\\\u{e9}\"",
    ] {
        check(bad.as_bytes(), false);
    }
    for control in 0..0x20_u8 {
        check(&[b'"', control, b'"'], false);
        check(&[b'"', b'a', b'\\', control, b'"'], false);
    }
}

/// RV-1: UTF-8 (RFC 3629, section 4), in strings and between tokens.
#[test]
fn utf8() {
    for bytes in [
        &b"\xC2\x80"[..],
        b"\xDF\xBF",
        b"\xE0\xA0\x80",
        b"\xED\x9F\xBF",
        b"\xEE\x80\x80",
        b"\xEF\xBF\xBF",
        b"\xF0\x90\x80\x80",
        b"\xF4\x8F\xBF\xBF",
        b"\xEF\xBB\xBF",
    ] {
        check(&[b"\"", bytes, b"\""].concat(), true);
        check(&[b"\"a", bytes, b"b\""].concat(), true);
        check(bytes, false);
        check(&[bytes, b"1"].concat(), false);
        let (cut, _) = bytes.split_at(bytes.len() - 1);
        check(&[b"\"", cut, b"\""].concat(), false);
        check(&[b"\"", cut, b"a\""].concat(), false);
    }
    for bytes in [
        &b"\x80"[..],
        b"\xBF",
        b"\xC0\x80",
        b"\xC1\xBF",
        b"\xE0\x80\x80",
        b"\xE0\x9F\xBF",
        b"\xED\xA0\x80",
        b"\xED\xBF\xBF",
        b"\xF0\x80\x80\x80",
        b"\xF0\x8F\xBF\xBF",
        b"\xF4\x90\x80\x80",
        b"\xF5\x80\x80\x80",
        b"\xF8\x88\x80\x80\x80",
        b"\xFE",
        b"\xFF",
        b"\xC2\xC2",
        b"\xE1\x80\xC0",
        b"\xF1\x80\x80\xC0",
        b"\xC2\x80\x80",
    ] {
        check(&[b"\"", bytes, b"\""].concat(), false);
        check(bytes, false);
    }
}

/// RV-1: literals, separators, brackets and blanks as they may stand.
#[test]
fn good_structure() {
    for good in GOOD_STRUCTURE {
        check(good.as_bytes(), true);
    }
}

/// RV-1: literals, separators, brackets and blanks as they may not.
#[test]
fn bad_structure() {
    for bad in BAD_STRUCTURE {
        check(bad.as_bytes(), false);
    }
    assert!(!is_accepted(&[b""], 512), "no text");
    assert!(!is_accepted(&[b" \n"], 512), "blanks are no text");
    assert!(!is_accepted(&["\u{FEFF}1".as_bytes()], 512), "a byte order mark");
    assert!(!is_accepted(&[b"1", b"", b"\0"], 512), "a NUL at the end");
}

/// RV-1: every byte at the start of a text, behind one value and inside an array.
#[test]
fn every_byte_between_tokens() {
    for byte in 0..=u8::MAX {
        for text in [vec![byte], vec![byte, b'1'], vec![b'1', byte], vec![b'[', byte, b']']] {
            let expected = oracle::is_json(&text, 512);
            assert_eq!(is_accepted(&[&text], 512), expected, "{}", text.escape_ascii());
        }
    }
}

/// RV-2: the limit of depth is exact, for every mixture of brackets and around every word of the
/// stack.
#[test]
fn depth() {
    for levels in [1_usize, 2, 62, 63, 64, 65, 66, 127, 128, 129, 191, 192, 193, 511, 512, 513] {
        for open in ["[", "{\"a\":", "[{\"a\":", "{\"a\":["] {
            let mut text = open.repeat(levels.div_ceil(open.matches(['[', '{']).count()));
            text = trimmed(&text, levels);
            let closes: String = text
                .chars()
                .rev()
                .filter_map(|character| match character {
                    '[' => Some(']'),
                    '{' => Some('}'),
                    _ => None,
                })
                .collect();
            let good = format!("{text}1{closes}");
            for depth_max in [63, 64, 65, 127, 128, 512, 1000] {
                let expected = levels <= depth_max.min(512);
                assert_eq!(oracle::is_json(good.as_bytes(), depth_max.min(512)), expected);
                assert_eq!(is_accepted(&[good.as_bytes()], depth_max), expected, "{good}");
                let single: Vec<&[u8]> = good.as_bytes().chunks(1).collect();
                assert_eq!(is_accepted(&single, depth_max), expected, "{good}");
            }
            let wrong =
                closes.replacen(['}', ']'], if closes.starts_with(']') { "}" } else { "]" }, 1);
            assert!(!is_accepted(&[format!("{text}1{wrong}").as_bytes()], 512), "{text}1{wrong}");
        }
    }
}

/// The start of `text` that opens `levels` containers.
fn trimmed(text: &str, levels: usize) -> String {
    let mut opens = 0;
    let mut end = text.len();
    for (at, character) in text.char_indices() {
        if matches!(character, '[' | '{') {
            opens += 1;
            if opens > levels {
                end = at;
                break;
            }
        }
    }
    text[..end].to_owned()
}
