//! Searches on scripted timelines. The error that a search states is compared with simulations.

mod bounds;
mod scripted;
