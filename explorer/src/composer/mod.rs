//! The composer: which commands of a test template run when. Templates are those of Antithesis: a folder of executables whose names
//! begin with what they are.
//!
//! - `limits`: every bound by name
//! - `prefix`: what a name says; `template`: the commands of a folder, on all nodes
//! - `state`: all that a timeline's composer knows; `sound`: whether one that was stored can be
//! - `timeline`: the events of a timeline; `start`: what starts next; `ending`: from the workload's end to the timeline's
//! - `tally`: what has become of commands
//!
//! Not here: where templates are found, how a command is run and killed, when a workload is over, how faults stop.
//!
//! A timeline, from the top:
//!
//! | phase | runs | goes on when |
//! |---|---|---|
//! | first | one `first_` command, if there is any | it has ended, however |
//! | driving | drivers and `anytime_` | the caller stops the workload |
//! | finishing, before `finally_` | nothing new | all have ended; killing, if one was killed or takes too long |
//! | killing, before `eventually_` | nothing new, and the rest is killed | nothing runs |
//! | last | the `eventually_` command, or all `finally_` ones in turn | over |
//!
//! **Invariants.**
//! - What a composer does is a function of the template, of the state that it went on from, of the calls and of the stream.
//! - A serial or singleton driver has no other driver beside it, and a singleton starts once. A `first_`, `eventually_` or
//!   `finally_` command has nothing beside it. A `finally_` command follows only on commands that all ended by themselves.
//! - Once the workload was stopped, the timeline ends within [`limits::FINISH_NS_MAX`], [`limits::KILL_NS_MAX`] and
//!   [`limits::LAST_NS_MAX`] together, whatever commands do.

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
