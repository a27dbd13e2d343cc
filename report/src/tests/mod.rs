//! Tests of whole reports. The tests write the run directories from which the reports are made.

mod against;
mod bounds;
mod documented;
mod hostile;
mod numbers;
mod sample;
