//! Tokens of a probe.

use std::fmt;

/// Token of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// Name of a variable, a type or a function.
    Name(String),
    /// Integer without a sign.
    Integer(i128),
    /// Register, without its `$`.
    Register(String),
    /// Text in double quotes, without them.
    Text(String),
    /// Option, without its `--`.
    Option(String),
    /// Operator or bracket.
    Sign(&'static str),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Name(name) => f.write_str(name),
            Token::Integer(number) => number.fmt(f),
            Token::Register(name) => write!(f, "${name}"),
            Token::Text(text) => write!(f, "\"{text}\""),
            Token::Option(name) => write!(f, "--{name}"),
            Token::Sign(sign) => f.write_str(sign),
        }
    }
}

/// Options of a probe.
const OPTIONS: [&str; 3] = ["if", "count", "stack"];

/// Operators and brackets. A sign comes before its own beginnings.
const SIGNS: [&str; 27] = [
    "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "->", "<", ">", "+", "-", "*", "&", "|", "^", "~", "!",
    "(", ")", "[", "]", ".", ",", "/", "%",
];

fn is_in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Splits a text into tokens.
///
/// # Errors
/// Returns what is wrong with the text, in words.
pub fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = token(rest, first)?;
        tokens.push(token);
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    Ok(tokens)
}

/// Returns the first token of a text and its length in bytes.
fn token(rest: &str, first: char) -> Result<(Token, usize), String> {
    let name_of = |from: usize| {
        let all = rest.get(from..).unwrap_or_default();
        all.split(|c| !is_in_name(c)).next().unwrap_or_default()
    };
    if first == '"' {
        return quoted(rest);
    }
    if first == '\'' {
        return character(rest);
    }
    if first.is_ascii_digit() {
        let word = name_of(0);
        let number = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => word.parse(),
        };
        let number = number.map_err(|_| format!("{word} is not a number of up to 64 bits"))?;
        return Ok((Token::Integer(number.into()), word.len()));
    }
    if is_in_name(first) {
        let word = name_of(0);
        return Ok((Token::Name(word.to_owned()), word.len()));
    }
    if first == '$' {
        let word = name_of(1);
        return Ok((Token::Register(word.to_owned()), word.len() + 1));
    }
    if rest.starts_with("--") && OPTIONS.contains(&name_of(2)) {
        let word = name_of(2);
        return Ok((Token::Option(word.to_owned()), word.len() + 2));
    }
    match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
        Some(sign) => Ok((Token::Sign(sign), sign.len())),
        None => Err(format!("\"{}\" has no meaning in an expression", first.escape_default())),
    }
}

/// Returns a text in double quotes. A backslash stands before a quote or another backslash.
fn quoted(rest: &str) -> Result<(Token, usize), String> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((Token::Text(text), at + 1)),
            '\\' => match chars.next() {
                Some((_, c @ ('"' | '\\'))) => text.push(c),
                _ => return Err("in a text, a backslash must stand before a quote or a backslash".to_owned()),
            },
            c => text.push(c),
        }
    }
    Err("a text does not end with a double quote".to_owned())
}

/// Returns an ASCII character in single quotes as an integer.
fn character(rest: &str) -> Result<(Token, usize), String> {
    let mut chars = rest.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some(c), Some('\'')) if c.is_ascii() && c != '\\' => {
            Ok((Token::Integer(i128::from(u32::from(c))), 3))
        }
        _ => Err("a character must be ASCII and in single quotes, as in 'x'".to_owned()),
    }
}
