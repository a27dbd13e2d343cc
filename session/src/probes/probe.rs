//! A probe: the place of code, and what a hit prints.

use super::expression::Expression;
use super::expression::lexer::{Token, tokens};
use super::expression::parser::Parser;
use super::format::Format;
use super::limits::{PROBE_BYTES_MAX, VALUES_MAX};

/// Name of the kernel as a program.
pub const KERNEL: &str = "kernel";

/// A probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The place as the operator wrote it.
    pub name: String,
    /// Name or path of the program, or [`KERNEL`].
    pub program: String,
    /// Place in the program.
    pub place: Place,
    /// Format of the values.
    pub format: Option<Format>,
    /// Values, each with its expression as text.
    pub values: Vec<(String, Expression)>,
    /// A hit counts only if this expression is not 0.
    pub condition: Option<Expression>,
    /// True if hits are only counted.
    pub only_counts: bool,
    /// True if a hit prints its stack.
    pub has_stack: bool,
}

/// Place in a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Line of a source file, named by its path or by the end of its path.
    Line(String, u64),
    /// Function, and the distance from its start in bytes if the operator gave one.
    Function(String, Option<u64>),
    /// Address, as the program's file states it.
    Address(u64),
}

/// Reads an expression that is a whole text.
///
/// # Errors
/// Returns what is wrong with it, in words.
pub fn condition(text: &str) -> Result<Expression, String> {
    within(text)?;
    let tokens = tokens(text)?;
    let mut parser = Parser::new(&tokens);
    let expression = parser.expression()?;
    match parser.peek() {
        None => Ok(expression),
        Some(_) => Err(parser.unexpected("an operator")),
    }
}

fn within(text: &str) -> Result<(), String> {
    if text.len() <= PROBE_BYTES_MAX { Ok(()) } else { Err(format!("longer than {PROBE_BYTES_MAX} bytes")) }
}

impl Probe {
    /// Reads a probe: `PROGRAM:PLACE ["FORMAT"] [EXPRESSION, …] [--if EXPRESSION] [--count] [--stack]`.
    ///
    /// # Errors
    /// Returns what is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Probe, String> {
        within(text)?;
        let text = text.trim();
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let (program, place) = name
            .split_once(':')
            .filter(|(program, place)| !program.is_empty() && !place.is_empty())
            .ok_or("a probe begins with PROGRAM:FILE:LINE, PROGRAM:FUNCTION or PROGRAM:0xADDRESS")?;
        let place = Place::parse(place)?;
        if program == KERNEL && matches!(place, Place::Line(..)) {
            return Err("lines of the kernel are not known; name a function or an address".to_owned());
        }
        let tokens = tokens(rest)?;
        let mut parser = Parser::new(&tokens);
        let mut probe = Probe {
            name: name.to_owned(),
            program: program.to_owned(),
            place,
            format: None,
            values: Vec::new(),
            condition: None,
            only_counts: false,
            has_stack: false,
        };
        if let Some(Token::Text(format)) = parser.peek() {
            probe.format = Some(Format::parse(format)?);
            parser.take();
            parser.takes(",");
        }
        while !matches!(parser.peek(), None | Some(Token::Option(_))) {
            if probe.values.len() >= VALUES_MAX {
                return Err(format!("a probe prints at most {VALUES_MAX} values"));
            }
            let before = parser.rest();
            let value = parser.expression()?;
            let used = before.len() - parser.rest().len();
            let text = before[..used].iter().map(ToString::to_string).collect();
            probe.values.push((text, value));
            if !parser.takes(",") {
                break;
            }
        }
        loop {
            match parser.peek() {
                None => break,
                Some(Token::Option(option)) => {
                    parser.take();
                    match &option[..] {
                        "if" => probe.condition = Some(parser.expression()?),
                        "count" => probe.only_counts = true,
                        _ => probe.has_stack = true,
                    }
                }
                Some(_) => return Err(parser.unexpected("a comma or an operator")),
            }
        }
        if let Some(wanted) = probe.format.as_ref().map(Format::values)
            && wanted != probe.values.len()
        {
            return Err(format!("the format prints {wanted} values, but {} are given", probe.values.len()));
        }
        Ok(probe)
    }
}

impl Place {
    fn parse(text: &str) -> Result<Place, String> {
        let number = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        if let Some(digits) = text.strip_prefix("0x") {
            let address = u64::from_str_radix(digits, 16);
            return address.map(Place::Address).map_err(|_| format!("{text} is no address"));
        }
        if let Some((file, line)) = text.rsplit_once(':')
            && let Ok(line) = line.parse()
        {
            if file.is_empty() || line == 0 {
                return Err(format!("{text} is no line of a file"));
            }
            return Ok(Place::Line(file.to_owned(), line));
        }
        match text.rsplit_once('+') {
            Some((function, offset)) if !function.is_empty() => {
                let offset = number(offset).ok_or_else(|| format!("{offset} is no distance in bytes"))?;
                Ok(Place::Function(function.to_owned(), Some(offset)))
            }
            _ => Ok(Place::Function(text.to_owned(), None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_lines_functions_and_addresses() {
        let place = |text: &str| Probe::parse(text).map(|probe| (probe.program, probe.place));
        let function = |name: &str, offset| Place::Function(name.to_owned(), offset);
        assert_eq!(place("a:b.c:12"), Ok(("a".to_owned(), Place::Line("b.c".to_owned(), 12))));
        assert_eq!(place("a:f+0x1f"), Ok(("a".to_owned(), function("f", Some(31)))));
        assert_eq!(place("/bin/a:n::f"), Ok(("/bin/a".to_owned(), function("n::f", None))));
        assert_eq!(place("kernel:0xff"), Ok(("kernel".to_owned(), Place::Address(255))));
        for bad in ["", "a", "a:", ":b", "a:b.c:0", "a:f+x", "a:0xq", "kernel:a.c:1"] {
            assert!(place(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn options_follow_the_values() {
        let probe = Probe::parse("a:f \"%d of %s\" $rdi + 1, str($rsi) --if $rdi > 2 --stack").unwrap();
        let values: Vec<&str> = probe.values.iter().map(|(text, _)| &text[..]).collect();
        assert_eq!(values, ["$rdi+1", "str($rsi)"]);
        assert!(probe.condition.is_some() && probe.has_stack && !probe.only_counts);
        assert!(Probe::parse("a:f --count").unwrap().only_counts);
        for (bad, error) in [
            ("a:f \"%d\"", "the format prints 1 values, but 0 are given"),
            ("a:f \"%y\" 1", "the format has the unknown conversion %y"),
            ("a:f 1 2", "a comma or an operator is missing before \"2\""),
            ("a:f --if", "a value is missing at the end"),
        ] {
            assert_eq!(Probe::parse(bad).unwrap_err(), error, "{bad}");
        }
    }
}
