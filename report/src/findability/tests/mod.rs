//! Tests of the estimates: by hand, and against simulated histories of runs.

mod by_hand;
mod simulated;
