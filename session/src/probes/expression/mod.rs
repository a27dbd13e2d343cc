//! Expressions over registers, memory and variables.
//!
//! - [`lexer`]: tokens of a probe
//! - [`number`]: numbers in memory
//! - [`registers`]: names of registers
//! - [`parser`]: expressions from tokens
//! - [`evaluate`]: values of expressions at a hit

pub mod evaluate;
pub mod lexer;
pub mod number;
pub mod parser;
pub mod registers;

use number::Number;
use registers::Register;

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// Integer.
    Integer(i128),
    /// Value of a register.
    Register(Register),
    /// Variable or symbol.
    Name(String),
    /// `(i32)E`: value as this number. A symbol without a type is read as one.
    Cast(Number, Box<Expression>),
    /// `(i32 *)E`: address of this kind of number.
    PointerCast(Number, Box<Expression>),
    /// `str(E)`: text at an address.
    Text(Box<Expression>),
    /// Operator with one operand.
    Unary(Unary, Box<Expression>),
    /// Operator with two operands.
    Binary(Binary, Box<Expression>, Box<Expression>),
    /// `E.name` or `E->name`.
    Member(Box<Expression>, String),
    /// `E[I]`.
    Index(Box<Expression>, Box<Expression>),
}

/// Operator with one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unary {
    /// `-`
    Minus,
    /// `~`
    Invert,
    /// `!`
    Not,
    /// `*`: the object at an address
    At,
    /// `&`: the address of an object
    AddressOf,
}

/// Operator with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    /// `||`
    Or,
    /// `&&`
    And,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `&`
    BitAnd,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<<`
    Left,
    /// `>>`
    Right,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Times,
    /// `/`
    Divide,
    /// `%`
    Remainder,
}

impl Expression {
    /// Calls `look` with the name of each variable or symbol of the expression.
    pub fn names(&self, look: &mut dyn FnMut(&str)) {
        match self {
            Expression::Integer(_) | Expression::Register(_) => {}
            Expression::Name(name) => look(name),
            Expression::Cast(_, inner)
            | Expression::PointerCast(_, inner)
            | Expression::Text(inner)
            | Expression::Unary(_, inner)
            | Expression::Member(inner, _) => inner.names(look),
            Expression::Binary(_, one, other) | Expression::Index(one, other) => {
                one.names(look);
                other.names(look);
            }
        }
    }
}
