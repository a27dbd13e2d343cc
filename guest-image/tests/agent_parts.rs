//! Runs the tests of the agent's parts that need no guest.
//!
//! The agent is no member of the workspace (it is built for another machine), so its own tests would be forgotten;
//! these modules depend on nothing else of it.

#![allow(dead_code, reason = "the agent uses what these tests do not")]

#[path = "../agent/src/failure.rs"]
mod failure;
#[path = "../agent/src/kernel_log.rs"]
mod kernel_log;
#[path = "../agent/src/listing.rs"]
mod listing;
#[path = "../agent/src/netlink.rs"]
mod netlink;
#[path = "../agent/src/users.rs"]
mod users;
#[path = "../agent/src/virtio.rs"]
mod virtio;
