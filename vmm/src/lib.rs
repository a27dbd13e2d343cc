//! One machine: its devices, its run loop and its time, above an engine that executes instructions.
//!
//! Map:
//! - [`machine`]: a machine, its configuration and its run loop; [`events`]: the queue of due events; [`output`]: what a
//!   machine says to its host
//! - [`engine`]: what executes instructions; [`clock`]: what vtime is
//! - [`kvm`]: what an engine on `/dev/kvm` is made of
//! - [`layout`]: addresses, ports and pins; [`ram`]: guest memory; [`disk`]: disk contents
//! - [`boot`]: from kernel and initramfs to the first instruction; `acpi`: how the guest finds its devices
//! - `devices`: interrupt controllers, UART, RTC, power; [`virtio`]: blk, net, rng, console
//! - [`world`]: machines on a wire
//! - [`wire`]: the switch that joins the cards of nodes, what faults do to it, captures, a TCP/IP stack of the host's
//! - [`digest`]: names of states; [`divergence`]: trails of digests, differences and bisection; [`leak`]: planted defects for tests of those
//!
//! Not here: images and their contents (`guest-image`), the protocol of the guest's agent (the console's ports carry bytes),
//! what to do with findings.
//!
//! **Invariants.**
//! - What a machine does is a function of its configuration and of what is done to it at which vtime. No host time, no
//!   unordered map, no randomness but the world's streams (`clippy.toml` bans the rest; [`leak`] is the marked exception).
//! - The guest is an attacker: whatever it does ends in its own faults, a device that wants a reset, a note, or a
//!   [`machine::End`].
//! - Observers (digests, output, journal, stops) change nothing that the guest sees.

mod acpi;
pub mod boot;
pub mod clock;
pub mod devices;
pub mod digest;
pub mod disk;
pub mod divergence;
pub mod engine;
pub mod events;
pub mod kvm;
pub mod layout;
pub mod leak;
pub mod machine;
pub mod output;
pub mod ram;
pub mod virtio;
pub mod wire;
pub mod world;

pub use clock::ClockMode;
pub use digest::Digest;
pub use divergence::Trail;
pub use machine::{Machine, MachineConfig, MachineError, Stop, Until};
