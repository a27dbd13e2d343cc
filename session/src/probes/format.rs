//! Formats in which values are printed, as in C: `%d %u %x %#x %o %c %s %f %p %%`.

use std::fmt::Write as _;

use super::expression::evaluate::{Absent, Place, Scene, Type, Value, integer, loaded, text_at};
use super::expression::number::Number;
use super::limits::{TEXT_BYTES_MAX, WHOLE_TEXT_BYTES_MAX};
use everett_symbols::variables::Shape;

/// A format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Value { conversion: char, is_alternate: bool },
}

/// Letters of the conversions.
const CONVERSIONS: &str = "diuxocsfp";

impl Format {
    /// Reads a format.
    ///
    /// # Errors
    /// Returns what is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Format, String> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                plain.push(c);
                continue;
            }
            let mut next = chars.next();
            let is_alternate = next == Some('#');
            if is_alternate {
                next = chars.next();
            }
            // Lengths such as those in %lld say nothing here.
            while matches!(next, Some('l' | 'h' | 'z')) {
                next = chars.next();
            }
            match next {
                Some('%') if !is_alternate => plain.push('%'),
                Some(conversion) if CONVERSIONS.contains(conversion) => {
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    pieces.push(Piece::Value { conversion, is_alternate });
                }
                Some(other) => {
                    return Err(format!("the format has the unknown conversion %{}", other.escape_default()));
                }
                None => return Err("the format ends with %".to_owned()),
            }
        }
        pieces.push(Piece::Text(plain));
        Ok(Format(pieces))
    }

    /// Returns the number of values that the format prints.
    #[must_use]
    pub fn values(&self) -> usize {
        self.0.iter().filter(|piece| matches!(piece, Piece::Value { .. })).count()
    }

    /// Returns the values as text. A value that is not known is a word in its place.
    #[must_use]
    pub fn text(&self, values: &[Result<Value, Absent>], scene: &dyn Scene) -> String {
        let mut text = String::new();
        let mut values = values.iter();
        for piece in &self.0 {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Value { conversion, is_alternate } => {
                    let shown = match values.next() {
                        Some(Ok(value)) => converted(*conversion, *is_alternate, value, scene),
                        Some(Err(absent)) => Err(absent.clone()),
                        None => Err(Absent::NoNumber),
                    };
                    match shown {
                        Ok(shown) => text.push_str(&shown),
                        // Writing to a text cannot fail.
                        Err(absent) => drop(write!(text, "{absent}")),
                    }
                }
            }
        }
        text
    }
}

fn converted(
    conversion: char,
    is_alternate: bool,
    value: &Value,
    scene: &dyn Scene,
) -> Result<String, Absent> {
    match conversion {
        's' => return text(value, scene),
        'f' => {
            let float = match loaded(value, scene)? {
                Value::Float(float) => float,
                other => integer(&other, scene)? as f64,
            };
            return Ok(float.to_string());
        }
        _ => {}
    }
    let number = match loaded(value, scene)? {
        // As a cast does in C.
        Value::Float(float) => float as i128,
        other => integer(&other, scene)?,
    };
    if matches!(conversion, 'd' | 'i') {
        return Ok(number.to_string());
    }
    if conversion == 'c' {
        return Ok(char::from(number as u8).to_string());
    }
    // The other conversions have no sign. Negative numbers have 64 bits there.
    let bits = match i64::try_from(number) {
        Ok(small) if small < 0 => u128::from(small.cast_unsigned()),
        _ => u128::try_from(number).map_err(|_| Absent::Overflow)?,
    };
    Ok(match (conversion, is_alternate) {
        ('u', _) => bits.to_string(),
        ('x', false) => format!("{bits:x}"),
        ('x', true) | ('p', _) => format!("{bits:#x}"),
        ('o', false) => format!("{bits:o}"),
        ('o', true) => format!("0{bits:o}"),
        _ => return Err(Absent::NoNumber),
    })
}

/// True if a type is that of characters: integers of one byte.
pub(super) fn is_character(kind: Type, scene: &dyn Scene) -> bool {
    match kind {
        Type::Number(Number { bytes: 1, .. }) => true,
        Type::Declared(at) => matches!(scene.shape(at), Some(Shape::Unsigned(1) | Shape::Signed(1))),
        _ => false,
    }
}

/// Returns the characters of an array of characters, up to a zero byte. `None` if the value is no such array, or if its
/// length is not known.
pub(super) fn characters(value: &Value, scene: &dyn Scene) -> Option<Result<String, Absent>> {
    let Value::Object(Type::Declared(at), place) = value else { return None };
    let Some(Shape::Array { element, count, .. }) = scene.shape(*at) else { return None };
    let count = count.and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0)?;
    if !is_character(Type::Declared(element), scene) {
        return None;
    }
    let (bytes_max, is_whole) = match scene.has_whole_texts() {
        // The byte after the longest text can be its end.
        true => (WHOLE_TEXT_BYTES_MAX + 1, count <= WHOLE_TEXT_BYTES_MAX),
        false => (TEXT_BYTES_MAX, true),
    };
    let mut bytes = vec![0; count.min(bytes_max)];
    match place {
        Place::Memory(address) if scene.read(*address, &mut bytes) < bytes.len() => {
            return Some(Err(Absent::Unmapped));
        }
        Place::Memory(_) => {}
        Place::Bytes(all) => bytes = all.iter().copied().take(bytes.len()).collect(),
    }
    let end = bytes.iter().position(|byte| *byte == 0);
    if end.is_none() && !is_whole {
        return Some(Err(Absent::LongText));
    }
    Some(Ok(String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()))
}

/// Returns a value as text for `%s`: the text at an address of characters, the characters of an array, the name of an
/// enumeration's value. Other values are as without a format.
fn text(value: &Value, scene: &dyn Scene) -> Result<String, Absent> {
    match value {
        Value::Text(text) => return Ok(text.clone()),
        Value::Object(Type::Declared(at), _) => match scene.shape(*at) {
            Some(Shape::Array { element, .. }) if is_character(Type::Declared(element), scene) => {
                return characters(value, scene).unwrap_or_else(|| plain(value, scene));
            }
            Some(Shape::Enumeration { .. }) => {
                let number = integer(value, scene)?;
                return Ok(scene.enumerator(*at, number).unwrap_or_else(|| number.to_string()));
            }
            _ => {}
        },
        _ => {}
    }
    match loaded(value, scene)? {
        Value::Pointer(kind, address) if is_character(kind, scene) => text_at(address, scene),
        other => plain(&other, scene),
    }
}

/// Returns a value as text without a format. Addresses are hexadecimal, and texts are in quotes.
///
/// # Errors
/// Returns why the value is not known.
pub fn plain(value: &Value, scene: &dyn Scene) -> Result<String, Absent> {
    let is_enumeration = |at| matches!(scene.shape(at), Some(Shape::Enumeration { .. }));
    if let Value::Object(Type::Declared(at), _) = value {
        let at = *at;
        if is_enumeration(at) {
            return text(value, scene);
        }
        if let Some(Ok(text)) = characters(value, scene) {
            return Ok(format!("{text:?}"));
        }
    }
    match loaded(value, scene)? {
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Text(text) => Ok(format!("{text:?}")),
        Value::Pointer(kind, address) => {
            let shown = format!("{address:#x}");
            Ok(match is_character(kind, scene).then(|| text_at(address, scene)) {
                Some(Ok(text)) => format!("{shown} {text:?}"),
                _ => shown,
            })
        }
        Value::Object(..) => Err(Absent::NoNumber),
    }
}
