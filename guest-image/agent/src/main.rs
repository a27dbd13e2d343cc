//! The guest's agent: PID 1 of every machine that Everett runs.
//!
//! The agent runs in three phases:
//!
//! 1. `boot`: mounts the kernel's filesystems, loads the modules of the machine's devices and opens the ports to the
//!    host (`ports`). All this happens in the initramfs. Then the agent sends its hello message.
//! 2. `setup`: mounts the root (`root`) when the host requests it. The machine is then at its *restart point*: no data
//!    disk or network card has a driver (`virtio`), no interface is up, no service has run, and no program has read the
//!    kernel's `boot_id`. At the first start and after each power loss, `setup` then sets up entropy (`entropy`),
//!    the clock (`clock`), data disks (`disks`), names (`etc`) and the network (`network`).
//! 3. `agent`: runs one poll(2) loop. It starts services (`services`, `readiness`) and commands (`commands`) through
//!    `spawn`, with the history port if the host requests it. It captures output line by line (`capture`), serves
//!    requests, including requests for files (`files`, `listing`), and reaps children.
//!
//! The agent has no policy about worlds, faults or time: the host decides. The agent reads only the guest's clocks, and
//! only to wait as long as the host has requested.
//!
//! **Invariants.** The agent has one thread and never spins. Each failure names the failed action. The agent reports a
//! failure to the host. A failure that ends the agent goes to the console instead. Only `entropy`, `priorities`,
//! `signals` and `spawn` contain `unsafe`.

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
    // A failure that ends the agent powers the machine off. If PID 1 exited, the kernel would panic and report less.
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
