//! Tests on a stock Debian guest. They first build its image, as a user would, which needs a network to a Debian
//! mirror.
//!
//! * `exactness`: runs of one timeline stay equal under any disturbance, and a planted leak is found;
//! * `exits`, `branches`: the clock modes `exit` and `branch`; `moments`: the restart point, *ready*, and the effects
//!   of the seed;
//! * `stored`: moments in memory and in files;
//! * `cluster`: several machines on a wire; `faults` and `scheduling`: faults; `power_loss`: data after losses of
//!   power;
//! * `containers`: worlds of container images; `sdk`: programs with the public SDKs;
//! * `explore`: forks, judges and paths; `regressions`: regression files on changed worlds; `composer`: test templates;
//! * `finding_file`: a finding as one file;
//! * `causality`: the step that decided a finding;
//! * `joining`: files and services before *ready*; `ending`: the end of the workload and the checks;
//! * `live`: the live view of explorations, in a terminal;
//! * `drafts`: worlds of `everett init`; `disks`: data disks; `instruments`: watchpoints and edges;
//! * `programs`: programs from Debian packages give right answers; `trouble`: guests that go wrong;
//! * `support`: the test world and its image, and functions that run timelines.

mod branches;
mod causality;
mod cluster;
mod composer;
mod containers;
mod disks;
mod drafts;
mod ending;
mod exactness;
mod exits;
mod explore;
mod faults;
mod finding_file;
mod instruments;
mod joining;
mod live;
mod moments;
mod power_loss;
mod programs;
mod regressions;
mod scheduling;
mod sdk;
mod stored;
mod support;
mod trouble;
