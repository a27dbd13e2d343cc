//! The place of a variable: expressions of DWARF (version 5, 2.5 and 2.6).

use gimli::{
    AttributeValue, EvaluationResult, Expression, Location, Piece, Reader as _, Register, UnitOffset, Value,
    ValueType, constants as dw,
};

use super::Variable;
use super::entry::Entry;
use crate::lines::{self, Lines};

/// Maximum number of operations of an expression. Expressions can jump back.
const OPERATIONS_MAX: u32 = 10_000;
/// Maximum number of values that an expression reads from memory and registers.
const READS_MAX: usize = 1_000;
/// Maximum length of a variable that lies in several pieces, in bytes.
const PIECES_BYTES_MAX: usize = 64 << 10;
/// Maximum number of ranges of a variable with different places that are read.
const PLACES_MAX: usize = 1 << 16;

/// Registers and memory of the innermost frame of a thread.
pub trait Frame {
    /// Returns the address of the next instruction, as the file states it.
    fn address(&self) -> u64;
    /// Returns the distance of addresses in memory from the addresses that the file states.
    fn bias(&self) -> u64;
    /// Returns a general register by its number in DWARF: RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8 to R15, RIP.
    fn register(&self, number: u16) -> Option<u64>;
    /// Returns the register XMM`number`.
    fn vector(&self, number: u16) -> Option<[u8; 16]>;
    /// Copies memory up to the first byte that is not mapped. Returns the number of copied bytes.
    fn read(&self, address: u64, into: &mut [u8]) -> usize;
    /// Returns the canonical frame address (CFA). `None` if the unwind tables do not say it.
    fn frame_address(&self) -> Option<u64>;
}

/// Place of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bytes {
    /// Memory at this linear address.
    Memory(u64),
    /// Bytes of registers, of pieces, or of a constant.
    Here(Vec<u8>),
}

/// Reason why a variable has no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The compiler has not kept the variable at this address.
    OptimizedOut,
    /// A part of the computation or of the variable is in memory that is not mapped.
    Unmapped,
    /// The debug information is damaged, or says what Everett does not evaluate.
    Unknown,
}

type Result<T> = std::result::Result<T, Missing>;

impl Lines {
    /// Returns the place of a variable in the innermost frame.
    ///
    /// # Errors
    /// Returns why there is none.
    pub fn place(&self, variable: &Variable, frame: &dyn Frame) -> Result<Bytes> {
        let entry = Entry::at(self, false, variable.offset).ok_or(Missing::Unknown)?;
        let location = entry.own(dw::DW_AT_location);
        if let (None, Some(constant)) = (&location, entry.inherited(|entry| entry.own(dw::DW_AT_const_value)))
        {
            return constant_bytes(&constant);
        }
        let expression = expression(&entry, location.ok_or(Missing::OptimizedOut)?, frame)?;
        let base = variable.function.and_then(|function| Entry::at(self, false, function));
        let pieces = evaluate(&entry, expression, frame, base.as_ref())?;
        bytes(&pieces, frame)
    }
}

/// Returns the expression of an attribute that holds at the frame's address.
fn expression(
    entry: &Entry<'_>,
    value: AttributeValue<lines::Bytes>,
    frame: &dyn Frame,
) -> Result<Expression<lines::Bytes>> {
    if let Some(expression) = value.exprloc_value() {
        return Ok(expression);
    }
    let dwarf = entry.dwarf().ok_or(Missing::Unknown)?;
    let places = dwarf.attr_locations(&entry.unit, value).ok().flatten();
    let mut places = places.ok_or(Missing::Unknown)?;
    for _ in 0..PLACES_MAX {
        match places.next() {
            Ok(Some(place)) if (place.range.begin..place.range.end).contains(&frame.address()) => {
                return Ok(place.data);
            }
            Ok(Some(_)) => {}
            Ok(None) => return Err(Missing::OptimizedOut),
            Err(_) => return Err(Missing::Unknown),
        }
    }
    Err(Missing::Unknown)
}

