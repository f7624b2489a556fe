//! Why a message of a pod is refused. Pure; any shard.

use crate::json::{Failure, SyntaxError};
use crate::mcp::fault::Fault;

/// Why a message is refused.
///
/// Stays inside the proxy but for its [`label`](Self::label) in counters and the offline check;
/// a client is shown the [`fault`](Self::fault).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum Why {
    /// An array answers a single request.
    #[error("an array, and no array was asked")]
    ArrayNotAsked,
    /// `[]`.
    #[error("an empty array")]
    ArrayEmpty,
    /// A key of the envelope or of `error` stands twice.
    #[error("a key of the envelope or of its error stands twice")]
    KeyDuplicated,
    /// A key that a parser blind to case takes for one of the envelope or of `error`.
    #[error("a key differs from one of the protocol only by case")]
    KeyDisguised,
    /// `code` is absent.
    #[error("the error has no code")]
    ErrorCodeMissing,
    /// `code` is not an integer.
    #[error("the error's code is not an integer")]
    ErrorCodeInvalid,
    /// `message` is absent.
    #[error("the error has no message")]
    ErrorMessageMissing,
    /// `message` is not a string.
    #[error("the error's message is not a string")]
    ErrorMessageInvalid,
    /// `error` is not an object.
    #[error("the error is not an object")]
    ErrorNotObject,
    /// An error without an id, or with null, answers a single request.
    #[error("an error without the id of the request")]
    ErrorWithoutId,
    /// An event longer than its bound.
    #[error("an event larger than the limit")]
    EventTooLarge,
    /// A result without an id.
    #[error("a result without an id")]
    IdMissing,
    /// An id that is neither a string nor an integer.
    #[error("an id that is neither a string nor an integer")]
    IdInvalid,
    /// The id is of no request that was asked.
    #[error("an id that was not asked")]
    IdNotAsked,
    /// The request of this id has its answer already.
    #[error("an id that was answered before")]
    IdAnswered,
    /// A control character inside a string.
    #[error("a control character in a string")]
    JsonControl,
    /// Nested deeper than the limit.
    #[error("nested too deep")]
    JsonDepth,
    /// A backslash that begins no escape.
    #[error("a bad escape")]
    JsonEscape,
    /// Something after the value.
    #[error("bytes after the value")]
    JsonTrailing,
    /// The text ends before its value does, or is empty.
    #[error("the text ends too early")]
    JsonTruncated,
    /// A byte that can't stand where it stands.
    #[error("a byte that can't stand here")]
    JsonUnexpected,
    /// Bytes that are not UTF-8.
    #[error("invalid UTF-8")]
    JsonUtf8,
    /// A response in an event has a member that no response has.
    #[error("a member that no response has")]
    MemberForeign,
    /// `method` beside `result` or `error`: some clients take it for a request.
    #[error("a method beside a result or an error")]
    MethodBesideAnswer,
    /// `method` is not a string.
    #[error("the method is not a string")]
    MethodInvalid,
    /// The text, or an element of the array, is not an object.
    #[error("the message is not an object")]
    NotObject,
    /// A request or notification where only an answer can stand.
    #[error("a request or notification in place of an answer")]
    NotResponse,
    /// Both `result` and `error`.
    #[error("both a result and an error")]
    ResultAndError,
    /// Neither `result` nor `error`, nor `method`.
    #[error("neither a result nor an error")]
    ResultMissing,
    /// `result` is not an object.
    #[error("the result is not an object")]
    ResultNotObject,
    /// `jsonrpc` is absent.
    #[error("jsonrpc is missing")]
    VersionMissing,
    /// `jsonrpc` is not the string "2.0".
    #[error("jsonrpc is not the string 2.0")]
    VersionWrong,
}

/// A refusal and where it was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The rule.
    pub why: Why,
    /// The offending byte, or the last byte of the token that broke the rule; the length of the
    /// text when it ends too early. Distance from the start of the text (of the stream, for an
    /// event), in bytes.
    pub offset: u64,
}

impl Why {
    /// Every reason, in the order of its declaration.
    pub const ALL: [Self; 32] = [
        Self::ArrayNotAsked,
        Self::ArrayEmpty,
        Self::KeyDuplicated,
        Self::KeyDisguised,
        Self::ErrorCodeMissing,
        Self::ErrorCodeInvalid,
        Self::ErrorMessageMissing,
        Self::ErrorMessageInvalid,
        Self::ErrorNotObject,
        Self::ErrorWithoutId,
        Self::EventTooLarge,
        Self::IdMissing,
        Self::IdInvalid,
        Self::IdNotAsked,
        Self::IdAnswered,
        Self::JsonControl,
        Self::JsonDepth,
        Self::JsonEscape,
        Self::JsonTrailing,
        Self::JsonTruncated,
        Self::JsonUnexpected,
        Self::JsonUtf8,
        Self::MemberForeign,
        Self::MethodBesideAnswer,
        Self::MethodInvalid,
        Self::NotObject,
        Self::NotResponse,
        Self::ResultAndError,
        Self::ResultMissing,
        Self::ResultNotObject,
        Self::VersionMissing,
        Self::VersionWrong,
    ];

