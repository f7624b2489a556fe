//! The grammar of a number (RFC 8259, section 6), one byte at a time.

/// How far a number has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl Number {
    /// The state after one more byte, if the byte belongs to the number.
    pub(super) fn after(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Minus, b'0') => Some(Self::Zero),
            (Self::Minus, b'1'..=b'9') | (Self::Integer, b'0'..=b'9') => Some(Self::Integer),
            (Self::Zero | Self::Integer, b'.') => Some(Self::Point),
            (Self::Point | Self::Fraction, b'0'..=b'9') => Some(Self::Fraction),
            (Self::Zero | Self::Integer | Self::Fraction, b'e' | b'E') => Some(Self::Exponent),
            (Self::Exponent, b'+' | b'-') => Some(Self::ExponentSign),
            (Self::Exponent | Self::ExponentSign | Self::ExponentDigits, b'0'..=b'9') => {
                Some(Self::ExponentDigits)
            }
            _ => None,
        }
    }

    /// Whether the number is whole if it ends here.
    pub(super) fn may_end(self) -> bool {
        match self {
            Self::Zero | Self::Integer | Self::Fraction | Self::ExponentDigits => true,
            Self::Minus | Self::Point | Self::Exponent | Self::ExponentSign => false,
        }
    }
}
