//! Replaces variables (`${NAME}`) in compose files, and parses the files that set variables.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::yaml::{Kind, Node, Scalar};
use crate::error::Error;

/// Maximum length of a text after its variables are replaced, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Maximum depth of nested defaults such as `${A:-${B:-c}}`.
const DEPTH_MAX: usize = 16;
/// Maximum number of variables that one file sets.
const VARIABLES_MAX: usize = 4_096;

/// Environment variables of Everett's process, and variables that files set. If both have a variable, the process takes
/// precedence.
pub(super) struct Variables<'p> {
    process: &'p dyn Fn(&str) -> Option<String>,
    files: BTreeMap<String, String>,
    /// Names of variables that had neither a value nor a default.
    missing: RefCell<BTreeSet<String>>,
}

impl<'p> Variables<'p> {
    pub(super) fn new(process: &'p dyn Fn(&str) -> Option<String>) -> Variables<'p> {
        Variables { process, files: BTreeMap::new(), missing: RefCell::default() }
    }

    /// Adds variables that a file sets.
    pub(super) fn extend(&mut self, variables: impl IntoIterator<Item = (String, String)>) {
        self.files.extend(variables);
    }

    pub(super) fn get(&self, name: &str) -> Option<String> {
        (self.process)(name).or_else(|| self.files.get(name).cloned())
    }

    /// Returns the names of variables that had no value and became empty.
    pub(super) fn missing(&self) -> Vec<String> {
        self.missing.borrow().iter().cloned().collect()
    }

    /// Replaces the variables in all texts of a YAML tree. Keys of mappings stay as they are.
    pub(super) fn replace(&self, node: &Rc<Node>, path: &str) -> Result<Rc<Node>, Error> {
        let child = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let kind = match &node.kind {
            Kind::Scalar(scalar) if scalar.text.contains('$') => {
                let text = self.text(&scalar.text).map_err(|what| node.at.error(path, what))?;
                Kind::Scalar(Scalar { text, is_plain: false })
            }
            Kind::Scalar(_) => return Ok(Rc::clone(node)),
            Kind::List(items) => {
                let item = |(number, item)| self.replace(item, &format!("{path}[{number}]"));
                Kind::List(items.iter().enumerate().map(item).collect::<Result<_, _>>()?)
            }
            Kind::Map(entries) => {
                let entry = |(key, value): &(super::yaml::Key, Rc<Node>)| {
                    Ok((key.clone(), self.replace(value, &child(&key.name))?))
                };
                Kind::Map(entries.iter().map(entry).collect::<Result<_, Error>>()?)
            }
        };
        Node::new(node.at.clone(), kind).bounded()
    }

    /// Replaces the variables in a text.
    pub(super) fn text(&self, text: &str) -> Result<String, String> {
        let mut out = String::new();
        let rest = self.until_brace(text, &mut out, 0, false)?;
        debug_assert!(rest.is_empty());
        Ok(out)
    }

    /// Replaces variables up to the end of the text, or up to the brace that closes a default. Returns the text that
    /// remains.
    fn until_brace<'t>(
        &self,
        text: &'t str,
        out: &mut String,
        depth: usize,
        in_braces: bool,
    ) -> Result<&'t str, String> {
        let mut rest = text;
        loop {
            if out.len() > TEXT_BYTES_MAX {
                return Err(format!("with its variables this has more than {TEXT_BYTES_MAX} bytes"));
            }
            let Some(place) = rest.find(|c| c == '$' || in_braces && c == '}') else {
                if in_braces {
                    return Err(NOT_CLOSED.to_owned());
                }
                out.push_str(rest);
                return Ok("");
            };
            out.push_str(&rest[..place]);
            rest = &rest[place..];
            if rest.starts_with('}') {
                return Ok(rest);
            }
            rest = &rest[1..];
            if let Some(after) = rest.strip_prefix('$') {
                out.push('$');
                rest = after;
            } else if let Some(after) = rest.strip_prefix('{') {
                rest = self.braces(after, out, depth)?;
            } else {
                let name = name_of(rest);
                if name.is_empty() {
                    return Err("a \"$\" without a name; write \"$$\" for a dollar sign".to_owned());
                }
                out.push_str(&self.or_empty(name));
                rest = &rest[name.len()..];
            }
        }
    }

    /// Replaces the variable whose `${` was just read. Returns the text after the closing brace.
    fn braces<'t>(&self, text: &'t str, out: &mut String, depth: usize) -> Result<&'t str, String> {
        if depth >= DEPTH_MAX {
            return Err(format!("more than {DEPTH_MAX} variables within each other"));
        }
        let name = name_of(text);
        if name.is_empty() {
            return Err("\"${\" without a name".to_owned());
        }
        let rest = &text[name.len()..];
        if let Some(rest) = rest.strip_prefix('}') {
            out.push_str(&self.or_empty(name));
            return Ok(rest);
        }
        let (also_empty, rest) = match rest.strip_prefix(':') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let Some(operator) = rest.chars().next().filter(|c| "-?+".contains(*c)) else {
            return Err(if rest.is_empty() {
                NOT_CLOSED.to_owned()
            } else {
                format!("\"${{{name}\" is followed by something else than :-, -, :?, ?, :+, + or a brace")
            });
        };
        let mut other = String::new();
        let rest = self.until_brace(&rest[1..], &mut other, depth + 1, true)?;
        let value = self.get(name).filter(|value| !also_empty || !value.is_empty());
        match (operator, value) {
            ('-', None) | ('+', Some(_)) => out.push_str(&other),
            ('-' | '?', Some(value)) => out.push_str(&value),
            ('+', None) => {}
            _ if other.is_empty() => return Err(format!("the variable {name} must be set")),
            _ => return Err(format!("the variable {name} must be set: {other}")),
        }
        Ok(&rest[1..])
    }

    fn or_empty(&self, name: &str) -> String {
        self.get(name).unwrap_or_else(|| {
            self.missing.borrow_mut().insert(name.to_owned());
            String::new()
        })
    }
}

