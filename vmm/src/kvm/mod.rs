//! `/dev/kvm`: one virtual machine with one vCPU, for the kvm engine and the probes of a host.
//!
//! - [`host`]: the device and its capabilities; [`vm`]: a machine, its memory, its log of written pages
//! - [`vcpu`]: a vCPU that runs; [`exit`]: its exits and their answers; [`state`]: its registers
//! - [`cpuid`]: the CPU model as KVM takes it; [`ticker`]: a signal that takes control back from a guest that does not
//!   exit
//! - [`processor`]: a vCPU as the kvm engine uses it; [`counter`]: a counter of its branches; [`tsc`]: its TSC, which is
//!   held still. All three are traits, because few hosts have all three
//! - [`gates`]: a vCPU that leaves exceptions and system calls to the soft CPU
//! - [`perf`]: performance counters of the host's kernel
//! - `ioctl`: requests for which `kvm-ioctls` has no method; [`error`]: errors, one line each
//!
//! Not here: the meaning of an exit for a machine (`engine::kvm`), checks of a host (`everett doctor`).
//!
//! **Invariants.**
//! - No request fails silently: each error number becomes a [`KvmError`] that names the request.
//! - KVM has no interrupt controller and no timer: interrupts, HLT and time are handled by the machine.
//! - Memory that KVM knows is kept alive by the [`Vm`] that uses it.

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
