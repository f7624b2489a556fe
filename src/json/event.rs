//! What is told of a JSON text while it is read, and why one is refused.

/// The two kinds of container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
}

/// The kinds of value that are not containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// A string; its text is what stands between the quotes, escapes untouched.
    String,
    /// A number; its text is the whole token.
    Number,
    /// `true` or `false`.
    Boolean,
    /// `null`.
    Null,
}

/// Whether the members of a container that opens are reported to the visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members {
    /// Each key, scalar and container directly inside is reported, and the close.
    Reported,
    /// Nothing inside is reported, at any depth, and the close is not either.
    Skipped,
}

/// The raw text of a key or scalar. The same whatever the cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text<'a> {
    /// The whole token, at most [`JSON_CAPTURE_BYTES_MAX`](crate::limits::JSON_CAPTURE_BYTES_MAX)
    /// bytes, valid UTF-8, escapes untouched.
    Whole(&'a [u8]),
    /// The token is longer than that.
    TooLong,
}

/// What is told while a text is read.
pub trait Visitor {
    /// Why a text is refused although it is JSON.
    type Why: Copy;

    /// A container opens, as the root or as a member of a reported container.
    ///
    /// # Errors
    ///
    /// The text is refused here.
    fn open(&mut self, container: Container) -> Result<Members, Self::Why>;

    /// A reported container closes.
    ///
    /// # Errors
    ///
    /// The text is refused here.
    fn close(&mut self, container: Container) -> Result<(), Self::Why>;

    /// A key of a reported object, as it is written (compare with [`unescape`](super::unescape)).
    ///
    /// # Errors
    ///
    /// The text is refused here.
    fn key(&mut self, text: Text<'_>) -> Result<(), Self::Why>;

    /// A scalar, as the root or as a member of a reported container.
    ///
    /// # Errors
    ///
    /// The text is refused here.
    fn scalar(&mut self, scalar: Scalar, text: Text<'_>) -> Result<(), Self::Why>;
}

/// Why bytes are not one JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    /// A byte that can't stand where it stands.
    #[error("a byte that can't stand here")]
    Unexpected,
    /// A control character inside a string.
    #[error("a control character in a string")]
    Control,
    /// A backslash that begins no escape.
    #[error("a bad escape")]
    Escape,
    /// Bytes that are not UTF-8.
    #[error("invalid UTF-8")]
    Utf8,
    /// Arrays and objects nested deeper than the limit.
    #[error("nested too deep")]
    Depth,
    /// Something after the value.
    #[error("bytes after the value")]
    Trailing,
    /// The text ends before its value does, or is empty.
    #[error("the text ends too early")]
    Truncated,
}

/// Why a text is refused, and at which byte of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure<Why> {
    /// It is not JSON.
    Syntax {
        /// What is wrong.
        error: SyntaxError,
        /// Distance from the start of the text, in bytes.
        offset: u64,
    },
    /// It is JSON so far, and the visitor refuses it.
    Rule {
        /// What the visitor said.
        why: Why,
        /// Distance from the start of the text to the end of the token, in bytes.
        offset: u64,
    },
}