const NOT_CLOSED: &str = "\"${\" without a closing brace";

/// Returns the variable name at the start of a text, or an empty text if there is none.
fn name_of(text: &str) -> &str {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    if !text.starts_with(is_first) {
        return "";
    }
    let end = text.find(|c: char| !is_first(c) && !c.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}

/// Parses a file that sets variables, such as `.env` or a file of `env_file`. If `variables` is given, variables in
/// values are replaced, and a line with only a name gets the value that `variables` has for this name. If `variables`
/// is `None`, values are taken literally. A name that gets no value is left out. Errors have a line number.
pub(super) fn of_file(
    text: &str,
    variables: Option<&Variables<'_>>,
) -> Result<Vec<(String, String)>, (usize, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let number = number + 1;
        let line = line.trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim_end(), Some(value.trim_start())),
            None => (line.trim_end(), None),
        };
        if name.is_empty() || name.contains([' ', '\t', '\0']) {
            return Err((number, format!("\"{}\" is not the name of a variable", name.escape_debug())));
        }
        let value = match (value, variables) {
            (None, variables) => {
                let Some(value) = variables.and_then(|variables| variables.get(name)) else { continue };
                value
            }
            (Some(value), None) => value.to_owned(),
            (Some(value), Some(variables)) => {
                let mut value = value.to_owned();
                while opens_quote(&value) {
                    let Some((_, more)) = lines.next() else {
                        return Err((number, "a quote is not closed".to_owned()));
                    };
                    value.push('\n');
                    value.push_str(more);
                }
                unquoted(&value, variables).map_err(|what| (number, what))?
            }
        };
        if value.contains('\0') {
            return Err((number, "a value with a NUL".to_owned()));
        }
        found.push((name.to_owned(), value));
        if found.len() > VARIABLES_MAX {
            return Err((number, format!("more than {VARIABLES_MAX} variables")));
        }
    }
    Ok(found)
}

/// Returns true if a value starts with a quote that is not closed in the value.
fn opens_quote(value: &str) -> bool {
    let Some(quote) = value.chars().next().filter(|c| "'\"".contains(*c)) else { return false };
    closing(&value[1..], quote).is_none()
}

