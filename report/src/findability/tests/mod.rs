//! Tests of the estimates of how fast findings are found: against values that were computed by hand, and against
//! simulated histories of runs.

mod by_hand;
mod simulated;