    /// The name in counters and in the offline check. Stable.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::ArrayNotAsked => "array_not_asked",
            Self::ArrayEmpty => "array_empty",
            Self::KeyDuplicated => "key_duplicated",
            Self::KeyDisguised => "key_disguised",
            Self::ErrorCodeMissing => "error_code_missing",
            Self::ErrorCodeInvalid => "error_code_invalid",
            Self::ErrorMessageMissing => "error_message_missing",
            Self::ErrorMessageInvalid => "error_message_invalid",
            Self::ErrorNotObject => "error_not_object",
            Self::ErrorWithoutId => "error_without_id",
            Self::EventTooLarge => "event_too_large",
            Self::IdMissing => "id_missing",
            Self::IdInvalid => "id_invalid",
            Self::IdNotAsked => "id_not_asked",
            Self::IdAnswered => "id_answered",
            Self::JsonControl => "json_control",
            Self::JsonDepth => "json_depth",
            Self::JsonEscape => "json_escape",
            Self::JsonTrailing => "json_trailing",
            Self::JsonTruncated => "json_truncated",
            Self::JsonUnexpected => "json_unexpected",
            Self::JsonUtf8 => "json_utf8",
            Self::MemberForeign => "member_foreign",
            Self::MethodBesideAnswer => "method_beside_answer",
            Self::MethodInvalid => "method_invalid",
            Self::NotObject => "not_object",
            Self::NotResponse => "not_response",
            Self::ResultAndError => "result_and_error",
            Self::ResultMissing => "result_missing",
            Self::ResultNotObject => "result_not_object",
            Self::VersionMissing => "version_missing",
            Self::VersionWrong => "version_wrong",
        }
    }

    /// What the client is answered.
    #[must_use]
    pub const fn fault(self) -> Fault {
        match self {
            Self::JsonControl
            | Self::JsonDepth
            | Self::JsonEscape
            | Self::JsonTrailing
            | Self::JsonTruncated
            | Self::JsonUnexpected
            | Self::JsonUtf8 => Fault::UpstreamNotJson,
            Self::ErrorWithoutId | Self::IdNotAsked | Self::IdAnswered => Fault::UpstreamWrongId,
            Self::EventTooLarge => Fault::UpstreamEventTooLarge,
            Self::ArrayNotAsked
            | Self::ArrayEmpty
            | Self::KeyDuplicated
            | Self::KeyDisguised
            | Self::ErrorCodeMissing
            | Self::ErrorCodeInvalid
            | Self::ErrorMessageMissing
            | Self::ErrorMessageInvalid
            | Self::ErrorNotObject
            | Self::IdMissing
            | Self::IdInvalid
            | Self::MemberForeign
            | Self::MethodBesideAnswer
            | Self::MethodInvalid
            | Self::NotObject
            | Self::NotResponse
            | Self::ResultAndError
            | Self::ResultMissing
            | Self::ResultNotObject
            | Self::VersionMissing
            | Self::VersionWrong => Fault::UpstreamNotJsonRpc,
        }
    }
}

impl From<SyntaxError> for Why {
    fn from(error: SyntaxError) -> Self {
        match error {
            SyntaxError::Unexpected => Self::JsonUnexpected,
            SyntaxError::Control => Self::JsonControl,
            SyntaxError::Escape => Self::JsonEscape,
            SyntaxError::Utf8 => Self::JsonUtf8,
            SyntaxError::Depth => Self::JsonDepth,
            SyntaxError::Trailing => Self::JsonTrailing,
            SyntaxError::Truncated => Self::JsonTruncated,
        }
    }
}

impl From<Failure<Why>> for Refusal {
    fn from(failure: Failure<Why>) -> Self {
        match failure {
            Failure::Syntax { error, offset } => Self { why: error.into(), offset },
            // The automaton gives the end of the token; its last byte is what a reader looks for,
            // and it stands whatever follows.
            Failure::Rule { why, offset } => Self { why, offset: offset.saturating_sub(1) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RV-11: counters and the offline check tell the reasons apart.
    #[test]
    fn labels_are_distinct_and_in_order() {
        for (index, why) in Why::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, index, "{why:?} is out of order");
            let is_snake = why
                .label()
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
            assert!(is_snake, "{}", why.label());
            let twins = Why::ALL.iter().filter(|other| other.label() == why.label());
            assert_eq!(twins.count(), 1, "{}", why.label());
        }
    }
}
