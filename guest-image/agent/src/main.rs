//! The guest's agent: PID 1 of every machine that Everett runs.
//!
//! Its life has three parts, in this order:
//!
//! 1. `boot`: from the initramfs alone, mount what the kernel offers, load the modules of the machine's devices and
//!    find the ports to the host (`ports`). Then say hello.
//! 2. `setup`: mount the root when the host says so (`root`). That is the *restart point*: no data disk and no network
//!    card has had a driver (`virtio`), no interface is up, no service ran, nobody read the kernel's `boot_id`. What
//!    follows is the same at a first start and after a power loss: new entropy (`entropy`), the clock (`clock`), data
//!    disks (`disks`), names (`etc`) and the network (`network`).
//! 3. `agent`: one thread, one poll(2) loop. Services (`services`, `readiness`) and commands (`commands`) are started
//!    (`spawn`), with the history port if the host says so, and their output is captured line by line (`capture`);
//!    requests are served, for files (`files`, `listing`) too; children are reaped.
//!
//! What is not here: any policy about worlds, faults or time. The agent reads only the guest's clocks, and those
//! only to wait as long as the host asked it to.
//!
//! **Invariants.** One thread. Nothing spins. Every failure reaches the host as a message that names what failed, or
//! the console when there is no port to the host. `unsafe` is in `entropy`, `priorities`, `signals` and
//! `spawn` only.

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
    // Whatever ends the agent ends the machine: a PID 1 that exits makes the kernel panic, which says less.
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
