//! Explorations: timelines that fork at moments, are judged, and are run again from their paths alone.
//!
//! - [`setting`]: what all branches of an exploration share
//! - `stand`: a moment of the tree, with what was seen up to it; `tale`: what clients told up to there
//! - [`traveller`]: a timeline that goes along a path: forks, segments, the checks at the end
//! - [`lens`]: how a world is looked at; [`verdict`]: what is made of a history
//! - [`witness`]: what is made of what a branch shows: coverage, properties, histories, evidence; `wire`: frames as messages
//! - `shelf`: moments of the tree within a budget of memory, derived again when they are gone
//! - `crew`: workers, one thread each; [`spent`]: where their time goes; [`quarters`]: what it takes as it goes on
//! - [`expedition`]: the search, done by workers of this host
//! - `marks`: digests on the way; [`replay`]: a branch again, compared with what was recorded; [`shrink`]: with the fewest faults; [`regression`]: as a file
//!
//! Not here: what is chosen, covered, judged and written (`everett_explorer`), and how it is told (the command line).
//!
//! **Invariants.**
//! - What becomes of a branch is a function of the [`setting`], the seed and its path. Which worker runs it, what that one ran
//!   before, and whether its parent's moment was kept or derived again, does not show.
//! - What is chosen is a function of results, in the order of choices. Host time only ends a sequence of choices.

pub mod crew;
pub mod expedition;
pub mod lens;
pub mod marks;
pub mod quarters;
pub mod regression;
pub mod replay;
pub mod setting;
pub mod shelf;
pub mod shrink;
pub mod spent;
pub mod stand;
pub mod tale;
pub mod traveller;
pub mod verdict;
mod wire;
pub mod witness;
