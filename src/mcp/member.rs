//! Tells which member of an object a key names, and which keys only look like one.

use crate::json::Text;
use crate::json::text::characters;

/// What a key is among the names that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named<M> {
    /// This one, once its escapes are resolved.
    Exactly(M),
    /// None, but a parser that ignores case takes it for one: Go's standard one does, and also
    /// folds U+017F to `s` and U+212A to `k`.
    Disguised,
    /// None.
    Not,
}

/// Which of `names` a key is.
pub(super) fn named<M: Copy>(text: Text<'_>, names: &[(&[u8], M)]) -> Named<M> {
    let Text::Whole(text) = text else { return Named::Not };
    if let Some(&(_, member)) = names.iter().find(|(name, _)| *name == text) {
        return Named::Exactly(member);
    }
    let mut outcome = Named::Not;
    // Each byte of a name is at most one escape, and a folded character is at most three bytes.
    let is_near = |name: &[u8]| name.len() <= text.len() && text.len() <= 6 * name.len();
    for &(name, member) in names.iter().filter(|(name, _)| is_near(name)) {
        let letters = || name.iter().map(|&letter| u32::from(letter));
        if characters(text).eq(letters()) {
            return Named::Exactly(member);
        }
        // NUL ends a string for some parsers.
        let spelled = characters(text).take_while(|&character| character != 0).map(fold);
        if spelled.eq(letters().map(fold)) {
            outcome = Named::Disguised;
        }
    }
    outcome
}

fn fold(character: u32) -> u32 {
    match character {
        0x41..=0x5A => character + 0x20,
        0x017F => u32::from(b's'),
        0x212A => u32::from(b'k'),
        _ => character,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RC-1, RV-2: a name, a name in disguise, and what merely resembles one.
    #[test]
    fn names() {
        let names: &[(&[u8], u8)] = &[(b"params", 1), (b"taskId", 2), (b"k", 3)];
        let check = |key: &str, expected| {
            assert_eq!(named(Text::Whole(key.as_bytes()), names), expected, "{key}");
        };
        check("params", Named::Exactly(1));
        check("p\\u0061rams", Named::Exactly(1));
        check("\\u0070\\u0061\\u0072\\u0061\\u006d\\u0073", Named::Exactly(1));
        check("taskId", Named::Exactly(2));
        check("Params", Named::Disguised);
        check("param\u{17f}", Named::Disguised);
        check("param\\u017f", Named::Disguised);
        check("params\\u0000", Named::Disguised);
        check("params\\u0000x", Named::Disguised);
        check("taskid", Named::Disguised);
        check("TASKID", Named::Disguised);
        check("\u{212a}", Named::Disguised);
        check("param", Named::Not);
        check("paramss", Named::Not);
        check("", Named::Not);
        check("par\u{e4}ms", Named::Not);
    }
}
