//! Tests of whole reports, on run directories that they write.

mod against;
mod documented;
mod hostile;
mod numbers;
mod sample;
