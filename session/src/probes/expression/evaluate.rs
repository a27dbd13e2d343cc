//! Values of expressions at a hit.
//!
//! Integers have 128 bits, so sums and products of numbers of 64 bits are exact. A value that cannot be known has no
//! number at all: it is [`Absent`], with the reason.

use everett_inspect::registers::ProgramRegisters;
use everett_symbols::variables::{Member, Shape, TypeAt};

use super::super::limits::{TEXT_BYTES_MAX, WHOLE_TEXT_BYTES_MAX};
use super::number::{Kind, Number};
use super::{Binary, Expression, Unary};

/// Registers, memory and debug information at a hit.
pub trait Scene {
    /// Returns the registers.
    fn registers(&self) -> &ProgramRegisters;
    /// Copies memory up to the first byte that is not mapped. Returns the number of copied bytes.
    fn read(&self, address: u64, into: &mut [u8]) -> usize;
    /// True if texts are whole, up to [`WHOLE_TEXT_BYTES_MAX`] bytes. Otherwise they are cut off after [`TEXT_BYTES_MAX`].
    fn has_whole_texts(&self) -> bool {
        false
    }
    /// Returns a variable or symbol.
    fn variable(&self, name: &str) -> Result<Value, Absent>;
    /// Returns the shape of a type. `None` if it is not known.
    fn shape(&self, kind: TypeAt) -> Option<Shape>;
    /// Returns a member of a structure.
    fn member(&self, kind: TypeAt, name: &str) -> Option<Member>;
    /// Returns the name of a value of an enumeration.
    fn enumerator(&self, kind: TypeAt, value: i128) -> Option<String>;
}

/// Reason why a value is not known. Its text is what stands in its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Absent {
    /// Memory is not mapped.
    #[error("unmapped")]
    Unmapped,
    /// The compiler has not kept the variable.
    #[error("optimized out")]
    OptimizedOut,
    /// No variable or symbol has this name.
    #[error("no variable {0}")]
    NoVariable(String),
    /// The structure has no member of this name.
    #[error("no member {0}")]
    NoMember(String),
    /// The type of an object is not known. A cast says what to read.
    #[error("unknown type")]
    Untyped,
    /// The value has no such operation.
    #[error("no number")]
    NoNumber,
    /// The value is no address of an object.
    #[error("no address")]
    NoAddress,
    /// A number is negative, or has over 64 bits, and so is not an address.
    #[error("not an address of 64 bits")]
    WideAddress,
    /// The object has this number of bytes, and at most the second number can be looked for.
    #[error("its size is {0} bytes, not 1 to {1}")]
    Size(u64, u64),
    /// The array has no such element.
    #[error("no such element")]
    NoElement,
    /// The result exceeds 128 bits, or a negative number exceeds the 64 bits that a format without a sign has for it.
    #[error("overflow")]
    Overflow,
    /// Two addresses are subtracted that point to different types.
    #[error("pointers to different types")]
    DifferentTypes,
    /// The distance between two addresses is no multiple of the length of the objects that they point to.
    #[error("no whole number of elements")]
    NoWholeElements,
    /// Division by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// The text is longer than [`WHOLE_TEXT_BYTES_MAX`] bytes.
    #[error("a text of more than {WHOLE_TEXT_BYTES_MAX} bytes")]
    LongText,
    /// Debug information or unwind tables that Everett cannot evaluate.
    #[error("unknown place")]
    Place,
}

/// Value of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Integer.
    Integer(i128),
    /// Floating-point number.
    Float(f64),
    /// Text, cut off after [`TEXT_BYTES_MAX`] bytes unless the scene has whole texts.
    Text(String),
    /// Address of an object.
    Pointer(Type, u64),
    /// Object in memory or registers.
    Object(Type, Place),
}

/// Type of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Not known.
    Unknown,
    /// Number.
    Number(Number),
    /// Type of the debug information.
    Declared(TypeAt),
    /// Bits of an integer type: the type, the first bit and the number of bits.
    Bits(TypeAt, u32, u32),
}

/// Place of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Memory at this address.
    Memory(u64),
    /// Bytes of registers, or of a constant.
    Bytes(Vec<u8>),
}

/// Maximum length of a number in bytes.
const NUMBER_BYTES_MAX: usize = 16;

