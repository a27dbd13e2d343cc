//! Tests on a stock Debian guest. They first build the guest's image, as a user would. This needs a network connection
//! to a Debian mirror.
//!
//! * `branches`: clock mode `branch`, in which virtual time counts executed conditional branches
//! * `causality`: `everett causality`, which finds the step that decided a finding
//! * `cluster`: several machines on a network
//! * `composer`: test templates, i.e. folders of commands that Everett runs
//! * `containers`: worlds of container images
//! * `disks`: data disks
//! * `drafts`: boots the world files that `everett init` writes
//! * `ending`: when the workload ends and the checks start
//! * `exactness`: runs of one timeline are equal, and planted dependences on the host are found
//! * `exits`: clock mode `exit`, in which virtual time counts exits of the guest
//! * `explore`: explorations, replays and shrinking
//! * `faults`: faults of machines, disks and networks
//! * `finding_file`: findings that are exported to a file and replayed elsewhere
//! * `inside_fork`: commands, shells and files in throw-away forks
//! * `gdb_packets`: random packets to gdb's stub
//! * `go_programs`: stacks and probes of a Go program without symbols
//! * `inspection`: processes, mappings and stacks, read from a guest's memory
//! * `instruments`: watchpoints and edges (executed jumps and branches with their targets)
//! * `joining`: files and services before *ready*, the vtime at which all services are up
//! * `live`: live view of explorations, in a terminal
//! * `modules`: stacks through loadable modules, read from a guest's memory
//! * `moments`: the two points of a boot at which Everett stores machines, and what the seed changes after them
//! * `origins`: the origin of a wrong answer, across nodes
//! * `power_loss`: data after power losses
//! * `programs`: programs from Debian packages give right answers
//! * `questions`: observers of a timeline change nothing in it
//! * `regressions`: regression files on changed worlds
//! * `scheduling`: faults that override the guest's scheduler
//! * `sdk`: programs with the public SDKs
//! * `stored`: timelines that continue from moments in memory and in files
//! * `support`: the test world, its image, and functions that run timelines
//! * `trouble`: guests that go wrong
//! * `vmcores`: opens core files of kernels with drgn

mod branches;
mod causality;
mod cluster;
mod composer;
mod containers;
#[cfg(feature = "inside")]
mod cursor;
mod disks;
mod drafts;
mod ending;
mod exactness;
mod exits;
mod explore;
mod faults;
mod finding_file;
#[cfg(feature = "inside")]
mod gdb_packets;
#[cfg(feature = "inside")]
mod go_programs;
#[cfg(feature = "inside")]
mod inside_fork;
#[cfg(feature = "inside")]
mod inspection;
mod instruments;
mod joining;
mod live;
#[cfg(feature = "inside")]
mod modules;
mod moments;
#[cfg(feature = "inside")]
mod origins;
mod power_loss;
mod programs;
#[cfg(feature = "inside")]
mod questions;
mod regressions;
mod scheduling;
mod sdk;
#[cfg(feature = "inside")]
mod sockets;
mod stored;
mod support;
mod trouble;
#[cfg(feature = "inside")]
mod vmcores;