fn constant_bytes(value: &AttributeValue<lines::Bytes>) -> Result<Bytes> {
    let number = match value {
        AttributeValue::Sdata(number) => number.cast_unsigned(),
        AttributeValue::Block(block) => {
            let bytes = block.to_slice().map_err(|_| Missing::Unknown)?;
            return Ok(Bytes::Here(bytes.iter().copied().take(PIECES_BYTES_MAX).collect()));
        }
        // A shorter number does not say whether it has a sign, and its type has at most as many bytes.
        value => value.udata_value().ok_or(Missing::Unknown)?,
    };
    Ok(Bytes::Here(number.to_le_bytes().to_vec()))
}

/// Evaluates an expression. `function` is the function whose frame base it can name.
fn evaluate(
    entry: &Entry<'_>,
    expression: Expression<lines::Bytes>,
    frame: &dyn Frame,
    function: Option<&Entry<'_>>,
) -> Result<Vec<Piece<lines::Bytes>>> {
    let dwarf = entry.dwarf().ok_or(Missing::Unknown)?;
    let mut evaluation = expression.evaluation(entry.unit.encoding());
    evaluation.set_max_iterations(OPERATIONS_MAX);
    let unknown = |_| Missing::Unknown;
    let mut result = evaluation.evaluate().map_err(unknown)?;
    for _ in 0..READS_MAX {
        result = match result {
            EvaluationResult::Complete => return Ok(evaluation.result()),
            EvaluationResult::RequiresMemory { address, size, space: None, base_type } => {
                let mut bytes = [0; 8];
                let size = usize::from(size).min(8);
                if frame.read(address, &mut bytes[..size]) < size {
                    return Err(Missing::Unmapped);
                }
                let value = number(entry, base_type, u64::from_le_bytes(bytes))?;
                evaluation.resume_with_memory(value)
            }
            EvaluationResult::RequiresRegister { register: Register(register), base_type } => {
                let bits = frame.register(register).ok_or(Missing::Unknown)?;
                evaluation.resume_with_register(number(entry, base_type, bits)?)
            }
            EvaluationResult::RequiresFrameBase => {
                evaluation.resume_with_frame_base(frame_base(function.ok_or(Missing::Unknown)?, frame)?)
            }
            EvaluationResult::RequiresCallFrameCfa => {
                evaluation.resume_with_call_frame_cfa(frame.frame_address().ok_or(Missing::Unknown)?)
            }
            EvaluationResult::RequiresRelocatedAddress(address) => {
                evaluation.resume_with_relocated_address(address.wrapping_add(frame.bias()))
            }
            EvaluationResult::RequiresIndexedAddress { index, relocate } => {
                let address = dwarf.address(&entry.unit, index).map_err(unknown)?;
                let bias = if relocate { frame.bias() } else { 0 };
                evaluation.resume_with_indexed_address(address.wrapping_add(bias))
            }
            EvaluationResult::RequiresBaseType(at) => {
                evaluation.resume_with_base_type(value_type(entry, at)?)
            }
            // The value when the function began is in the caller's hands.
            EvaluationResult::RequiresEntryValue(_) => return Err(Missing::OptimizedOut),
            _ => return Err(Missing::Unknown),
        }
        .map_err(unknown)?;
    }
    Err(Missing::Unknown)
}

/// Returns the type of a value on the stack of an expression.
fn value_type(entry: &Entry<'_>, at: UnitOffset) -> Result<ValueType> {
    if at.0 == 0 {
        return Ok(ValueType::Generic);
    }
    let there = entry.follow(&AttributeValue::UnitRef(at)).ok_or(Missing::Unknown)?;
    let Some(AttributeValue::Encoding(encoding)) = there.own(dw::DW_AT_encoding) else {
        return Err(Missing::Unknown);
    };
    let bytes = there.number(dw::DW_AT_byte_size).ok_or(Missing::Unknown)?;
    ValueType::from_encoding(encoding, bytes).ok_or(Missing::Unknown)
}

