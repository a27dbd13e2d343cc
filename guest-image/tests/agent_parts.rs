//! Runs the tests of those agent modules that need no guest.
//!
//! The agent is not a member of the workspace, because it is built for another machine, so its own tests would not be
//! run. These modules use no other module of the agent than each other.

#![allow(dead_code, reason = "only the agent uses the other items")]

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
