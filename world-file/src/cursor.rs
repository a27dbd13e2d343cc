//! Strict, typed access to a parsed TOML document. Each value knows its line and the path of its key.

use std::path::Path;

use everett_explorer::suggest::nearest;
use everett_input::units::{self, UnitError};
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Error;

/// Text and path of a world file.
pub(super) struct Source<'a> {
    pub(super) file: &'a Path,
    pub(super) text: &'a str,
}

impl Source<'_> {
    pub(super) fn line_at(&self, offset: usize) -> usize {
        let before = self.text.get(..offset).unwrap_or(self.text);
        before.bytes().filter(|b| *b == b'\n').count() + 1
    }

    fn error(&self, offset: usize, key: &str, what: String) -> Error {
        Error { file: self.file.to_owned(), line: Some(self.line_at(offset)), key: key.to_owned(), what }
    }
}

/// A table of the document.
pub(super) struct Table<'a> {
    pub(super) source: &'a Source<'a>,
    /// Path of the table's key. Empty for the document itself.
    pub(super) path: String,
    offset: usize,
    entries: &'a DeTable<'a>,
}

impl<'a> Table<'a> {
    pub(super) fn root(source: &'a Source<'a>, entries: &'a DeTable<'a>) -> Table<'a> {
        Table { source, path: String::new(), offset: 0, entries }
    }

    /// Returns a table of a document that is not TOML, such as `x-everett` of a compose file. The table starts at
    /// `line` of the document.
    pub(super) fn block(
        source: &'a Source<'a>,
        path: &str,
        line: usize,
        entries: &'a DeTable<'a>,
    ) -> Table<'a> {
        let before = source.text.split_inclusive('\n').take(line.saturating_sub(1));
        Table { source, path: path.to_owned(), offset: before.map(str::len).sum(), entries }
    }

    fn child_path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Returns an error for the first key that is not in `keys`. If the key is in `later`, the error says "not
    /// supported yet".
    pub(super) fn only(&self, keys: &[&str], later: &[&str]) -> Result<(), Error> {
        for key in self.entries.keys() {
            let name: &str = key.get_ref();
            if keys.contains(&name) {
                continue;
            }
            let what = if later.contains(&name) {
                "not supported yet by this version".to_owned()
            } else {
                match nearest(name, keys.iter().copied()) {
                    Some(known) => format!("unknown key; did you mean \"{known}\"?"),
                    None => format!("unknown key; the keys here are {}", keys.join(", ")),
                }
            };
            return Err(self.source.error(key.span().start, &self.child_path(name), what));
        }
        Ok(())
    }

    pub(super) fn get(&self, key: &str) -> Option<Item<'a>> {
        let (_, value) = self.entries.iter().find(|(k, _)| k.get_ref() == key)?;
        Some(Item { source: self.source, path: self.child_path(key), value })
    }

    pub(super) fn require(&self, key: &str) -> Result<Item<'a>, Error> {
        self.get(key).ok_or_else(|| self.error(format!("\"{key}\" is missing")))
    }

    /// Returns all entries, in the order of their names.
    pub(super) fn entries(&self) -> impl Iterator<Item = (String, Item<'a>)> + '_ {
        self.entries.iter().map(|(key, value)| {
            let name = key.get_ref().to_string();
            let path = self.child_path(&format!("{name:?}"));
            (name, Item { source: self.source, path, value })
        })
    }

    pub(super) fn error(&self, what: impl Into<String>) -> Error {
        self.source.error(self.offset, &self.path, what.into())
    }
}

