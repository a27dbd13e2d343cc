//! Runs, worlds, moments and forks as values, for scripts. The Python package `everett` wraps this library.
//!
//! A [`Run`](run::Run) is a run directory, and a [`World`](world::World) a booted world file. Both lead to moments. A
//! [`Moment`](moment::Moment) is an instant of a timeline: it never changes, and scripts read its machines from outside. A
//! [`Fork`](fork::Fork) of a moment is a timeline that goes on: scripts run commands in it, inject faults and let vtime pass.
//!
//! ```no_run
//! # fn example() -> Result<(), everett_scripting::error::Error> {
//! use everett_host::interrupt::Interrupt;
//! use everett_remote::Offline;
//! use everett_scripting::host::Host;
//! use everett_scripting::run::Run;
//! use everett_session::explore::id::Id;
//! use everett_session::inside::debug_files::DebugFolders;
//! use everett_session::machines::engines::EngineChoice;
//! use everett_session::output::progress::Quiet;
//!
//! let host = Host::new(&Offline, &Quiet, Interrupt::default());
//! let run = Run::open("run".as_ref(), EngineChoice::Auto, DebugFolders::default())?;
//! let moment = run.moment(&host, Id::Finding(1), None)?;
//! let mut fork = moment.fork()?;
//! fork.run_for(&host, 1_000_000_000)?;
//! println!("{} {:?}", fork.vtime_ns(), fork.judge()?.violations);
//! # Ok(())
//! # }
//! ```
//!
//! Each module uses only modules above it:
//! - [`limits`]: bounds of calls
//! - `error`: errors
//! - [`host`]: access of calls to the host: registries, progress, interrupts
//! - [`values`]: vtimes and seeds from a script's values
//! - [`observed`]: events and messages of a span of a timeline
//! - `stage`: a world that is ready, with its kernel and its programs
//! - [`view`]: machines at an instant, read from outside
//! - [`judged`]: violations of properties
//! - [`fork`]: a timeline that goes on
//! - [`moment`]: an instant of a timeline
//! - [`world`]: a world file that is booted
//! - [`run`]: a run directory
//!
//! **Invariants.**
//! - A moment does not change, whatever is read and whatever its forks do.
//! - Each call has a bound on vtime, bytes or entries, and ends soon after its interrupt was raised.
//! - What cannot be read is an error, never a zero.

pub mod error;
pub mod fork;
pub mod host;
pub mod judged;
pub mod limits;
pub mod moment;
pub mod observed;
pub mod run;
mod stage;
pub mod values;
pub mod view;
pub mod world;
