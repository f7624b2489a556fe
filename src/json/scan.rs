//! Finds the next byte of a string that needs a decision. Pure; portable words, eight bytes a step.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Number of leading bytes of `text` that stand for themselves in a JSON string: printable ASCII
/// but for the quote and the backslash.
#[must_use]
pub fn plain_run_bytes(text: &[u8]) -> usize {
    let (words, rest) = text.as_chunks::<8>();
    let mut run = 0;
    for word in words {
        let marks = special_marks(u64::from_le_bytes(*word));
        if marks != 0 {
            return run + (marks.trailing_zeros() / 8) as usize;
        }
        run += 8;
    }
    run + rest.iter().take_while(|&&byte| is_plain(byte)).count()
}

/// Whether `byte` stands for itself in a JSON string.
#[must_use]
pub fn is_plain(byte: u8) -> bool {
    matches!(byte, 0x20..0x80) && byte != b'"' && byte != b'\\'
}

/// Sets the high bit of the first byte of `word` that is not plain. Bits above that byte mean
/// nothing: the subtraction borrows upwards.
fn special_marks(word: u64) -> u64 {
    let quote = word ^ (ONES * u64::from(b'"'));
    let backslash = word ^ (ONES * u64::from(b'\\'));
    let is_quote = quote.wrapping_sub(ONES) & !quote;
    let is_backslash = backslash.wrapping_sub(ONES) & !backslash;
    let is_control = word.wrapping_sub(ONES * 0x20) & !word;
    (is_quote | is_backslash | is_control | word) & HIGHS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_offset_agrees_with_the_definition() {
        for offset in 0..24 {
            for byte in 0..=u8::MAX {
                let mut text = [b'a'; 24];
                text.get_mut(offset).map(|slot| *slot = byte).expect("the offset is in the text");
                let expected = if is_plain(byte) { 24 } else { offset };
                assert_eq!(plain_run_bytes(&text), expected, "byte {byte:#x} at {offset}");
            }
        }
    }
}
