//! The guest's agent: PID 1 of every machine that Everett runs.
//!
//! It runs in three phases:
//!
//! 1. `boot`: mounts the kernel's filesystems, loads the modules of the machine's devices and finds the ports to the
//!    host (`ports`), all from the initramfs. Then it sends its hello message.
//! 2. `setup`: mounts the root when the host requests it (`root`). That is the *restart point*: no data disk and no
//!    network card has had a driver (`virtio`), no interface is up, no service has run, and the kernel's `boot_id` was
//!    never read. The rest is the same at a first start and after a power loss: new entropy (`entropy`), the clock
//!    (`clock`), data disks (`disks`), names (`etc`) and the network (`network`).
//! 3. `agent`: one thread with one poll(2) loop. It starts services (`services`, `readiness`) and commands (`commands`)
//!    through `spawn`, with the history port if the host requests it. It captures their output line by line
//!    (`capture`), serves requests, including those for files (`files`, `listing`), and reaps children.
//!
//! Not here: any policy about worlds, faults or time. The agent reads only the guest's clocks, and only to wait for as
//! long as the host requested.
//!
//! **Invariants.** The agent has one thread and never spins. Every failure reaches the host as a message that names the
//! failed action, or goes to the console if there is no port to the host. `unsafe` is only in `entropy`, `priorities`,
//! `signals` and `spawn`.

mod agent;
mod boot;
mod capture;
mod clock;
mod commands;
mod console;
mod disks;
mod entropy;
mod etc;
mod failure;
mod files;
mod kernel_log;
mod listing;
mod netlink;
mod network;
mod pack;
mod ports;
mod power;
mod priorities;
mod readiness;
mod requests;
mod root;
mod services;
mod setup;
mod signals;
mod spawn;
mod users;
mod virtio;

fn main() {
    // Every failure of the agent powers the machine off. If PID 1 exited, the kernel would panic and report less.
    let failure = match run() {
        Ok(never) => match never {},
        Err(failure) => failure,
    };
    console::say(&failure.to_string());
    power::off();
}

fn run() -> Result<std::convert::Infallible, failure::Failure> {
    let signals = signals::ChildSignals::block()?;
    let booted = boot::boot()?;
    agent::Agent::new(booted, signals)?.run()
}
