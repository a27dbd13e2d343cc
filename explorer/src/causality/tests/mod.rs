//! Searches on scripted timelines, and the stated error against simulations.

mod bounds;
mod scripted;