fn number(entry: &Entry<'_>, at: UnitOffset, bits: u64) -> Result<Value> {
    let bytes = bits.to_le_bytes();
    let reader = gimli::EndianSlice::new(&bytes, gimli::LittleEndian);
    match value_type(entry, at)? {
        ValueType::Generic => Ok(Value::Generic(bits)),
        kind => Value::parse(kind, reader).map_err(|_| Missing::Unknown),
    }
}

/// Returns the frame base of a function. Its expression names no frame base.
fn frame_base(function: &Entry<'_>, frame: &dyn Frame) -> Result<u64> {
    let value = function.own(dw::DW_AT_frame_base);
    // An inlined call has the frame of the function around it, which has no name here.
    let expression = expression(function, value.ok_or(Missing::Unknown)?, frame)?;
    match evaluate(function, expression, frame, None)?.as_slice() {
        [Piece { location: Location::Register { register }, .. }] => {
            frame.register(register.0).ok_or(Missing::Unknown)
        }
        [Piece { location: Location::Address { address }, .. }] => Ok(*address),
        _ => Err(Missing::Unknown),
    }
}

/// Returns the place that pieces are together.
fn bytes(pieces: &[Piece<lines::Bytes>], frame: &dyn Frame) -> Result<Bytes> {
    if let [Piece { size_in_bits: None, bit_offset: None, location }] = pieces {
        return match location {
            Location::Address { address } => Ok(Bytes::Memory(*address)),
            location => piece(location, None, frame).map(Bytes::Here),
        };
    }
    let mut all = Vec::new();
    for Piece { size_in_bits, bit_offset, location } in pieces {
        let bits = size_in_bits.filter(|bits| bits.is_multiple_of(8) && bit_offset.is_none_or(|at| at == 0));
        let count = usize::try_from(bits.ok_or(Missing::Unknown)? / 8).map_err(|_| Missing::Unknown)?;
        if all.len().saturating_add(count) > PIECES_BYTES_MAX {
            return Err(Missing::Unknown);
        }
        let bytes = piece(location, Some(count), frame)?;
        all.extend(bytes.get(..count).ok_or(Missing::Unknown)?);
    }
    if all.is_empty() { Err(Missing::OptimizedOut) } else { Ok(Bytes::Here(all)) }
}

/// Returns the bytes of a piece. Memory is read if `count` says how much.
fn piece(location: &Location<lines::Bytes>, count: Option<usize>, frame: &dyn Frame) -> Result<Vec<u8>> {
    match location {
        Location::Empty | Location::ImplicitPointer { .. } => Err(Missing::OptimizedOut),
        Location::Register { register: Register(number @ 17..=32) } => {
            frame.vector(number - 17).map(|bytes| bytes.to_vec()).ok_or(Missing::Unknown)
        }
        Location::Register { register } => {
            let bits = frame.register(register.0).ok_or(Missing::Unknown)?;
            Ok(bits.to_le_bytes().to_vec())
        }
        Location::Address { address } => {
            let mut bytes = vec![0; count.ok_or(Missing::Unknown)?];
            if frame.read(*address, &mut bytes) < bytes.len() {
                return Err(Missing::Unmapped);
            }
            Ok(bytes)
        }
        Location::Value { value } => Ok(match *value {
            Value::Generic(bits) | Value::U64(bits) => bits.to_le_bytes().to_vec(),
            Value::I8(number) => i64::from(number).to_le_bytes().to_vec(),
            Value::U8(number) => u64::from(number).to_le_bytes().to_vec(),
            Value::I16(number) => i64::from(number).to_le_bytes().to_vec(),
            Value::U16(number) => u64::from(number).to_le_bytes().to_vec(),
            Value::I32(number) => i64::from(number).to_le_bytes().to_vec(),
            Value::U32(number) => u64::from(number).to_le_bytes().to_vec(),
            Value::I64(number) => number.to_le_bytes().to_vec(),
            Value::F32(number) => number.to_le_bytes().to_vec(),
            Value::F64(number) => number.to_le_bytes().to_vec(),
        }),
        Location::Bytes { value } => {
            let bytes = value.to_slice().map_err(|_| Missing::Unknown)?;
            Ok(bytes.iter().copied().take(PIECES_BYTES_MAX).collect())
        }
    }
}
