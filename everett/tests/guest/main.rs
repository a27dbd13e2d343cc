//! Tests on a stock Debian guest. They first build the guest's image, as a user would. This needs a network connection
//! to a Debian mirror.
//!
//! * `branches`: clock mode `branch`
//! * `causality`: the step that decided a finding
//! * `cluster`: several machines on a network
//! * `composer`: test templates
//! * `containers`: worlds of container images
//! * `disks`: data disks
//! * `drafts`: worlds of `everett init`
//! * `ending`: the end of the workload, and the checks
//! * `exactness`: equal runs of one timeline, and planted leaks
//! * `exits`: clock mode `exit`
//! * `explore`: explorations, replays and shrinking
//! * `faults`: faults of machines, disks and networks
//! * `finding_file`: findings as one file
//! * `instruments`: watchpoints and edges
//! * `joining`: files and services before *ready*
//! * `live`: live view of explorations, in a terminal
//! * `moments`: restart point, *ready*, and the effects of the seed
//! * `power_loss`: data after power losses
//! * `programs`: right answers from programs in Debian packages
//! * `regressions`: regression files on changed worlds
//! * `scheduling`: scheduling faults
//! * `sdk`: programs with the public SDKs
//! * `stored`: moments in memory and in files
//! * `support`: the test world, its image, and functions that run timelines
//! * `trouble`: guests that go wrong

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
