//! Programs in memory, and the linear addresses of probes on a node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use everett_inspect::mapping::Mapping;
use everett_inspect::task::Process;
use everett_inspect::{Error, Guest};
use everett_symbols::program::Program;

use everett_vmm::Machine;

use super::limits::{KNOWN_MAX, LOADED_MAX, PROBLEMS_MAX, SITES_MAX};
use super::probe::KERNEL;
use super::programs::{NodePrograms, Programs};
use super::wanted::Wanted;

/// Number of bytes of code that are compared between memory and the program's file.
const COMPARED_BYTES: usize = 16;

/// A program in memory.
#[derive(Debug)]
pub(super) struct Loaded {
    /// Name of its process.
    name: String,
    /// Mapping of its code.
    pub(super) mapping: Mapping,
    pub(super) program: Arc<Program>,
    /// Distance of addresses in memory from the addresses that the file states.
    pub(super) bias: u64,
}

impl Loaded {
    /// Returns the program of a process from its path and mappings. `None` if no file of the image is this program.
    fn of(name: &str, path: &str, mappings: Vec<Mapping>, programs: &NodePrograms) -> Option<Loaded> {
        let code =
            |mapping: &Mapping| mapping.access.execute && mapping.file.is_some() && mapping.name == path;
        mappings.into_iter().filter(code).find_map(|mapping| {
            let program = programs.program(&mapping)?;
            let address = program.address_of_code(mapping.file?.offset)?;
            let bias = mapping.start.wrapping_sub(address);
            Some(Loaded { name: name.to_owned(), mapping, program, bias })
        })
    }
}

/// Place of a probe in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Site {
    pub(super) probe: usize,
    /// Index of the program in [`NodeSites::loaded`]. `None` for the kernel.
    pub(super) loaded: Option<usize>,
}

/// Places of probes on a node.
#[derive(Default)]
pub(super) struct NodeSites {
    sites: BTreeMap<u64, BTreeSet<Site>>,
    loaded: Vec<Arc<Loaded>>,
    /// Programs of processes by process ID and address of the `mm_struct`. `None` for programs without a probe.
    processes: BTreeMap<(u32, u64), Option<usize>>,
}

impl NodeSites {
    /// Adds the place of a probe in the kernel.
    pub(super) fn add_kernel(&mut self, probe: usize, address: u64) {
        self.sites.entry(address).or_default().insert(Site { probe, loaded: None });
    }

    /// Returns all addresses.
    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.sites.keys().copied()
    }

    /// Returns the probes at an address.
    pub(super) fn at(&self, address: u64) -> Option<&BTreeSet<Site>> {
        self.sites.get(&address)
    }

    pub(super) fn program(&self, index: usize) -> Option<&Arc<Loaded>> {
        self.loaded.get(index)
    }

    /// Forgets the programs that a process has run.
    pub(super) fn forget(&mut self, pid: u32) {
        self.processes.retain(|(of, _), _| *of != pid);
    }

    /// Returns the index of a process's program, and places its probes if they are not placed yet. `None` if no probe is
    /// in the program.
    pub(super) fn program_of(
        &mut self,
        guest: &Guest<'_>,
        process: &Process,
        probes: &[Wanted],
        (programs, node): (&Programs, usize),
        seen: &mut Seen<'_>,
    ) -> Result<Option<usize>, Error> {
        let Some(mm) = process.mm else { return Ok(None) };
        let key = (process.pid, mm);
        if let Some(known) = self.processes.get(&key) {
            return Ok(*known);
        }
        let found = self.place(guest, process, probes, (programs, node), seen)?;
        self.make_room(|| {
            let processes = guest.processes()?;
            Ok(processes.iter().filter_map(|process| Some((process.pid, process.mm?))).collect())
        });
        self.processes.insert(key, found);
        Ok(found)
    }

    /// True if places at these addresses do not exceed [`SITES_MAX`].
    fn has_room_for(&self, addresses: impl Iterator<Item = u64>) -> bool {
        let new: BTreeSet<u64> = addresses.filter(|address| !self.sites.contains_key(address)).collect();
        self.sites.len() + new.len() <= SITES_MAX
    }

    /// Forgets the programs of processes that have ended, if there are [`KNOWN_MAX`]. Living processes keep theirs, so the hits
    /// are the same. If the guest cannot be read, all are forgotten and looked for again.
    fn make_room(&mut self, living: impl FnOnce() -> Result<BTreeSet<(u32, u64)>, Error>) {
        if self.processes.len() < KNOWN_MAX {
            return;
        }
        match living() {
            Ok(living) => self.processes.retain(|key, _| living.contains(key)),
            Err(_) => self.processes.clear(),
        }
        // A guest has fewer processes than that.
        if self.processes.len() >= KNOWN_MAX {
            self.processes.clear();
        }
    }

    fn place(
        &mut self,
        guest: &Guest<'_>,
        process: &Process,
        probes: &[Wanted],
        (programs, node): (&Programs, usize),
        seen: &mut Seen<'_>,
    ) -> Result<Option<usize>, Error> {
        let name = process.threads.first().map(|thread| thread.name.clone()).unwrap_or_default();
        let Some(path) = guest.program_path(process)? else { return Ok(None) };
        let wanted: Vec<usize> = (0..probes.len())
            .filter(|n| probes[*n].is_on(node) && is_named(&probes[*n].probe.program, &name, &path))
            .collect();
        if wanted.is_empty() {
            return Ok(None);
        }
        let mappings = guest.mappings(process)?;
        let placed = programs.with(node, |programs| {
            if let Some(loaded) = Loaded::of(&name, &path, mappings, programs) {
                let mut addresses = Vec::new();
                for probe in &wanted {
                    match programs.addresses(
                        (*probe, &probes[*probe].probe),
                        &loaded.mapping,
                        &loaded.program,
                    ) {
                        Ok(all) => addresses.push((*probe, all)),
                        Err(why) => note(seen.problems, why),
                    }
                }
                return Some((loaded, addresses));
            }
            note(seen.problems, format!("{path}: no file of the image is this program"));
            None
        });
        let Some((loaded, addresses)) = placed.flatten() else { return Ok(None) };
        if let Some(index) = self.loaded.iter().position(|other| other.is_like(&loaded)) {
            return Ok(Some(index));
        }
        let all = addresses.iter().flat_map(|(_, addresses)| addresses.iter());
        let all = all.map(|address| address.wrapping_add(loaded.bias));
        if self.loaded.len() >= LOADED_MAX || !self.has_room_for(all) {
            let most = format!("over {LOADED_MAX} programs, or {SITES_MAX} places of probes in them");
            note(seen.problems, format!("{path} is not probed: {most}, were loaded at different addresses"));
            return Ok(None);
        }
        let index = self.loaded.len();
        for (probe, addresses) in addresses {
            seen.placed[probe] = true;
            for address in addresses.iter() {
                let site = Site { probe, loaded: Some(index) };
                self.sites.entry(address.wrapping_add(loaded.bias)).or_default().insert(site);
            }
        }
        self.loaded.push(Arc::new(loaded));
        Ok(Some(index))
    }
}

