//! Tests of commands that boot no machine. One test checks that builds with different features share compiled crates.

mod cache;
#[path = "../cmd/cases.rs"]
mod cases;
mod command_line;
mod features;
mod init;
mod install;
#[path = "../../../guest-image/tests/images/kernel.rs"]
mod kernel;
mod records;
mod runs;
mod serve;
