//! What is done to worlds, and when.
//!
//! Map:
//! - [`plan`]: fault plans: reading, checking, writing, walking and drawing them
//! - [`units`]: durations and sizes as people write them; [`suggest`]: what a misspelt name was meant to be
//!
//! Not here: how a fault is done (`everett-vmm`), world files and terminals (`everett`, the command line).
//!
//! **Invariants.**
//! - What is decided is a function of what was read and of the world's streams: no host time, no unordered map, no floats.
//! - Text is untrusted: whatever its bytes, it becomes a value or errors that say where, and takes bounded memory.

pub mod plan;
pub mod suggest;
pub mod units;
