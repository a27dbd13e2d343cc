//! Tests of the search for the step (the observed event of a timeline) that made a finding likely. Many tests search
//! simulated timelines, for which the test knows the step.

mod bounds;
mod scripted;
