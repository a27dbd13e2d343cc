//! Tests of whole reports. Each test writes its run directories.

mod against;
mod bounds;
mod documented;
mod hostile;
mod numbers;
mod sample;
