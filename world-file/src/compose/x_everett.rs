//! Converts the block `x-everett` of a compose file to a TOML table, so that the readers of world files can read it.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::yaml::{Kind, Node};
use crate::error::Error;

/// Range of each line in a text, in bytes.
pub(super) struct Lines(Vec<Range<usize>>);

impl Lines {
    pub(super) fn of(text: &str) -> Lines {
        let mut lines = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            lines.push(start..start + line.trim_end_matches(['\n', '\r']).len());
            start += line.len();
        }
        Lines(lines)
    }

    fn span(&self, node_line: usize) -> Range<usize> {
        self.0.get(node_line.saturating_sub(1)).cloned().unwrap_or(0..0)
    }
}

/// Returns the block as a table. If there is no block, the table is empty.
pub(super) fn table<'n>(node: Option<&'n Node>, lines: &Lines) -> Result<DeTable<'n>, Error> {
    let Some(node) = node else { return Ok(DeTable::new()) };
    match value(node, lines, "x-everett")? {
        DeValue::Table(table) => Ok(table),
        _ => Err(node.at.error("x-everett", "expected a mapping")),
    }
}

fn value<'n>(node: &'n Node, lines: &Lines, path: &str) -> Result<DeValue<'n>, Error> {
    Ok(match &node.kind {
        Kind::Scalar(_) if node.is_null() => return Err(node.at.error(path, "there is no value")),
        Kind::Scalar(scalar) => match scalar.text.as_str() {
            "true" if scalar.is_plain => DeValue::Boolean(true),
            "false" if scalar.is_plain => DeValue::Boolean(false),
            text if scalar.is_plain && is_number(text) => match DeValue::parse(text) {
                Ok(number) => number.into_inner(),
                Err(_) => DeValue::String(Cow::Borrowed(text)),
            },
            text => DeValue::String(Cow::Borrowed(text)),
        },
        Kind::List(items) => {
            let mut list = DeArray::new();
            for (number, item) in items.iter().enumerate() {
                let place = lines.span(item.at.line);
                list.push(Spanned::new(place, value(item, lines, &format!("{path}[{number}]"))?));
            }
            DeValue::Array(list)
        }
        Kind::Map(entries) => {
            let mut table = DeTable::new();
            for (key, item) in entries {
                let name = Spanned::new(lines.span(key.at.line), Cow::Borrowed(key.name.as_str()));
                let place = lines.span(item.at.line);
                let item = value(item, lines, &format!("{path}.{}", key.name))?;
                table.insert(name, Spanned::new(place, item));
            }
            DeValue::Table(table)
        }
    })
}

/// Returns true if a text looks like a number in TOML.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || b"._".contains(&byte))
}
