//! What the text of a JSON string or number stands for. Works on tokens that the automaton has
//! accepted, without heap. Pure; any shard.

use std::str::Chars;

/// The characters of a string token, escapes resolved.
///
/// Items are code points; half of a surrogate pair that stands alone is an item of its own, since
/// the grammar allows it and two such strings can be equal.
#[derive(Clone, Debug)]
pub struct Characters<'a> {
    rest: Chars<'a>,
}

/// The characters of `text`, a string token without its quotes. Text that is not UTF-8 has none.
#[must_use]
pub fn characters(text: &[u8]) -> Characters<'_> {
    Characters { rest: std::str::from_utf8(text).unwrap_or_default().chars() }
}

/// What `text` stands for once its escapes are resolved, or `None` when it names a lone surrogate
/// or is not the text of a JSON string.
#[must_use]
pub fn unescape(text: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    if !text.contains(&b'\\') {
        return std::str::from_utf8(text).ok().map(std::borrow::Cow::Borrowed);
    }
    let quoted = [b"\"", text, b"\""].concat();
    sonic_rs::from_slice::<String>(&quoted).ok().map(std::borrow::Cow::Owned)
}

/// Whether two string tokens, without their quotes, stand for the same characters.
#[must_use]
pub fn is_same_text(one: &[u8], other: &[u8]) -> bool {
    one == other
        || (one.contains(&b'\\') || other.contains(&b'\\')) && characters(one).eq(characters(other))
}

/// Whether the value of a number token is an integer, however it is written: `1`, `1.0`, `1e3` and
/// `10e-1` are, `1.5` and `1e-3` are not. Exact for every length.
#[must_use]
pub fn is_integral(number: &[u8]) -> bool {
    let mut parts = number.splitn(2, |&byte| matches!(byte, b'e' | b'E'));
    let mantissa = parts.next().unwrap_or_default();
    let exponent = parts.next().map_or(0, exponent_value);
    let point = mantissa.iter().position(|&byte| byte == b'.');
    let fraction_digits = point.map_or(0, |at| mantissa.len() - at - 1);
    let digits = mantissa.iter().rev().filter(|byte| byte.is_ascii_digit());
    let zeros = digits.clone().take_while(|&&digit| digit == b'0').count();
    let is_zero = zeros == digits.count();
    is_zero || 0 <= exponent + signed(zeros) - signed(fraction_digits)
}

/// The value of an exponent, kept within a range that no mantissa of a token can reach.
fn exponent_value(text: &[u8]) -> i64 {
    const FAR: i64 = i64::MAX / 16;
    let size = text
        .iter()
        .filter(|byte| byte.is_ascii_digit())
        .fold(0_i64, |value, &digit| (value * 10 + i64::from(digit - b'0')).min(FAR));
    if text.first() == Some(&b'-') { -size } else { size }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX / 32)
}

impl Iterator for Characters<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match self.rest.next()? {
            '\\' => self.escaped(),
            plain => Some(u32::from(plain)),
        }
    }
}

impl Characters<'_> {
    fn escaped(&mut self) -> Option<u32> {
        Some(match self.rest.next()? {
            'b' => 0x08,
            'f' => 0x0C,
            'n' => 0x0A,
            'r' => 0x0D,
            't' => 0x09,
            'u' => {
                let unit = hex_unit(&mut self.rest)?;
                let mut ahead = self.rest.clone();
                match low_half(unit, &mut ahead) {
                    Some(low) => {
                        self.rest = ahead;
                        0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00)
                    }
                    None => unit,
                }
            }
            itself => u32::from(itself),
        })
    }
}

/// The low half that follows a high half `unit`, if both are what they must be.
fn low_half(unit: u32, ahead: &mut Chars<'_>) -> Option<u32> {
    if !(0xD800..0xDC00).contains(&unit) || ahead.next()? != '\\' || ahead.next()? != 'u' {
        return None;
    }
    hex_unit(ahead).filter(|low| (0xDC00..0xE000).contains(low))
}

fn hex_unit(rest: &mut Chars<'_>) -> Option<u32> {
    let mut unit = 0;
    for _ in 0..4 {
        unit = unit << 4 | rest.next()?.to_digit(16)?;
    }
    Some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RV-2, RV-3: text is compared after unescaping, lone halves of surrogate pairs included.
    #[test]
    fn texts_compare_by_what_they_stand_for() {
        let check = |one: &str, other: &str, same: bool| {
            assert_eq!(is_same_text(one.as_bytes(), other.as_bytes()), same, "{one} {other}");
        };
        check("id", "id", true);
        check("id", r"\u0069d", true);
        check(r"\u0069d", r"i\u0064", true);
        check("id", "Id", false);
        check("id", "id ", false);
        check(r"\/", "/", true);
        check(r"\n", r"\u000A", true);
        check(r"\n", "n", false);
        check("\u{1F600}", r"\ud83d\uDE00", true);
        check(r"\ud800", r"\uD800", true);
        check(r"\ud800", r"\ud801", false);
        check(r"\ud800\u0041", r"\ud800A", true);
        check(r"\ud83d\ud83d\ude00", "\u{1F600}", false);
        check(r"\\u0069", r"\u0069", false);
        check("", "", true);
    }

    /// RV-1: an integral value may be written with a fraction or an exponent, at any size.
    #[test]
    fn integral_is_about_the_value() {
        let check = |number: &str, is_integer: bool| {
            assert_eq!(is_integral(number.as_bytes()), is_integer, "{number}");
        };
        for number in [
            "0",
            "-0",
            "1",
            "-32000",
            "1.0",
            "1.000",
            "1e3",
            "1E+3",
            "10e-1",
            "1.5e1",
            "0.0",
            "0e-9",
            "0.000e-400",
            "1e400",
            "12345678901234567890123",
            "1e99999999999999999999999",
            "120e-1",
            "0e-99999999999999999999999",
            "1.25E2",
        ] {
            check(number, true);
        }
        for number in [
            "1.5",
            "-0.1",
            "1e-1",
            "15e-1",
            "1.25e1",
            "1e-99999999999999999999999",
            "100e-3",
            "0.1e-5",
        ] {
            check(number, false);
        }
        check(&format!("1{}e-8000", "0".repeat(8000)), true);
        check(&format!("1{}e-8001", "0".repeat(8000)), false);
    }
}
