//! Building blocks on `/dev/kvm`: one virtual machine with one vCPU, for the KVM engine and for the checks of a host.
//!
//! - [`host`]: the device and its capabilities; [`vm`]: a machine, its memory, its log of written pages
//! - [`vcpu`]: a vCPU that runs; [`exit`]: its exits and their answers; [`state`]: its registers
//! - [`cpuid`]: the CPU model's CPUID table for KVM; [`ticker`]: a signal that takes control back from a guest that
//!   does not exit
//! - [`processor`]: trait for a vCPU and its memory; [`counter`]: trait for a counter of a vCPU's branches; [`tsc`]:
//!   trait for a TSC that is held still. Tests simulate all three, because few hosts can provide all three
//! - [`gates`]: a vCPU that leaves exceptions and system calls to the soft CPU
//! - [`perf`]: performance counters of the host's kernel
//! - `ioctl`: requests for which `kvm-ioctls` has no method; [`error`]: errors of one line each
//!
//! Elsewhere: `engine::kvm` decides what a machine does at an exit, and `everett doctor` checks hosts.
//!
//! **Invariants.**
//! - No request fails silently: each error number becomes a [`KvmError`] that names the request.
//! - KVM emulates no interrupt controller and no timer. The machine handles interrupts, HLT and time.
//! - A [`Vm`] shares ownership of the guest memory that KVM uses.

pub mod counter;
pub mod cpuid;
pub mod error;
pub mod exit;
pub mod gates;
pub mod host;
mod ioctl;
pub mod perf;
pub mod processor;
pub mod state;
pub mod ticker;
pub mod tsc;
pub mod vcpu;
pub mod vm;

pub use counter::{Counter, PerfCounter};
pub use error::KvmError;
pub use exit::{Failure, KvmExit};
pub use host::Host;
pub use processor::Processor;
pub use state::{Queued, Saved};
pub use ticker::Ticker;
pub use tsc::{HeldTsc, SlowTsc};
pub use vcpu::Vcpu;
pub use vm::Vm;