/// Returns the value of an expression.
///
/// # Errors
/// Returns why the value is not known.
pub fn value(expression: &Expression, scene: &dyn Scene) -> Result<Value, Absent> {
    match expression {
        Expression::Integer(number) => Ok(Value::Integer(*number)),
        Expression::Register(register) => Ok(Value::Integer(register.value(scene.registers()).into())),
        Expression::Name(name) => scene.variable(name),
        Expression::Cast(number, inner) => match value(inner, scene)? {
            Value::Object(Type::Unknown, place) => {
                loaded(&Value::Object(Type::Number(*number), place), scene)
            }
            other => cast(*number, loaded(&other, scene)?),
        },
        Expression::PointerCast(number, inner) => {
            Ok(Value::Pointer(Type::Number(*number), address(&value(inner, scene)?, scene)?))
        }
        Expression::Text(inner) => text_at(address(&value(inner, scene)?, scene)?, scene).map(Value::Text),
        Expression::Unary(operator, inner) => unary(*operator, value(inner, scene)?, scene),
        Expression::Binary(operator, left, right) => binary(*operator, left, right, scene),
        Expression::Member(inner, name) => member(&value(inner, scene)?, name, scene),
        Expression::Index(inner, index) => {
            let index = integer(&value(index, scene)?, scene)?;
            element(&value(inner, scene)?, index, scene)
        }
    }
}

/// True if the value of an expression is not 0.
///
/// # Errors
/// Returns why the value is not known.
pub fn is_true(expression: &Expression, scene: &dyn Scene) -> Result<bool, Absent> {
    truth(&value(expression, scene)?, scene)
}

fn truth(value: &Value, scene: &dyn Scene) -> Result<bool, Absent> {
    match loaded(value, scene)? {
        Value::Integer(number) => Ok(number != 0),
        Value::Pointer(_, address) => Ok(address != 0),
        Value::Float(number) => Ok(number != 0.0),
        _ => Err(Absent::NoNumber),
    }
}

/// Reads an object that is a number or an address. Arrays become the address of their first element, as in C. Other values
/// remain.
pub(in super::super) fn loaded(value: &Value, scene: &dyn Scene) -> Result<Value, Absent> {
    let Value::Object(kind, place) = value else { return Ok(value.clone()) };
    match *kind {
        Type::Unknown => Err(Absent::Untyped),
        Type::Number(number) => {
            let mut bytes = [0; 8];
            read(place, scene, bytes.get_mut(..number.bytes).ok_or(Absent::NoNumber)?)?;
            let bits = u64::from_le_bytes(bytes);
            Ok(match (number.kind, number.bytes) {
                (Kind::Float, 4) => Value::Float(f32::from_bits(bits as u32).into()),
                (Kind::Float, _) => Value::Float(f64::from_bits(bits)),
                _ => Value::Integer(number.integer(bits)),
            })
        }
        Type::Declared(at) => declared(at, place, scene),
        Type::Bits(at, first, count) => {
            let is_signed = match scene.shape(at).ok_or(Absent::Untyped)? {
                Shape::Signed(_) | Shape::Enumeration { is_signed: true, .. } => true,
                Shape::Unsigned(_) | Shape::Enumeration { .. } => false,
                _ => return Err(Absent::NoNumber),
            };
            let (Some(end), 1..=64) = (first.checked_add(count), count) else { return Err(Absent::NoNumber) };
            let mut bytes = [0; NUMBER_BYTES_MAX];
            read(place, scene, bytes.get_mut(..end.div_ceil(8) as usize).ok_or(Absent::NoNumber)?)?;
            let bits = i128::from_le_bytes(bytes) << (128 - end);
            let (signed, unsigned) = (bits >> (128 - count), bits.cast_unsigned() >> (128 - count));
            Ok(Value::Integer(if is_signed { signed } else { unsigned.cast_signed() }))
        }
    }
}

