//! Coverage: which abstract states, faults and orders of events an exploration reached, and what it did not reach.
//!
//! A branch's events, in the order of vtime, become points of coverage; those of all branches are kept in one table.
//!
//! - `limits`: every bound by name; `text`: texts within bounds
//! - `observed`: events as they come in; `world`: the nodes, and which are interchangeable
//! - [`template()`]: log lines reduced to what they say; `vocabulary`: how many of them are told apart
//! - [`abstraction`]: what is taken for state; `value`, `node`, `state`: the states; `symmetry`: their canonical form
//! - `types` and `order`: types of events, and which came before which
//! - `point`: what can be reached; `observer` and `delta`: what a branch reached; `cover`: what all of them did
//! - `dictionary`: points by number; `numbers`: what a branch reached, by number
//! - [`statistics`]: how much there may be that was not seen; `gaps`: what was not, by name
//!
//! Not here: which branch is run next (strategies read rewards and statistics), where deltas are stored, and how events are got
//! from a world.
//!
//! **Invariants.**
//! - What a branch reaches is a function of the [`Abstraction`], the [`ObserverState`] it started from and its events; not of
//!   other branches. Its [`Delta`] can be computed anywhere, in any order.
//! - A timeline that is cut in pieces, each started from the last one's state, reaches what it reaches in one piece, as
//!   long as no bound on points was met.
//! - [`Coverage`] is a function of the deltas in the order of choices. [`Coverage::digest`] tells two apart.
//! - A state is the same for all orders of interchangeable nodes, as far as `symmetry` says.
//! - Texts that come from a world are of any kind and length, and never make anything fail: what is beyond a bound is clipped
//!   or folded, always in the same way, and points beyond a bound are counted.

pub mod abstraction;
mod cover;
mod delta;
mod dictionary;
mod gaps;
pub mod limits;
mod node;
mod numbers;
mod observed;
mod observer;
mod order;
mod point;
mod state;
pub mod statistics;
mod symmetry;
mod template;
pub(crate) mod text;
mod types;
mod value;
mod vocabulary;
mod world;

pub use abstraction::{Abstraction, AbstractionConfig, AbstractionError};
pub use cover::{CoverError, Coverage, Covered, Place, Reward};
pub use delta::{Delta, Reached};
pub use dictionary::{Dictionary, WrongId};
pub use gaps::{FaultGap, Gaps, Listed, OrderGap, ValueGap};
pub(crate) use numbers::Unnumbered;
pub use numbers::{BadNumbers, Numbers};
pub use observed::{DiskEvent, Observed, ProcessChange, What, WireKind};
pub use observer::{Observer, ObserverState, OtherWorld};
pub use point::{Kind, Point, PointId};
pub use template::template;
pub use world::{NodeNames, World, WorldError};

#[cfg(test)]
mod tests;
