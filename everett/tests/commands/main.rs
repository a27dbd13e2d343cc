//! Tests of commands that boot no machine, and of crates that builds share.

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