fn declared(at: TypeAt, place: &Place, scene: &dyn Scene) -> Result<Value, Absent> {
    let number = |kind, bytes: u64| {
        let bytes = usize::try_from(bytes).map_err(|_| Absent::NoNumber)?;
        if matches!(bytes, 1 | 2 | 4 | 8) {
            let number = Type::Number(Number { bytes, kind });
            return loaded(&Value::Object(number, place.clone()), scene);
        }
        let mut all = [0; NUMBER_BYTES_MAX];
        let shift = match bytes {
            3..=15 => 8 * (NUMBER_BYTES_MAX - bytes) as u32,
            16 => 0,
            _ => return Err(Absent::NoNumber),
        };
        read(place, scene, &mut all[..bytes])?;
        let bits = i128::from_le_bytes(all);
        match kind {
            Kind::Signed => Ok(Value::Integer(bits << shift >> shift)),
            // An integer of 128 bits without a sign can exceed the range of this type.
            Kind::Unsigned if bits >= 0 => Ok(Value::Integer(bits)),
            Kind::Unsigned => Err(Absent::Overflow),
            Kind::Float => Err(Absent::NoNumber),
        }
    };
    match scene.shape(at).ok_or(Absent::Untyped)? {
        Shape::Unsigned(bytes) | Shape::Enumeration { bytes, is_signed: false } => {
            number(Kind::Unsigned, bytes)
        }
        Shape::Signed(bytes) | Shape::Enumeration { bytes, is_signed: true } => number(Kind::Signed, bytes),
        Shape::Float(bytes) if bytes == 4 || bytes == 8 => number(Kind::Float, bytes),
        Shape::Float(_) => Err(Absent::NoNumber),
        Shape::Pointer(to) => {
            let mut bytes = [0; 8];
            read(place, scene, &mut bytes)?;
            Ok(Value::Pointer(to.map_or(Type::Unknown, Type::Declared), u64::from_le_bytes(bytes)))
        }
        Shape::Array { element, .. } => match place {
            Place::Memory(address) => Ok(Value::Pointer(Type::Declared(element), *address)),
            Place::Bytes(_) => Ok(Value::Object(Type::Declared(at), place.clone())),
        },
        Shape::Structure(_) => Ok(Value::Object(Type::Declared(at), place.clone())),
    }
}

/// Copies the bytes of a place.
fn read(place: &Place, scene: &dyn Scene, into: &mut [u8]) -> Result<(), Absent> {
    match place {
        Place::Memory(address) if scene.read(*address, into) == into.len() => Ok(()),
        Place::Memory(_) => Err(Absent::Unmapped),
        Place::Bytes(bytes) => {
            let bytes = bytes.get(..into.len()).ok_or(Absent::Place)?;
            into.copy_from_slice(bytes);
            Ok(())
        }
    }
}

/// Reads the text at an address, up to its zero byte or the maximum length.
pub(in super::super) fn text_at(address: u64, scene: &dyn Scene) -> Result<String, Absent> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; TEXT_BYTES_MAX];
        let at = address.checked_add(bytes.len() as u64).ok_or(Absent::Unmapped)?;
        let read = scene.read(at, &mut part);
        let end = part[..read].iter().position(|byte| *byte == 0);
        bytes.extend_from_slice(&part[..end.unwrap_or(read)]);
        if bytes.len() > WHOLE_TEXT_BYTES_MAX {
            return Err(Absent::LongText);
        }
        if end.is_none() && read < part.len() {
            return Err(Absent::Unmapped);
        }
        if end.is_some() || !scene.has_whole_texts() {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}

/// Returns a value as an integer.
pub(in super::super) fn integer(value: &Value, scene: &dyn Scene) -> Result<i128, Absent> {
    match loaded(value, scene)? {
        Value::Integer(number) => Ok(number),
        Value::Pointer(_, address) => Ok(address.into()),
        _ => Err(Absent::NoNumber),
    }
}

/// Returns a value as an address: the lowest 64 bits.
fn address(value: &Value, scene: &dyn Scene) -> Result<u64, Absent> {
    Ok(integer(value, scene)? as u64)
}

fn cast(number: Number, value: Value) -> Result<Value, Absent> {
    Ok(match (value, number.kind) {
        (Value::Integer(integer), Kind::Float) => Value::Float(integer as f64),
        (Value::Float(float), Kind::Float) => Value::Float(float),
        (Value::Integer(integer), _) => Value::Integer(number.integer(integer as u64)),
        (Value::Pointer(_, address), Kind::Unsigned | Kind::Signed) => {
            Value::Integer(number.integer(address))
        }
        (Value::Float(float), _) => Value::Integer(number.integer(float as i128 as u64)),
        _ => return Err(Absent::NoNumber),
    })
}

/// Returns the length of an object of a type, in bytes.
fn bytes_of(kind: Type, scene: &dyn Scene) -> Result<u64, Absent> {
    match kind {
        Type::Number(number) => Ok(number.bytes as u64),
        Type::Declared(at) => scene.shape(at).and_then(Shape::bytes).ok_or(Absent::Untyped),
        Type::Unknown | Type::Bits(..) => Err(Absent::Untyped),
    }
}

