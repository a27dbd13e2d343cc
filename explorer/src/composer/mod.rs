//! The composer: the schedule of a test template's commands. Templates are those of Antithesis: a folder of executables
//! whose names begin with their type.
//!
//! - `limits`: bounds
//! - `prefix`: types of commands; `template`: the commands of a folder, on all nodes
//! - `state`: the state of a timeline's composer; `sound`: validation of stored states
//! - `timeline`: the events of a timeline; `start`: the choice of commands to start; `ending`: from the workload's end to
//!   the timeline's
//! - `tally`: counts of commands and their results
//!
//! Not here: finding templates, running and killing commands, the end of the workload, and stopping faults.
//!
//! Phases of a timeline, in order:
//!
//! | phase | runs | ends when |
//! |---|---|---|
//! | first | one `first_` command, if there is any | it has ended, with any result |
//! | driving | drivers and `anytime_` | the caller stops the workload |
//! | finishing, before `finally_` | nothing new | all have ended; killing follows if one was killed or takes too long |
//! | killing, before `eventually_` | nothing new, and the rest is killed | nothing runs |
//! | last | the `eventually_` command, or all `finally_` ones in turn | over |
//!
//! **Invariants.**
//! - The composer's actions are a function of the template, its initial state, the calls and the random stream.
//! - A serial or singleton driver has no other driver beside it, and a singleton starts once. A `first_`, `eventually_` or
//!   `finally_` command has nothing beside it. `finally_` commands run only if all commands before them ended by themselves.
//! - After the workload was stopped, the timeline ends within the sum of [`limits::FINISH_NS_MAX`], [`limits::KILL_NS_MAX`]
//!   and [`limits::LAST_NS_MAX`], whatever commands do.

mod ending;
pub mod limits;
mod prefix;
mod sound;
mod start;
mod state;
mod tally;
mod template;
mod timeline;

pub use prefix::Prefix;
pub use sound::Unsound;
pub use state::{ComposerState, Start, Stopping};
pub use tally::{Counts, Tally};
pub use template::{Command, Template, TemplateError};
pub use timeline::{Act, Composer};

#[cfg(test)]
mod tests;
