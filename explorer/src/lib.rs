//! What is done to worlds, and when; which timelines are worth a run; and what is made of what they show.
//!
//! Map:
//! - [`plan`]: fault plans: reading, checking, writing, walking and drawing them
//! - [`config`]: how a world is explored, as its file says it; [`fate`]: what becomes of a timeline on a path: its plan, its end
//! - [`search`]: the tree of timelines, and from where the next one goes on
//! - [`expedition`]: an exploration as it goes: choosing, handing out, writing down, taking in
//! - [`coverage`]: what timelines reached, and how much may be left
//! - [`composer`]: which commands of a test template run when
//! - [`property`] and [`history`]: what must not be seen, in logs, on consoles and in what clients were told
//! - [`run`]: the run directory, and what is known from it; [`report`]: that, told
//! - [`shrink`]: the fewest faults that still show something
//! - [`suggest`]: what a misspelt name was meant to be;
//!   `pattern`: names with stars and expressions that a world file gives
//!
//! Not here: how a fault is done (`everett-vmm`), how timelines are run, world files and terminals (`everett`, the command line).
//!
//! **Invariants.**
//! - What is decided is a function of what was read and of the world's streams: no host time, no unordered map, no floats. Figures
//!   that are only shown may be floats.
//! - Text is untrusted: whatever its bytes, it becomes a value or errors that say where, and takes bounded memory.

pub mod composer;
pub mod config;
pub mod coverage;
pub mod expedition;
pub mod fate;
pub mod fit;
pub mod history;
mod pattern;
pub mod plan;
pub mod property;
pub mod report;
pub mod run;
pub mod search;
pub mod shrink;
pub mod suggest;
