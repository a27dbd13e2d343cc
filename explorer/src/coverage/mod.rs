//! Coverage: the abstract states, faults and orders of events that an exploration reached or failed to reach. An
//! abstract state is a summary of a world's logs and faults.
//!
//! Each event of a branch can reach points of coverage. One table holds the points of all branches.
//!
//! - `limits`: bounds
//! - `observed`: the events of a branch from which coverage is computed
//! - `world`: the nodes, and the groups of interchangeable nodes
//! - `vocabulary`: the bound on distinct log templates (`everett-log-template`) and distinct values
//! - [`abstraction`]: the rules that define the abstract state
//! - `value`, `node`, `abstract_state`: the states of a variable, of a node, and of the whole world
//! - `symmetry`: makes states equal that differ only in the order of interchangeable nodes
//! - `types` and `order`: types of events, and the happens-before relation
//! - `sdk`: assertions, guidance and code edges that programs report
//! - `point`: points, i.e. the things that a branch can reach
//! - `observer` and `delta`: the points of one branch
//! - `cover`: the points of all branches
//! - `dictionary`: assigns a number to each point
//! - `numbers`: compact storage of one branch's points, by their numbers
//! - [`statistics`]: estimates of unseen points and bugs
//! - `gaps`: points that no branch reached, although they seem reachable
//!
//! Not here: the collection of events from a world, the storage of deltas, and the choice of the next branch. The
//! strategies that choose it read statistics and how many new points each branch reached.
//!
//! **Invariants.**
//! - The points of a branch are a function of the [`Abstraction`], the [`ObserverState`] at its start and its events.
//!   They do not depend on other branches, so [`Delta`]s can be computed in any order and in parallel.
//! - A timeline can be cut into pieces, each of which starts from the observer state of the piece before. The pieces
//!   together reach the same points as the whole timeline, unless a bound on points is reached.
//! - [`Coverage`] is a function of the deltas, in the order in which the explorer chose their branches. Different
//!   coverages have different [`Coverage::digest`]s.
//! - A state is the same for all orders of interchangeable nodes, within the limits that `symmetry` states.
//! - Texts from a world may have any content and length, and never cause a failure. Texts beyond a bound are shortened
//!   or replaced, always in the same way. Points beyond a bound are counted.

mod abstract_state;
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
mod sdk;
pub mod statistics;
mod symmetry;
mod types;
mod value;
mod vocabulary;
mod world;

pub use abstraction::{Abstraction, AbstractionConfig, AbstractionError, Capture};
pub use cover::{CoverError, Coverage, Covered, ReachedAt, Reward};
pub use delta::{Delta, Reached};
pub use dictionary::{Dictionary, WrongId};
pub use gaps::{FaultGap, Gaps, Listed, OrderGap, ValueGap};
pub(crate) use numbers::Unnumbered;
pub use numbers::{BadNumbers, Numbers};
pub use observed::{DiskEvent, Observed, ProcessChange, What, WireKind};
pub use observer::{Observer, ObserverState, OtherWorld};
pub use point::{Kind, Outcome, Point, PointId};
pub use world::{NodeNames, World, WorldError};

#[cfg(test)]
mod tests;