fn unary(operator: Unary, value: Value, scene: &dyn Scene) -> Result<Value, Absent> {
    match operator {
        Unary::AddressOf => match value {
            Value::Object(Type::Bits(..), _) => Err(Absent::NoAddress),
            Value::Object(kind, Place::Memory(address)) => Ok(Value::Pointer(kind, address)),
            _ => Err(Absent::NoAddress),
        },
        Unary::At => match loaded(&value, scene)? {
            Value::Pointer(kind, address) => Ok(Value::Object(kind, Place::Memory(address))),
            _ => Err(Absent::NoAddress),
        },
        Unary::Not => Ok(Value::Integer(i128::from(!truth(&value, scene)?))),
        Unary::Minus => match loaded(&value, scene)? {
            Value::Integer(number) => number.checked_neg().map(Value::Integer).ok_or(Absent::Overflow),
            Value::Float(number) => Ok(Value::Float(-number)),
            _ => Err(Absent::NoNumber),
        },
        Unary::Invert => Ok(Value::Integer(!integer(&value, scene)?)),
    }
}

fn binary(
    operator: Binary,
    left: &Expression,
    right: &Expression,
    scene: &dyn Scene,
) -> Result<Value, Absent> {
    let truth_of = |expression| Ok(Value::Integer(i128::from(is_true(expression, scene)?)));
    match (operator, &loaded(&value(left, scene)?, scene)?) {
        (Binary::Or, left) => {
            if truth(left, scene)? {
                Ok(Value::Integer(1))
            } else {
                truth_of(right)
            }
        }
        (Binary::And, left) => {
            if truth(left, scene)? {
                truth_of(right)
            } else {
                Ok(Value::Integer(0))
            }
        }
        (operator, left) => combine(operator, left, &loaded(&value(right, scene)?, scene)?, scene),
    }
}

fn combine(operator: Binary, left: &Value, right: &Value, scene: &dyn Scene) -> Result<Value, Absent> {
    match (operator, left, right) {
        (_, Value::Float(one), Value::Float(other)) => floats(operator, *one, *other),
        (_, Value::Float(one), other) => floats(operator, *one, integer(other, scene)? as f64),
        (_, one, Value::Float(other)) => floats(operator, integer(one, scene)? as f64, *other),
        // The address of an element, as in C.
        (Binary::Plus, Value::Pointer(kind, at), Value::Integer(n))
        | (Binary::Plus, Value::Integer(n), Value::Pointer(kind, at)) => {
            Ok(Value::Pointer(*kind, moved(*kind, *at, *n, scene)?))
        }
        (Binary::Minus, Value::Pointer(kind, at), Value::Integer(n)) => {
            let n = n.checked_neg().ok_or(Absent::Overflow)?;
            Ok(Value::Pointer(*kind, moved(*kind, *at, n, scene)?))
        }
        (Binary::Minus, Value::Pointer(kind, at), Value::Pointer(other_kind, other)) => {
            if !is_same_type(*kind, *other_kind, scene)? {
                return Err(Absent::DifferentTypes);
            }
            elements_between(i128::from(*at) - i128::from(*other), bytes_of(*kind, scene)?)
        }
        (_, one, other) => integers(operator, integer(one, scene)?, integer(other, scene)?),
    }
}

/// Returns the address of an element. Addresses wrap at 64 bits.
fn moved(kind: Type, at: u64, n: i128, scene: &dyn Scene) -> Result<u64, Absent> {
    Ok(at.wrapping_add((n as u64).wrapping_mul(bytes_of(kind, scene)?)))
}

/// True if two types are the same. Each unit of the debug information has an entry of its own for a type, so types are
/// compared by their shape and length.
fn is_same_type(one: Type, other: Type, scene: &dyn Scene) -> Result<bool, Absent> {
    let shape = |kind| match kind {
        Type::Number(Number { bytes, kind }) => Ok(match kind {
            Kind::Unsigned => Shape::Unsigned(bytes as u64),
            Kind::Signed => Shape::Signed(bytes as u64),
            Kind::Float => Shape::Float(bytes as u64),
        }),
        Type::Declared(at) => scene.shape(at).ok_or(Absent::Untyped),
        Type::Unknown | Type::Bits(..) => Err(Absent::Untyped),
    };
    let (one, other) = (shape(one)?, shape(other)?);
    Ok(std::mem::discriminant(&one) == std::mem::discriminant(&other) && one.bytes() == other.bytes())
}

/// Returns the number of elements in a distance.
fn elements_between(distance: i128, bytes: u64) -> Result<Value, Absent> {
    match distance.checked_rem(bytes.into()).ok_or(Absent::DivisionByZero)? {
        0 => Ok(Value::Integer(distance / i128::from(bytes))),
        _ => Err(Absent::NoWholeElements),
    }
}

