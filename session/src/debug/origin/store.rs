//! The last store to bytes of memory.

use std::ops::Range;

use anyhow::bail;
use everett_cpu::{Watchpoint, WatchpointHit};
use everett_input::causes::with_causes;
use everett_inspect::memory::{AddressSpace, PAGE, Ram as _};
use everett_inspect::{Error, Guest, Kernel};
use everett_vmm::Machine;

use super::instruction::Before;
use super::limits::{ALIASES_MAX, BLOCK_STORES_MAX};
use super::{KERNEL_HALF, Memory, Search};
use crate::debug::cursor::position::Position;
use crate::debug::cursor::{Aim, Cursor, Stop};
use crate::inside::machine::MachineRam;

/// Length of the blocks in which devices write at least, in bytes: a disk's sector.
const BLOCK: u64 = 512;

/// A store.
pub(super) struct Found {
    /// Instant before the store.
    pub(super) position: Position,
    /// The CPU before the store.
    pub(super) before: Before,
    /// Linear address at which it stored the first wanted byte.
    pub(super) stored_at: u64,
    /// The wanted bytes that it stored.
    pub(super) range: Range<u64>,
    /// All wanted bytes before the store.
    pub(super) before_bytes: Vec<u8>,
    /// All wanted bytes after the store.
    pub(super) after: Vec<u8>,
}

/// Bytes of RAM.
#[derive(Debug, Clone, Copy)]
struct Target {
    physical: u64,
    bytes: u64,
}

impl Target {
    fn read(self, machine: &Machine) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes as usize];
        if MachineRam(machine).read(self.physical, &mut bytes) { bytes } else { Vec::new() }
    }

    /// Returns the part of the target that an access stored, and the distance of its first byte from the start of the
    /// access.
    fn met(self, machine: &Machine, hit: &WatchpointHit) -> Option<(Range<u64>, u64)> {
        let ram = MachineRam(machine);
        let space = AddressSpace::new(&ram, hit.cr3);
        let mut met: Option<(Range<u64>, u64)> = None;
        for distance in 0..u64::from(hit.size) {
            // An access can lie in two pages.
            let Some(physical) = space.physical(hit.address.wrapping_add(distance)) else { continue };
            let Some(at) = physical.checked_sub(self.physical).filter(|at| *at < self.bytes) else {
                continue;
            };
            match &mut met {
                Some((range, _)) if range.end == at => range.end = at + 1,
                Some(_) => {}
                None => met = Some((at..at + 1, distance)),
            }
        }
        met
    }
}

impl Search<'_, '_> {
    /// Moves to the last store to memory before an instant. `physical` is the place of the first byte in RAM, `addresses`
    /// are its linear addresses.
    pub(super) fn last_store(
        &mut self,
        from: Position,
        wanted: Memory,
        physical: u64,
        addresses: &[u64],
    ) -> anyhow::Result<Option<Found>> {
        let Memory { node, bytes, .. } = wanted;
        let target = Target { physical, bytes };
        let points: Vec<Watchpoint> = addresses
            .iter()
            .map(|address| Watchpoint { address: *address, len: bytes, loads: false, stores: true })
            .collect();
        self.clear();
        if !self.cursor.set_watchpoints(node, &points) {
            bail!("this engine has no watchpoints; use the engine soft");
        }
        let is_wanted = |cursor: &Cursor<'_>, stop: &Stop| {
            let Stop::Access { node: there, hits } = stop else { return None };
            if *there != node {
                return None;
            }
            let machine = cursor.timeline().machine(node);
            let met = hits.iter().rev().filter(|hit| hit.store);
            let met = met.filter_map(|hit| Some((hit.address, target.met(machine, hit)?))).next();
            let (start, (range, in_store)) = met?;
            Some((start.wrapping_add(in_store), range, target.read(machine)))
        };
        let found = self.cursor.run_back(from, &is_wanted, self.listener)?;
        let Some((_, (stored_at, range, after))) = found else {
            self.clear();
            return Ok(None);
        };
        let position = self.cursor.position(node);
        let machine = self.cursor.timeline().machine(node);
        let before = Before::of(machine, position.count);
        let before_bytes = target.read(machine);
        self.clear();
        Ok(Some(Found { position, before, stored_at, range, before_bytes, after }))
    }
}

