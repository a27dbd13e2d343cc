//! `/dev/kvm`: one virtual machine with one virtual CPU on it, as the kvm engine and the probes of a host need them.
//!
//! - [`host`]: the device and its capabilities; [`vm`]: a machine, its memory, its log of written pages
//! - [`vcpu`]: a CPU that runs; [`exit`]: why it stopped, and the answers; [`state`]: its registers
//! - [`cpuid`]: the CPU model as KVM takes it; [`ticker`]: a signal that gets control back from a guest that does not exit
//! - [`processor`]: a CPU as the kvm engine sees it; [`counter`]: of its branches; [`tsc`]: its TSC, which stands still. All three are
//!   traits, since few hosts have all of it
//! - [`gates`]: a CPU that leaves exceptions and system calls to us
//! - [`perf`]: counters as the host's kernel gives them
//! - `ioctl`: the requests that `kvm-ioctls` has no method for; [`error`]: what can go wrong, in one line each
//!
//! Not here: what an exit means to a machine (`engine::kvm`), what a host is good for (`everett doctor`).
//!
//! **Invariants.**
//! - No request fails silently: each one's error number becomes a [`KvmError`] that names the request.
//! - KVM has no interrupt controller and no timer: interrupts, HLT and time are the machine's.
//! - Memory that KVM knows is kept alive by the machine that knows it.

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