fn integers(operator: Binary, one: i128, other: i128) -> Result<Value, Absent> {
    let shift = || u32::try_from(other).ok().filter(|shift| *shift < 128).ok_or(Absent::Overflow);
    let number = match operator {
        Binary::BitOr => Some(one | other),
        Binary::BitXor => Some(one ^ other),
        Binary::BitAnd => Some(one & other),
        Binary::Equal => Some(i128::from(one == other)),
        Binary::Unequal => Some(i128::from(one != other)),
        Binary::Less => Some(i128::from(one < other)),
        Binary::LessOrEqual => Some(i128::from(one <= other)),
        Binary::Greater => Some(i128::from(one > other)),
        Binary::GreaterOrEqual => Some(i128::from(one >= other)),
        Binary::Left => {
            let shift = shift()?;
            Some(one << shift).filter(|left| left >> shift == one)
        }
        Binary::Right => Some(one >> shift()?),
        Binary::Plus => one.checked_add(other),
        Binary::Minus => one.checked_sub(other),
        Binary::Times => one.checked_mul(other),
        Binary::Divide | Binary::Remainder if other == 0 => return Err(Absent::DivisionByZero),
        Binary::Divide => one.checked_div(other),
        Binary::Remainder => one.checked_rem(other),
        Binary::Or | Binary::And => return Err(Absent::NoNumber),
    };
    number.map(Value::Integer).ok_or(Absent::Overflow)
}

fn floats(operator: Binary, one: f64, other: f64) -> Result<Value, Absent> {
    let truth = |is: bool| Value::Integer(i128::from(is));
    Ok(match operator {
        Binary::Equal => truth(one == other),
        Binary::Unequal => truth(one != other),
        Binary::Less => truth(one < other),
        Binary::LessOrEqual => truth(one <= other),
        Binary::Greater => truth(one > other),
        Binary::GreaterOrEqual => truth(one >= other),
        Binary::Plus => Value::Float(one + other),
        Binary::Minus => Value::Float(one - other),
        Binary::Times => Value::Float(one * other),
        Binary::Divide => Value::Float(one / other),
        _ => return Err(Absent::NoNumber),
    })
}

/// Returns a member of a structure, or of the structure at an address.
fn member(value: &Value, name: &str, scene: &dyn Scene) -> Result<Value, Absent> {
    let value = match loaded(value, scene)? {
        Value::Pointer(kind, address) => Value::Object(kind, Place::Memory(address)),
        other => other,
    };
    let Value::Object(kind, place) = value else { return Err(Absent::NoAddress) };
    let Type::Declared(at) = kind else { return Err(Absent::Untyped) };
    let member = scene.member(at, name).ok_or_else(|| Absent::NoMember(name.to_owned()))?;
    let kind = match member.bits {
        Some((first, count)) => Type::Bits(member.kind, first, count),
        None => Type::Declared(member.kind),
    };
    let place = match place {
        Place::Memory(address) => Place::Memory(address.wrapping_add(member.offset)),
        Place::Bytes(bytes) => part(&bytes, member.offset)?,
    };
    Ok(Value::Object(kind, place))
}

fn part(bytes: &[u8], from: u64) -> Result<Place, Absent> {
    let rest = usize::try_from(from).ok().and_then(|from| bytes.get(from..));
    rest.map(|rest| Place::Bytes(rest.to_vec())).ok_or(Absent::Place)
}

/// Returns an element of an array, or of the array at an address.
fn element(value: &Value, index: i128, scene: &dyn Scene) -> Result<Value, Absent> {
    if let Value::Object(Type::Declared(at), place) = value
        && let Some(Shape::Array { element, element_bytes, count }) = scene.shape(*at)
    {
        let n = u64::try_from(index).map_err(|_| Absent::NoElement)?;
        // Structures with an array of unknown or zero length at their end use it for what follows them.
        if count.is_some_and(|count| count > 0 && n >= count) {
            return Err(Absent::NoElement);
        }
        let offset = n.checked_mul(element_bytes).ok_or(Absent::NoElement)?;
        let place = match place {
            Place::Memory(address) => Place::Memory(address.wrapping_add(offset)),
            Place::Bytes(bytes) => part(bytes, offset)?,
        };
        return Ok(Value::Object(Type::Declared(element), place));
    }
    match loaded(value, scene)? {
        Value::Pointer(kind, at) => Ok(Value::Object(kind, Place::Memory(moved(kind, at, index, scene)?))),
        _ => Err(Absent::NoAddress),
    }
}
