//! The composer: the schedule of a test template's commands. A template has the format of Antithesis: a folder of
//! executables whose names begin with their type.
//!
//! - `limits`: bounds
//! - `prefix`: types of commands; `template`: the commands of a folder, on all nodes
//! - `state`: the state of a timeline's composer; `validate`: validation of stored states
//! - `timeline`: the interface to the caller; `start`: the choice of commands to start; `ending`: the phases after the
//!   workload
//! - `tally`: counts of commands and their results
//!
//! Not here: finding templates, running and killing commands, the end of the workload, and stopping faults.
//!
//! Phases of a timeline, in order:
//!
//! | phase | runs | ends when |
//! |---|---|---|
//! | first | one `first_` command, if there is any | it has ended, with any result |
//! | driving | drivers and `anytime_` commands | the caller stops the workload |
//! | finishing, before `finally_` | no new commands | all have ended; if one is killed or too slow, killing follows |
//! | killing, before `eventually_` | no new commands; those that run are killed | no command runs |
//! | last | one `eventually_` command, or all `finally_` commands in turn | they have ended, or their time is over |
//!
//! **Invariants.**
//! - The composer's actions are a function of the template, the composer's initial state, the calls and the random
//!   stream.
//! - No other driver runs beside a serial or singleton driver, and a singleton starts at most once. No command runs
//!   beside a `first_`, `eventually_` or `finally_` command. `finally_` commands run only if all commands before them
//!   ended by themselves.
//! - After the workload is stopped, the timeline ends within the sum of [`limits::FINISH_NS_MAX`],
//!   [`limits::KILL_NS_MAX`] and [`limits::LAST_NS_MAX`], whatever commands do.

mod ending;
pub mod limits;
mod prefix;
mod start;
mod state;
mod tally;
mod template;
mod timeline;
mod validate;

pub use prefix::Prefix;
pub use state::{ComposerState, Start, Stopping};
pub use tally::{Counts, Tally};
pub use template::{Command, Template, TemplateError};
pub use timeline::{Act, Composer};
pub use validate::UnreachableState;

#[cfg(test)]
mod tests;
