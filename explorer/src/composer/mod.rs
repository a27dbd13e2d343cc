//! Decides when the commands of a test template start. A template is a folder of executables whose names begin with
//! their type, in the format of Antithesis. A driver is a command that does the work of the test; its name begins with
//! `parallel_driver_`, `serial_driver_` or `singleton_driver_`. The struct that decides is called the composer.
//!
//! - `limits`: bounds
//! - `prefix`: types of commands
//! - `template`: the commands of a template, on all nodes
//! - `state`: what a moment stores of the composer
//! - `validate`: validation of stored states
//! - `timeline`: the interface to the caller
//! - `start`: the choice of the next command
//! - `ending`: the phases after the workload
//! - `tally`: counts of commands and their results
//!
//! Not here: finding templates, running and killing commands, the decision to end the workload, and stopping faults.
//!
//! Phases of a timeline, in order:
//!
//! | phase | runs | ends when |
//! |---|---|---|
//! | first | one `first_` command, if the template has any | the command has ended, with any result |
//! | driving | drivers and `anytime_` commands | the caller stops the workload |
//! | finishing | no new commands, so that `finally_` commands can follow | all commands have ended, or time is up |
//! | killing | no new commands; the running ones are killed | no command runs, or time is up |
//! | last | one `eventually_` command, or all `finally_` commands in turn | they have ended, or time is up |
//!
//! If a template has `finally_` and `eventually_` commands, each timeline draws which of the two types follows the
//! workload.
//!
//! The phase "finishing" exists only if `finally_` commands are to follow and no command was killed before. If a
//! command is killed or too slow in this phase, no `finally_` command runs. An `eventually_` command runs instead,
//! after "killing", if the template has one and a workload ran.
//!
//! **Invariants.**
//! - The composer's actions are a function of the template, the initial state, the calls and the random stream.
//! - While a serial or singleton driver runs, no other driver runs. A singleton driver starts at most once.
//! - A `first_`, `eventually_` or `finally_` command runs alone. `finally_` commands run only if all other commands
//!   ended by themselves before.
//! - After the caller stops the workload, the timeline ends within the sum of [`limits::FINISH_NS_MAX`],
//!   [`limits::KILL_NS_MAX`] and [`limits::LAST_NS_MAX`], even if commands hang.

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
