//! Worlds with container images. Programs from Debian packages build the images and run the registry; `tools` fetches
//! these packages.
//!
//! * `asking`: answers to questions about the timeline of a program whose system calls are known
//! * `captures`: opens images of disks and captures of the wire with e2fsck and tcpdump
//! * `comparison`: compares what is read from outside with what a program of musl, in an image, says of itself
//! * `compose`: compose files: order of starting, networks, mounts, names, builds
//! * `cores`: opens core files of processes with gdb
//! * `coverage`: functions and lines of a program in an image that an exploration reached
//! * `drafts`: boots the world files that `everett init` writes for an image and for a compose file
//! * `finding`: exports a finding of a compose file's world, and replays it without the project
//! * `lost_write`: goes back with gdb from a finding of redis-sentinel to its cause
//! * `merging`: several compose files merged into one
//! * `models`: programs that need the CPU model `v3`
//! * `origins`: the origin of bytes in memory, files and messages, across nodes
//! * `prints`: prints values of a program on recorded branches
//! * `probes`: probes of a world file, as properties and state variables
//! * `profiles`: profiles of machines by retired instructions
//! * `projects`: finds the planted defects of the projects in `examples/`
//! * `registry`: images from a container registry that runs on this host
//! * `scratch`: an image with only a static program
//! * `sessions`: sessions of `everett debug` over a whole world
//! * `sources`: source lines of a program in an image
//! * `stops`: how services are stopped and started again
//! * `template`: an image with a test template, i.e. a folder of test commands
//! * `tools`: unpacks the tools that build images, such as buildah and umoci, from Debian packages
//! * `vector_registers`: YMM registers of threads in gdb
//! * `waiting`: answers to questions about locks, durable files and executed functions
//! * `userlands`: images with different C libraries and basic programs: busybox, musl, Debian

#[cfg(feature = "inside")]
mod asking;
#[cfg(feature = "inside")]
mod captures;
#[cfg(feature = "inside")]
mod comparison;
mod compose;
#[cfg(feature = "inside")]
mod cores;
#[cfg(feature = "inside")]
mod coverage;
#[cfg(feature = "inside")]
mod debugging;
mod drafts;
mod finding;
#[cfg(feature = "inside")]
mod lost_write;
mod merging;
mod models;
#[cfg(feature = "inside")]
mod origins;
#[cfg(feature = "inside")]
mod prints;
#[cfg(feature = "inside")]
mod probes;
#[cfg(feature = "inside")]
mod profiles;
mod projects;
mod registry;
mod scratch;
#[cfg(feature = "inside")]
mod sessions;
#[cfg(feature = "inside")]
mod sources;
mod stops;
mod template;
mod tools;
mod userlands;
#[cfg(feature = "inside")]
mod vector_registers;
#[cfg(feature = "inside")]
mod waiting;

use std::path::Path;

use everett_explorer::plan::Plan;
use everett_host::interrupt::Interrupt;
use everett_input::causes::with_causes;
use everett_remote_client::Online;
use everett_session::images;
use everett_session::machines::EngineOptions;
use everett_session::output::progress::Quiet;
use everett_session::run::booted::{self, Wanted};
use everett_session::run::launch::Launcher;
use everett_session::run::restarts::Nodes;
use everett_session::world::event::Event;
use everett_session::world::identity::Identity;
use everett_session::world::moments::MomentFolder;
use everett_session::world::timeline::Faults;
use everett_streams::Seed;
use everett_world_file as world_file;

use crate::support::{everett, run_to_end, shown};

/// Number of runs that `everett verify` compares.
const RUNS: &str = "6";

/// Writes a world file. Returns a launcher of the world.
fn launcher(folder: &Path, text: &str) -> Launcher {
    let file = folder.join("world.toml");
    std::fs::write(&file, text).unwrap();
    launcher_of(&file)
}

/// Returns a launcher of the world in a file.
fn launcher_of(file: &Path) -> Launcher {
    let world = world_file::load(file).unwrap_or_else(|error| panic!("{error}"));
    let image = images::get(&Quiet, &world, &Online, &Interrupt::default())
        .unwrap_or_else(|error| panic!("{}", with_causes(error.as_ref())));
    Launcher::new(world, image.files, EngineOptions::default())
}

/// Returns a world of one machine on the image `layout`, without faults. `explore` are the keys of its `[explore]`.
#[cfg(feature = "inside")]
fn world_of_one(explore: &str) -> String {
    format!(
        "[[node]]\nname = \"a\"\nmemory = \"96M\"\nimage = \"layout\"\n[faults]\nonly = []\n[explore]\n{explore}\n"
    )
}

/// Explores a world whose image `layout` has one program of musl, of this C source. Asserts the exit status, and returns the
/// run directory, in `folder`.
#[cfg(feature = "inside")]
fn explored(folder: &Path, source: &str, world: &str, branches: u32, status: i32) -> String {
    let program = userlands::program_of_musl(folder, source);
    userlands::layout_of_musl(folder, &program);
    let file = folder.join("world.toml");
    std::fs::write(&file, world).unwrap();
    crate::support::explored(&file, folder, branches, status)
}

/// Runs a world for `duration_ns` of vtime from *ready* (all services are up). Returns its events.
fn run(folder: &Path, text: &str, duration_ns: u64) -> Vec<Event> {
    run_to_end(&mut launcher(folder, text).start(Seed::new(1)).unwrap(), duration_ns).1
}

/// Runs a world under a fault plan.
fn run_under(folder: &Path, text: &str, plan: &str, duration_ns: u64) -> Vec<Event> {
    let file = folder.join("world.toml");
    std::fs::write(&file, text).unwrap();
    run_file_under(&file, plan, duration_ns)
}

/// Runs the world in a file under a fault plan.
fn run_file_under(file: &Path, plan: &str, duration_ns: u64) -> Vec<Event> {
    let launcher = launcher_of(file);
    let moments = tempfile::tempdir().unwrap();
    let identity = Identity::new(&launcher.world, &[]);
    let moments = MomentFolder::new(moments.path(), &identity, &identity);
    let booted =
        booted::get(&Quiet, &launcher, &moments, Wanted::Both, &Interrupt::default()).expect("it boots");
    let plan = Plan::parse(plan, &launcher.world.names()).expect("a plan");
    let nodes = Nodes::new(launcher.clone(), booted.restart.expect("restart points"));
    let faults = Some(Faults::new(plan, std::sync::Arc::new(nodes)));
    let launcher = Launcher { from: Some(booted.ready), faults, ..launcher };
    run_to_end(&mut launcher.start(Seed::new(1)).unwrap(), duration_ns).1
}

/// Asserts that `everett verify` finds all trails of a world equal.
fn verify(folder: &Path, duration: &str) {
    verify_file(&folder.join("world.toml"), duration);
}

/// Asserts that `everett verify` finds all trails of the world in a file equal.
fn verify_file(file: &Path, duration: &str) {
    let world = file.to_str().unwrap();
    let output = everett(&["verify", world, "--seed", "1", "--for", duration, "--runs", RUNS]);
    assert!(output.status.success(), "{}", shown(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("all trails are equal"), "{}", shown(&output));
}