impl Search<'_, '_> {
    /// True if a device wrote into the block of memory around `physical` between the store at `from` and the instant `to`, or
    /// if that is not known. Follows all stores to the block: other changes are those of devices. Returns to `from`.
    pub(super) fn device_wrote(
        &mut self,
        from: Position,
        to: Position,
        physical: u64,
        (node, addresses): (usize, &[u64]),
    ) -> anyhow::Result<bool> {
        let within = physical % BLOCK;
        let block = Target { physical: physical - within, bytes: BLOCK };
        let points: Vec<Watchpoint> = addresses
            .iter()
            .map(|address| address.wrapping_sub(within))
            .map(|address| Watchpoint { address, len: BLOCK, loads: false, stores: true })
            .collect();
        self.clear();
        self.cursor.run(Aim::Count { node, count: from.count + 1 }, self.listener)?;
        let mut known = block.read(self.cursor.timeline().machine(node));
        self.cursor.set_watchpoints(node, &points);
        let mut stores = 0;
        let mut is_there = to.count <= from.count + 1;
        while !is_there && stores < BLOCK_STORES_MAX {
            match self.cursor.run(Aim::Count { node, count: to.count }, self.listener)? {
                Stop::Access { hits, .. } => {
                    let machine = self.cursor.timeline().machine(node);
                    let now = block.read(machine);
                    for hit in hits.iter().filter(|hit| hit.store) {
                        let Some((range, _)) = block.met(machine, hit) else { continue };
                        let range = range.start as usize..range.end as usize;
                        if let (Some(known), Some(now)) = (known.get_mut(range.clone()), now.get(range)) {
                            known.copy_from_slice(now);
                        }
                    }
                    stores += 1;
                }
                Stop::Reached => is_there = true,
                _ => break,
            }
        }
        let last = block.read(self.cursor.timeline().machine(node));
        self.clear();
        self.go_to(from)?;
        Ok(!is_there || last != known)
    }
}

/// Linear addresses at which bytes can be stored.
pub(super) struct Addresses {
    /// The addresses, ascending.
    pub(super) linear: Vec<u64>,
    /// A sentence about mappings that could not be read.
    pub(super) missed: Option<String>,
}

/// Returns the linear addresses at which the bytes can be stored: the wanted one, the one in the kernel's mapping of all
/// RAM, and those of mappings that processes share. Reads at most `pages_left` entries of page tables.
///
/// # Errors
/// Returns the reason if there are more mappings than are looked at, or if the guest cannot be read.
pub(super) fn linear_addresses(
    kernel: &Kernel,
    cursor: &Cursor<'_>,
    wanted: Memory,
    physical: u64,
    mut pages_left: usize,
) -> Result<Addresses, String> {
    let too_many = || format!("the page at {:#x} can have more mappings than are looked at", wanted.address);
    let unread = |what: &str, error: &Error| format!("{what} cannot be read: {}", with_causes(error));
    let mut linear = vec![wanted.address];
    let ram = MachineRam(cursor.timeline().machine(wanted.node));
    let guest = Guest::new(kernel, &ram).map_err(|error| unread("the kernel's data", &error))?;
    let direct = guest.direct_map().map_err(|error| unread("the kernel's mapping of all RAM", &error))?;
    linear.push(direct.wrapping_add(physical));
    let within = physical % PAGE;
    let mut missed = Missed::default();
    for process in guest.processes().map_err(|error| unread("the list of processes", &error))? {
        let space = match guest.memory_of_process(&process) {
            Ok(Some(space)) => space,
            // A thread of the kernel, or a process that has ended.
            Ok(None) => continue,
            Err(error) => {
                missed.add(process.pid, &error);
                continue;
            }
        };
        let mappings = match guest.mappings(&process) {
            Ok(mappings) => mappings,
            Err(error) => {
                missed.add(process.pid, &error);
                continue;
            }
        };
        for mapping in mappings.iter().filter(|mapping| mapping.access.shared && mapping.end <= KERNEL_HALF) {
            let parts = space.mapped(mapping.start..mapping.end, &mut pages_left).map_err(|_| too_many())?;
            for page in parts.into_iter().flat_map(|part| part.step_by(PAGE as usize)) {
                if space.physical(page) == Some(physical - within) {
                    linear.push(page + within);
                    if linear.len() > ALIASES_MAX {
                        return Err(too_many());
                    }
                }
            }
        }
    }
    linear.sort_unstable();
    linear.dedup();
    Ok(Addresses { linear, missed: missed.sentence() })
}

/// Processes whose mappings could not be read.
#[derive(Debug, Default)]
struct Missed {
    /// ID of the first one, and the cause.
    first: Option<(u32, String)>,
    others: usize,
}

impl Missed {
    fn add(&mut self, pid: u32, error: &Error) {
        match self.first {
            None => self.first = Some((pid, with_causes(error))),
            Some(_) => self.others += 1,
        }
    }

    fn sentence(self) -> Option<String> {
        let (pid, cause) = self.first?;
        let others = match self.others {
            0 => String::new(),
            others => format!(" and of {others} others"),
        };
        Some(format!(
            "the mappings of process {pid}{others} cannot be read ({cause}), so stores through them are not looked for"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_cannot_be_read_are_named() {
        let mut missed = Missed::default();
        missed.add(81, &Error::Unmapped(0x10));
        assert_eq!(
            missed.sentence().unwrap(),
            "the mappings of process 81 cannot be read (0x10 is unmapped), so stores through them are not looked for"
        );
        let mut missed = Missed::default();
        for pid in [81, 82, 83] {
            missed.add(pid, &Error::Unmapped(0x10));
        }
        assert!(missed.sentence().unwrap().starts_with("the mappings of process 81 and of 2 others cannot"));
        assert_eq!(Missed::default().sentence(), None);
    }
}
