//! Finds texts of errors that repeat or hide their cause.
//!
//! The text of an error must not contain the text of its cause. The cause is the error's `source`. Code that shows an
//! error appends the texts of all causes (`everett_input::causes::with_causes`), so a cause in the text would be shown
//! twice.
//!
//! If a field holds another error but is not the `source`, `with_causes` does not show the field. The text must
//! therefore pass the field to a function. The function either explains the field's error in other words, or writes
//! this error and its causes in a form that fits into a sentence.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};
use syn::{Attribute, Field, Fields, Meta, Type};

/// Names of error types from other crates. Errors of this repository have fields of these types.
const FOREIGN: [&str; 2] = ["Error", "MmapRegionError"];

/// Names of error types.
#[derive(Debug, Clone, Default)]
pub struct ErrorTypes(BTreeSet<String>);

impl ErrorTypes {
    /// Adds the types of a source file that implement `Error`.
    ///
    /// # Errors
    /// Returns an error if the text is not Rust.
    pub fn add(&mut self, source: &str) -> syn::Result<()> {
        if has_error(source) {
            self.visit_file(&syn::parse_file(source)?);
        }
        Ok(())
    }

    fn contains(&self, of: &Type) -> bool {
        match of {
            Type::Path(path) => path.path.segments.last().is_some_and(|last| {
                let name = last.ident.to_string();
                FOREIGN.contains(&name.as_str()) || self.0.contains(&name)
            }),
            _ => false,
        }
    }
}

impl<'ast> Visit<'ast> for ErrorTypes {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        if derives_error(&item.attrs) {
            self.0.insert(item.ident.to_string());
        }
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        if derives_error(&item.attrs) {
            self.0.insert(item.ident.to_string());
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if of.is_some_and(|name| name.ident == "Error")
            && let Type::Path(path) = &*item.self_ty
            && let Some(name) = path.path.segments.last()
        {
            self.0.insert(name.ident.to_string());
        }
    }
}

/// Returns the errors of a source file whose texts repeat or hide a cause, each as a line. `types` are the error types
/// of the repository.
///
/// # Errors
/// Returns an error if the text is not Rust.
pub fn offenders(source: &str, types: &ErrorTypes) -> syn::Result<Vec<String>> {
    let mut finder = Finder { types, found: Vec::new() };
    if !has_error(source) {
        return Ok(finder.found);
    }
    finder.visit_file(&syn::parse_file(source)?);
    Ok(finder.found)
}

/// False if a source file has no error type, so that it need not be parsed.
fn has_error(source: &str) -> bool {
    source.contains("#[error(") || source.contains("Error for ")
}

struct Finder<'t> {
    types: &'t ErrorTypes,
    found: Vec<String>,
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.check(&item.ident.to_string(), &item.attrs, &item.fields);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        for variant in &item.variants {
            self.check(&format!("{}::{}", item.ident, variant.ident), &variant.attrs, &variant.fields);
        }
        visit::visit_item_enum(self, item);
    }
}

impl Finder<'_> {
    fn check(&mut self, name: &str, attributes: &[Attribute], fields: &Fields) {
        let Some(text) = Text::of(attributes) else { return };
        for (index, field) in fields.iter().enumerate() {
            let known = field.ident.as_ref().map_or_else(|| index.to_string(), ToString::to_string);
            let is_source = known == "source" || is_marked(field);
            let what = if is_source && text.mentions(&known) {
                "the text repeats its cause, the field"
            } else if !is_source && self.types.contains(&field.ty) && text.shows(&known) {
                "the text shows an error that is not marked as its source, the field"
            } else if !is_source && self.types.contains(&field.ty) && !text.mentions(&known) {
                "neither the text nor the source has the cause, the field"
            } else {
                continue;
            };
            self.found.push(format!("{name}: {what} {known}"));
        }
    }
}

/// The text of an error: `#[error("...", arguments)]`.
struct Text {
    /// Names and numbers between braces.
    placeholders: Vec<String>,
    /// Arguments, each as its tokens.
    arguments: Vec<Vec<String>>,
}

impl Text {
    fn of(attributes: &[Attribute]) -> Option<Text> {
        let list = attributes.iter().find_map(|attribute| match &attribute.meta {
            Meta::List(list) if list.path.is_ident("error") => Some(list),
            _ => None,
        })?;
        let tokens: Vec<String> = list.tokens.clone().into_iter().map(|token| token.to_string()).collect();
        let (first, rest) = tokens.split_first()?;
        // `#[error(transparent)]` has no string literal, and therefore no text to check.
        let format = syn::parse_str::<syn::LitStr>(first).ok()?.value();
        let arguments = rest.split(|token| token == ",").filter(|tokens| !tokens.is_empty());
        Some(Text { placeholders: placeholders(&format), arguments: arguments.map(<[_]>::to_vec).collect() })
    }

    /// True if the text contains the field as it is.
    fn shows(&self, field: &str) -> bool {
        let is_field = |tokens: &[String]| match tokens {
            [one] => one == field,
            [dot, one] => dot == "." && one == field,
            [_, equals, value @ ..] if equals == "=" => {
                matches!(value, [.., last] if last == field && value.len() <= 2)
            }
            _ => false,
        };
        self.placeholders.iter().any(|name| name == field)
            || self.arguments.iter().any(|tokens| is_field(tokens))
    }

    /// True if the text contains the field, or something that is made from it.
    fn mentions(&self, field: &str) -> bool {
        let in_argument = |tokens: &Vec<String>| {
            tokens.iter().any(|token| {
                token.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == field)
            })
        };
        self.placeholders.iter().any(|name| name == field) || self.arguments.iter().any(in_argument)
    }
}

/// Returns the names and numbers of a format string's placeholders.
fn placeholders(format: &str) -> Vec<String> {
    let plain = format.replace("{{", "").replace("}}", "");
    let inside = plain.split('{').skip(1).filter_map(|rest| rest.split(['}', ':']).next());
    inside.map(str::to_owned).collect()
}

/// True if the field is `#[source]` or `#[from]`.
fn is_marked(field: &Field) -> bool {
    field
        .attrs
        .iter()
        .any(|attribute| attribute.path().is_ident("source") || attribute.path().is_ident("from"))
}

fn derives_error(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("derive") => {
            list.tokens.clone().into_iter().any(|token| token.to_string() == "Error")
        }
        _ => false,
    })
}
