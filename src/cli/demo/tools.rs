//! The tools of a demonstration pod, the same in both eras. What takes time is only described here.

use std::time::Duration;

use serde_json::{Value, json};

use super::message::{INVALID_PARAMS, Object, Refusal, Request};

/// What a call gives.
#[derive(Debug)]
pub(super) struct Called {
    pub result: Object,
    /// What has to be counted before the result is due.
    pub count: Option<Count>,
}

/// Steps up to a number: one progress notification each, if the caller wants them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    /// From 1 to [`COUNT_MAX`].
    pub to: u64,
    /// Before each step.
    pub delay: Duration,
}

const COUNT_MAX: u64 = 100;
const DELAY_MS_MAX: u64 = 1_000;
const DELAY_MS_DEFAULT: u64 = 200;

impl From<Value> for Called {
    /// An answer that is due at once. A value that is no object gives an empty result.
    fn from(value: Value) -> Self {
        let result = if let Value::Object(result) = value { result } else { Object::new() };
        Self { result, count: None }
    }
}

/// The tools as `tools/list` tells them, all on one page.
///
/// # Errors
///
/// [`INVALID_PARAMS`] for any cursor: none is ever given out.
pub(super) fn list(request: &Request) -> Result<Called, Refusal> {
    if request.params.contains_key("cursor") {
        return Err(Refusal::in_band(INVALID_PARAMS, "there is no such page"));
    }
    let text = json!({ "type": "string", "description": "What to say." });
    let number = json!({ "type": "number" });
    Ok(json!({ "tools": [
        tool("echo", "Says the text back.", &json!({ "text": text }), &["text"]),
        tool("add", "Adds two numbers.", &json!({ "a": number, "b": number }), &["a", "b"]),
        tool("where_am_i", "Tells which pod answers.", &json!({}), &[]),
        tool(
            "count",
            "Counts in an event stream, with progress if asked for.",
            &json!({
                "to": { "type": "integer", "minimum": 1, "maximum": COUNT_MAX },
                "delay_ms": { "type": "integer", "minimum": 0, "maximum": DELAY_MS_MAX,
                    "default": DELAY_MS_DEFAULT },
            }),
            &["to"],
        ),
    ]})
    .into())
}

/// Calls the tool that `params.name` names.
///
/// # Errors
///
/// [`INVALID_PARAMS`] if there is no such tool, or the arguments are not an object. Arguments that
/// the tool itself can't take are a result with `isError`, so that a model can read why.
pub(super) fn call(pod: &str, request: &Request) -> Result<Called, Refusal> {
    let Some(name) = request.text_param("name") else {
        let why = "params.name is missing or not a string";
        return Err(Refusal::in_band(INVALID_PARAMS, why));
    };
    let none = Object::new();
    let arguments = match request.params.get("arguments") {
        None => &none,
        Some(Value::Object(arguments)) => arguments,
        Some(_) => {
            return Err(Refusal::in_band(INVALID_PARAMS, "params.arguments is not an object"));
        }
    };
    match name {
        "echo" => Ok(echo(arguments)),
        "add" => Ok(add(arguments)),
        "where_am_i" => Ok(said(pod)),
        "count" => Ok(count(arguments)),
        _ => Err(Refusal::in_band(INVALID_PARAMS, "there is no such tool")),
    }
}

fn tool(name: &str, description: &str, properties: &Value, required: &[&str]) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": required,
        },
    })
}

fn said(text: &str) -> Called {
    json!({ "content": [{ "type": "text", "text": text }] }).into()
}

fn failed(text: &str) -> Called {
    json!({ "content": [{ "type": "text", "text": text }], "isError": true }).into()
}

fn echo(arguments: &Object) -> Called {
    match arguments.get("text").and_then(Value::as_str) {
        Some(text) => said(text),
        None => failed("echo needs a string, `text`"),
    }
}

fn add(arguments: &Object) -> Called {
    let (Some(a), Some(b)) = (arguments.get("a"), arguments.get("b")) else {
        return failed("add needs two numbers, `a` and `b`");
    };
    // Integers stay exact; only what is no integer, or would overflow, goes through a float.
    let exact = a.as_i64().zip(b.as_i64()).and_then(|(a, b)| a.checked_add(b));
    if let Some(sum) = exact {
        return said(&sum.to_string());
    }
    match a.as_f64().zip(b.as_f64()) {
        Some((a, b)) if (a + b).is_finite() => said(&(a + b).to_string()),
        Some(_) => failed("the sum is too large"),
        None => failed("add needs two numbers, `a` and `b`"),
    }
}

fn count(arguments: &Object) -> Called {
    let to = arguments.get("to").and_then(Value::as_u64);
    let Some(to) = to.filter(|to| (1..=COUNT_MAX).contains(to)) else {
        return failed(&format!("count needs an integer, `to`, from 1 to {COUNT_MAX}"));
    };
    let delay_ms = match arguments.get("delay_ms") {
        None => Some(DELAY_MS_DEFAULT),
        Some(delay) => delay.as_u64().filter(|delay| *delay <= DELAY_MS_MAX),
    };
    let Some(delay_ms) = delay_ms else {
        return failed(&format!("`delay_ms` is an integer from 0 to {DELAY_MS_MAX}"));
    };
    let counted = said(&format!("counted to {to}"));
    Called { count: Some(Count { to, delay: Duration::from_millis(delay_ms) }), ..counted }
}
