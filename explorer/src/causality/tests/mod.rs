//! Searches on scripted timelines, and the stated error compared with simulations.

mod bounds;
mod scripted;