/// A value of the document.
pub(super) struct Item<'a> {
    source: &'a Source<'a>,
    pub(super) path: String,
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Item<'a> {
    pub(super) fn error(&self, what: impl Into<String>) -> Error {
        self.source.error(self.value.span().start, &self.path, what.into())
    }

    fn expected(&self, wanted: &str) -> Error {
        let found = match self.value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.error(format!("expected {wanted}, found {found}"))
    }

    /// Deserializes the table with serde. Errors name the key and the line of the wrong value.
    pub(super) fn deserialize<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let DeValue::Table(entries) = self.value.get_ref() else { return Err(self.expected("a table")) };
        let entries = Spanned::new(self.value.span(), entries.clone());
        T::deserialize(toml::de::Deserializer::from(entries)).map_err(|error| {
            let Some(place) = error.span() else { return self.error(error.message()) };
            let path = self.inner(place.start).map_or_else(|| self.path.clone(), |item| item.path);
            self.source.error(place.start, &path, error.message().to_owned())
        })
    }

    /// Returns the innermost entry of this value that covers `offset` with its key or value. Searches all entries,
    /// because the span of a table with a header covers only the header.
    fn inner(&self, offset: usize) -> Option<Item<'a>> {
        let DeValue::Table(entries) = self.value.get_ref() else { return None };
        entries.iter().find_map(|(key, value)| {
            let path = format!("{}.{}", self.path, key.get_ref());
            let item = Item { source: self.source, path, value };
            let here = key.span().contains(&offset) || value.span().contains(&offset);
            item.inner(offset).or_else(|| here.then_some(item))
        })
    }

    pub(super) fn source_file(&self) -> &'a Path {
        self.source.file
    }

    pub(super) fn str(&self) -> Result<&'a str, Error> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text),
            _ => Err(self.expected("a string")),
        }
    }

    /// Reads a duration with a unit, in nanoseconds.
    pub(super) fn duration_ns(&self) -> Result<u64, Error> {
        self.quantity(units::parse_duration_ns, units::bare_duration)
    }

    /// Reads a size with a unit, in bytes.
    pub(super) fn size_bytes(&self) -> Result<u64, Error> {
        self.quantity(units::parse_size_bytes, units::bare_size)
    }

    fn quantity(
        &self,
        parse: fn(&str) -> Result<u64, UnitError>,
        bare: fn(String) -> UnitError,
    ) -> Result<u64, Error> {
        let quantity = match self.value.get_ref() {
            DeValue::Integer(number) => Err(bare(number.to_string())),
            DeValue::Float(number) => Err(bare(number.to_string())),
            _ => parse(self.str()?),
        };
        quantity.map_err(|error| self.error(error.to_string()))
    }

    /// Reads a string or an unquoted date, as text.
    pub(super) fn date_text(&self) -> Result<String, Error> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Datetime(date) => Ok(date.to_string()),
            _ => Err(self.expected("a date such as \"2026-01-01T00:00:00Z\"")),
        }
    }

    pub(super) fn u64(&self) -> Result<u64, Error> {
        match self.value.get_ref() {
            DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix())
                .map_err(|_| self.error(format!("{n} is not a whole number between 0 and {}", u64::MAX))),
            _ => Err(self.expected("an integer")),
        }
    }

    pub(super) fn bool(&self) -> Result<bool, Error> {
        match self.value.get_ref() {
            DeValue::Boolean(b) => Ok(*b),
            _ => Err(self.expected("true or false")),
        }
    }

    pub(super) fn is_table(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Table(_))
    }

    pub(super) fn table(&self) -> Result<Table<'a>, Error> {
        match self.value.get_ref() {
            DeValue::Table(entries) => Ok(Table {
                source: self.source,
                path: self.path.clone(),
                offset: self.value.span().start,
                entries,
            }),
            _ => Err(self.expected("a table")),
        }
    }

    /// Reads a list of at most `most` elements.
    pub(super) fn list(&self, most: usize) -> Result<Vec<Item<'a>>, Error> {
        let DeValue::Array(items) = self.value.get_ref() else { return Err(self.expected("a list")) };
        if items.len() > most {
            return Err(self.error(format!("{} elements; at most {most} are allowed", items.len())));
        }
        let element = |(i, value)| Item { source: self.source, path: format!("{}[{i}]", self.path), value };
        Ok(items.iter().enumerate().map(element).collect())
    }
}
