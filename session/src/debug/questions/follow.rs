//! Runs a cursor through a span of time and stops at functions of the kernel.

use anyhow::bail;
use everett_inspect::Kernel;

use super::place::Place;
use crate::debug::cursor::{Aim, Cursor, Listener, Stop};
use crate::inside::machine::MachineRam;

/// Observer of a span of time. Its events and messages begin at the start of the timeline.
pub trait Observer: Listener {
    /// Returns the functions of the kernel at whose first instruction the observer wants to look.
    fn functions(&self) -> Vec<&'static str>;
    /// Looks at a machine at one of these functions, by its index.
    ///
    /// # Errors
    /// An error ends the run.
    fn at(&mut self, function: usize, place: &Place<'_>) -> anyhow::Result<()>;
}

/// A span of time on some nodes.
pub struct Span<'s> {
    /// The kernel of all nodes.
    pub kernel: &'s Kernel,
    /// Numbers of the nodes.
    pub nodes: Vec<usize>,
    /// Vtime of the beginning, in nanoseconds.
    pub since_ns: u64,
    /// Vtime of the end, in nanoseconds.
    pub until_ns: u64,
}

/// Runs through the span. A machine that does not run its kernel, for example while it boots, is not looked at.
///
/// # Errors
/// Returns an error if the kernel has no such function, if the engine has no breakpoints, if the run is interrupted or
/// fails, and the errors of the observer.
pub fn follow(cursor: &mut Cursor<'_>, span: &Span<'_>, observer: &mut impl Observer) -> anyhow::Result<()> {
    let mut addresses = Vec::new();
    for name in observer.functions() {
        match span.kernel.address_of(name) {
            Some(address) => addresses.push(address),
            None => bail!("the kernel has no function {name}"),
        }
    }
    cursor.run(Aim::Vtime(span.since_ns), observer)?;
    for node in &span.nodes {
        if !cursor.set_breakpoints(*node, &addresses) {
            bail!(
                "/dev/kvm cannot observe single instructions; use --engine soft, which runs the same branches"
            );
        }
    }
    let result = stops(cursor, span, &addresses, observer);
    for node in &span.nodes {
        cursor.set_breakpoints(*node, &[]);
    }
    result
}

fn stops(
    cursor: &mut Cursor<'_>,
    span: &Span<'_>,
    addresses: &[u64],
    observer: &mut impl Observer,
) -> anyhow::Result<()> {
    loop {
        let node = match cursor.run(Aim::Vtime(span.until_ns), observer)? {
            Stop::Breakpoint { node } => node,
            Stop::Reached | Stop::End(_) => return Ok(()),
            Stop::Access { .. } | Stop::ModeChange { .. } => continue,
        };
        let ram = MachineRam(cursor.timeline().machine(node));
        let Some(place) = Place::of(span.kernel, &ram, cursor.position(node)) else { continue };
        if let Some(function) = addresses.iter().position(|address| *address == place.cpu.rip) {
            observer.at(function, &place)?;
        }
    }
}
