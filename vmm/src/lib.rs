//! One machine: its devices, its run loop and its time, above an engine that executes instructions.
//!
//! Map:
//! - [`machine`]: a machine, its configuration and its run loop; [`events`]: the queue of due events; [`output`]:
//!   output of a machine to its host
//! - [`engine`]: execution of instructions; [`clock`]: the definition of vtime
//! - [`kvm`]: building blocks of an engine on `/dev/kvm`
//! - [`layout`]: addresses, ports and pins; [`ram`]: guest memory; [`disk`]: disk contents
//! - [`boot`]: from kernel and initramfs to the first instruction; `acpi`: the tables that describe the devices to the
//!   guest
//! - `devices`: interrupt controllers, UART, RTC, power; [`virtio`]: blk, net, rng, console
//! - [`world`]: machines on a wire
//! - [`wire`]: the switch that joins the nodes' network cards, link faults, captures, and the host's TCP/IP stack
//! - [`digest`]: hashes of states; [`divergence`]: trails of digests, differences and bisection; [`leak`]: planted
//!   defects for tests of both
//!
//! Not here: images and their contents (`guest-image`), the protocol of the guest's agent (here the console's ports
//! only carry bytes), and the handling of findings.
//!
//! **Invariants.**
//! - The execution of a machine is a function of its configuration and of the actions on it with their vtimes. It
//!   uses no host time, no unordered map, and no randomness but the world's streams (`clippy.toml` bans the rest;
//!   [`leak`] is the marked exception).
//! - The guest is an attacker: it can cause only faults of its own, a device that needs a reset, a note, or a
//!   [`machine::End`].
//! - Observers (digests, output, journal, stops) change nothing that the guest can see.

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
