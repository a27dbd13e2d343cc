//! Tests on a stock Debian guest: they build its image first (with a network to a Debian mirror), as a user would.
//!
//! * `exactness`: equal runs are equal whatever disturbs them, and gates that fail when they should;
//! * `exits`: clock mode `exit`; `moments`: the restart point, *ready*, and what follows the seed;
//! * `stored`: moments in memory and in files;
//! * `cluster`: several machines on a wire; `faults` and `scheduling`: what is done to them; `power_loss`: what survives it;
//! * `explore`: forks, judges and paths; `composer`: test templates;
//! * `joining`: files and services before *ready*; `ending`: when the workload is over, and what comes then;
//! * `disks`: what guests do with theirs;
//! * `programs`: programs from Debian packages give right answers; `trouble`: guests that go wrong.

mod branches;
mod cluster;
mod composer;
mod disks;
mod ending;
mod exactness;
mod exits;
mod explore;
mod faults;
mod instruments;
mod joining;
mod moments;
mod power_loss;
mod programs;
mod scheduling;
mod stored;
mod support;
mod trouble;