impl Loaded {
    /// Returns the program of a process. `None` if no file of the image is this program.
    pub(super) fn of_process(
        guest: &Guest<'_>,
        process: &Process,
        (programs, node): (&Programs, usize),
    ) -> Result<Option<Loaded>, Error> {
        let name = process.threads.first().map(|thread| thread.name.clone()).unwrap_or_default();
        let Some(path) = guest.program_path(process)? else { return Ok(None) };
        let mappings = guest.mappings(process)?;
        Ok(programs.with(node, |programs| Loaded::of(&name, &path, mappings, programs)).flatten())
    }

    /// True if an operator means this program: by its path, the name of its file, or the name of its process.
    pub(super) fn is_called(&self, wanted: &str) -> bool {
        is_named(wanted, &self.name, &self.mapping.name)
    }

    /// True if this is the same program at the same address, in a process of the same name.
    pub(super) fn is_like(&self, other: &Loaded) -> bool {
        (&self.name, &self.mapping.name, self.bias) == (&other.name, &other.mapping.name, other.bias)
    }

    /// True if the code at an address in memory is that of the program's file.
    pub(super) fn has_code(&self, machine: &Machine, address: u64) -> bool {
        if !(self.mapping.start..self.mapping.end).contains(&address) {
            return false;
        }
        let offset = self.mapping.file.map_or(0, |file| file.offset);
        let expected = self.program.bytes_at(offset.wrapping_add(address - self.mapping.start));
        let mut code = [0; COMPARED_BYTES];
        let read = machine.read_virtual(address, &mut code).min(expected.len());
        // The page of the next instruction can be missing in memory, which leads to a fault and then to another stop.
        code[..read] == expected[..read]
    }
}

/// Notes that are taken while probes are placed.
pub(super) struct Seen<'s> {
    /// True for each probe that was placed.
    pub(super) placed: &'s mut [bool],
    /// Reasons why code was not probed.
    pub(super) problems: &'s mut BTreeSet<String>,
}

/// Notes a reason why code was not probed. Those beyond [`PROBLEMS_MAX`] are left out.
pub(super) fn note(problems: &mut BTreeSet<String>, why: String) {
    if problems.len() < PROBLEMS_MAX {
        problems.insert(why);
    }
}

/// True if a probe's program is this one: the path, the file's name, or the name of the process.
fn is_named(wanted: &str, process: &str, path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    wanted != KERNEL && (wanted == path || wanted == process || wanted == file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_of_a_program_count_before_they_are_added() {
        let mut sites = NodeSites::default();
        sites.add_kernel(0, 1);
        let most = SITES_MAX as u64;
        assert!(sites.has_room_for(1..=most));
        assert!(sites.has_room_for((1..=most).chain(1..=most)), "two probes at the same addresses");
        assert!(!sites.has_room_for(2..=most + 1));
    }

    #[test]
    fn programs_of_ended_processes_are_forgotten_if_there_are_too_many() {
        let full = || {
            let mut sites = NodeSites::default();
            let keys = (0..KNOWN_MAX as u32).map(|pid| ((pid, 7), Some(0)));
            sites.processes.extend(keys);
            sites
        };
        let mut sites = full();
        sites.make_room(|| Ok(BTreeSet::from([(3, 7), (4, 8), (5, 7)])));
        assert_eq!(sites.processes.keys().copied().collect::<Vec<_>>(), [(3, 7), (5, 7)]);
        sites.make_room(|| panic!("there is room"));
        let mut sites = full();
        sites.make_room(|| Ok((0..KNOWN_MAX as u32).map(|pid| (pid, 7)).collect()));
        assert!(sites.processes.is_empty());
    }
}
