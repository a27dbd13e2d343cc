//! Tests of the search for the step that decided a finding. A large part of them runs on simulated timelines whose
//! decisive step the test knows.

mod bounds;
mod scripted;
