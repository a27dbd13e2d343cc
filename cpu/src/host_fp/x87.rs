//! x87 arithmetic.