/// Returns the offset of the quote that closes a quoted text, in bytes.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(place, c)| {
        let here = c == quote && !is_escaped;
        is_escaped = c == '\\' && !is_escaped && quote == '"';
        here.then_some(place)
    })
}

fn unquoted(value: &str, variables: &Variables<'_>) -> Result<String, String> {
    let Some(quote) = value.chars().next().filter(|c| "'\"".contains(*c)) else {
        // A comment must follow white space.
        let end = value.find(" #").or_else(|| value.find("\t#")).unwrap_or(value.len());
        let end = if value.starts_with('#') { 0 } else { end };
        return variables.text(value[..end].trim_end());
    };
    let inner = closing(&value[1..], quote).map_or(&value[1..], |end| &value[1..=end]);
    if quote == '\'' {
        return Ok(inner.to_owned());
    }
    let mut text = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => text.push('\n'),
            ('\\', Some('r')) => text.push('\r'),
            ('\\', Some('t')) => text.push('\t'),
            ('\\', Some('$')) => text.push_str("$$"),
            ('\\', Some(other)) => text.push(other),
            (c, _) => text.push(c),
        }
    }
    variables.text(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(name: &str) -> Option<String> {
        match name {
            "SET" => Some("value".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn all_forms_of_variables() {
        let variables = Variables::new(&process);
        for (text, wanted) in [
            ("$SET/x", "value/x"),
            ("${SET}x", "valuex"),
            ("$$SET", "$SET"),
            ("a$${SET}", "a${SET}"),
            ("${NONE:-other}", "other"),
            ("${EMPTY:-other}", "other"),
            ("${EMPTY-other}", ""),
            ("${NONE-other}", "other"),
            ("${SET:+other}", "other"),
            ("${EMPTY:+other}", ""),
            ("${EMPTY+other}", "other"),
            ("${NONE+other}", ""),
            ("${SET:?why}", "value"),
            ("${NONE:-a ${SET} ${NONE:-b}}c", "a value bc"),
            ("${NONE}", ""),
            ("100%", "100%"),
        ] {
            assert_eq!(variables.text(text).as_deref(), Ok(wanted), "{text}");
        }
        assert_eq!(variables.missing(), ["NONE"]);
        for (text, what) in [
            ("${NONE:?why}", "the variable NONE must be set: why"),
            ("${EMPTY:?}", "the variable EMPTY must be set"),
            ("${SET", "\"${\" without a closing brace"),
            ("${SET:-x", "\"${\" without a closing brace"),
            ("${}", "\"${\" without a name"),
            ("a $ b", "a \"$\" without a name; write \"$$\" for a dollar sign"),
            ("${SET!}", "\"${SET\" is followed by something else than :-, -, :?, ?, :+, + or a brace"),
        ] {
            assert_eq!(variables.text(text), Err(what.to_owned()), "{text}");
        }
        let deep = format!("{}{}", "${NONE:-".repeat(20), "}".repeat(20));
        assert_eq!(variables.text(&deep), Err("more than 16 variables within each other".to_owned()));
    }

    #[test]
    fn files_of_variables() {
        let variables = Variables::new(&process);
        let text = "# comment\n\nA=1\nexport B = two words # comment\nC='$SET #'\nD=\"x\\n$SET\"\nE=\nSET\nNONE\nF=a#b\n\
                    G=\"first\nsecond\"\nH=${SET}!\n";
        let found = of_file(text, Some(&variables)).unwrap();
        let wanted = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "$SET #"),
            ("D", "x\nvalue"),
            ("E", ""),
            ("SET", "value"),
            ("F", "a#b"),
            ("G", "first\nsecond"),
            ("H", "value!"),
        ];
        assert_eq!(found, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(of_file("A='$x'\n", None).unwrap(), [("A".to_owned(), "'$x'".to_owned())]);
        assert_eq!(of_file("A=1\nB='x", Some(&variables)), Err((2, "a quote is not closed".to_owned())));
        assert_eq!(of_file("A B=1", None).unwrap_err().0, 1);
    }
}
