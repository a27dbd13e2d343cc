//! One machine: its devices, run loop and virtual time, above an engine that executes instructions.
//!
//! Map:
//! - [`machine`]: a machine, its configuration and its run loop; [`events`]: the queue of due events; [`output`]: what
//!   a machine writes to its console, ports and cards
//! - [`engine`]: execution of instructions; [`clock`]: the definition of vtime
//! - [`kvm`]: building blocks of an engine on `/dev/kvm`
//! - [`layout`]: addresses, I/O ports and interrupt pins; [`ram`]: guest memory; [`disk`]: disk contents
//! - [`boot`]: from kernel and initramfs to the first instruction; `acpi`: the tables that describe the devices to the
//!   guest
//! - `devices`: interrupt controllers, UART, RTC, power; [`virtio`]: blk, net, rng, console
//! - [`world`]: several machines and the simulated network between them, the *wire*
//! - [`wire`]: the switch that joins the nodes' network cards, link faults, captures, and Everett's own TCP/IP endpoint
//! - [`digest`]: hashes of states; [`divergence`]: trails of digests, differences and bisection; [`leak`]: defects that
//!   tests plant, and that digests and the bisection must find
//!
//! Elsewhere: images and their contents (`guest-image`), the protocol of the agent, i.e. of Everett's program in the
//! guest (this crate only carries the bytes of the agent's console ports), and the handling of findings.
//!
//! **Invariants.**
//! - The execution of a machine is a function of its configuration, the actions on it, and the vtimes of the actions.
//!   It uses no host time and no unordered map, and all its randomness comes from the random streams that the world's
//!   seed determines. `clippy.toml` enforces this; [`leak`] is the marked exception.
//! - The guest is an attacker. It can cause only CPU exceptions in itself, a device that needs a reset, output for
//!   observers ([`output`]), or the end of its machine ([`machine::End`]).
//! - Observers (digests, output, breakpoints, and the journal of what CPU and devices exchange) change nothing that the
//!   guest can see.

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
