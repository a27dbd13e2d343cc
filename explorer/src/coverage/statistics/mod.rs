//! What numbers of points and hits say about what was not seen.
//!
//! - `richness`: how many points there may be that nobody reached; `growth`: how coverage grew
//! - `clean`: what it means that nothing was seen; `findability`: how long a bug takes to be found, and how sure its absence is; `pct`: what random priorities promise
//!
//! Not here: the points (`super::cover`).
//!
//! **Invariant.** What may decide about a choice is made of whole numbers: floating point is only shown, since logarithms
//! and powers differ between hosts.

mod clean;
mod findability;
mod growth;
mod pct;
mod richness;

pub use clean::{CONFIDENCE, probability_below};
pub use findability::{Findability, Prior, Subtree};
pub use growth::{Growth, Sample};
pub use pct::Pct;
pub use richness::{Fraction, Incidence};
