//! Moment at the end of a branch, from which other branches continue.

use everett_snapshot::{Layered, Pool};
use everett_vmm::machine::Moment;
use everett_vmm::world::WorldMoment;

use super::history_chain::HistoryChain;
use super::witness::Inherited;
use crate::world::timeline::{SessionState, Timeline};

/// Approximate memory of a moment in bytes, without its pages and its history lines (lines about the operations of
/// clients). This memory holds the devices, the state of the session (the part of Everett that carries out a run), and
/// the observer state, i.e. what Everett has observed: coverage, properties and faults.
const OVERHEAD_BYTES: u64 = 256 << 10;

/// State of a timeline at the end of a branch.
#[derive(Debug)]
pub struct BranchMoment {
    /// State of the world.
    pub world: WorldMoment,
    /// State of everything outside the world that decides how the timeline continues.
    pub session: SessionState,
    /// Observer state at this moment, which branches from this moment inherit.
    pub memory: Inherited,
}

impl BranchMoment {
    /// Takes a moment of `timeline`, which is at the end of a branch.
    pub fn of(timeline: &mut Timeline, pool: &Pool, memory: Inherited) -> BranchMoment {
        let session = timeline.save();
        BranchMoment { world: timeline.world_mut().moment(pool), session, memory }
    }

    /// Returns the approximate memory of this moment in bytes, without the pages and history lines that it shares with
    /// an ancestor. `history` is the history up to the ancestor.
    #[must_use]
    pub fn bytes_beyond(&self, ancestor: &WorldMoment, history: &HistoryChain) -> u64 {
        let lines_bytes = self.memory.chain.bytes().saturating_sub(history.bytes());
        bytes_beyond(&self.world, ancestor).saturating_add(lines_bytes)
    }
}

/// Returns the approximate memory of a world's moment in bytes, without the pages that it shares with an ancestor.
pub(crate) fn bytes_beyond(here: &WorldMoment, ancestor: &WorldMoment) -> u64 {
    let machines = here.machines.iter().zip(&ancestor.machines);
    machines.map(|(here, there)| pages_beyond(here, there)).fold(OVERHEAD_BYTES, u64::saturating_add)
}

fn pages_beyond(here: &Moment, there: &Moment) -> u64 {
    let disks = here.disks().iter().zip(there.disks());
    let disks = disks.map(|(here, there)| here.blocks.bytes_beyond(&there.blocks));
    disks.fold(here.memory().bytes_beyond(there.memory()), u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use everett_explorer::plan::Plan;
    use everett_streams::BootSeed;
    use everett_vmm::boot::small_kernel;
    use everett_vmm::machine::MachineConfig;
    use everett_vmm::wire::WireConfig;
    use everett_vmm::world::World;
    use everett_world_file as world_file;

    use super::*;
    use crate::explore::abstractions::Abstractions;
    use crate::explore::witness::Witness;
    use crate::machines::EngineOptions;
    use crate::world::conversation::tests::script;
    use crate::world::event::{Event, What};

    #[test]
    fn a_moment_counts_the_history_since_its_parent() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = folder.path().join("kernel");
        std::fs::write(&kernel, small_kernel(&[0xf4], 0)).unwrap();
        let machine = EngineOptions::default().machine(MachineConfig::new(&kernel)).unwrap();
        let world = World::new(vec![machine], WireConfig::default(), BootSeed::new(0)).unwrap();
        let mut timeline = Timeline::new(world, vec![script()], Vec::new());
        let file = "[[node]]\nname = \"a\"\n[workload.history]\nmodel = \"set\"\n";
        let file = world_file::parse(file, std::path::Path::new("w.toml")).unwrap();
        let abstractions = Abstractions::new(&file).unwrap();
        let (pool, empty) = (Pool::default(), Plan::default());
        let mut parent = Inherited::new(&abstractions);
        let mut moments = Vec::new();
        for lines in [0, 1000, 0] {
            let mut witness = Witness::new(&abstractions, &empty, &parent).unwrap();
            for vtime_ns in 0..lines {
                let what = What::History { text: "x".repeat(1 << 10), truncated: false };
                witness.hear(&Event { vtime_ns, node: "a".to_owned(), what });
            }
            parent = witness.memory();
            moments.push(BranchMoment::of(&mut timeline, &pool, parent.clone()));
        }
        let [root, child, grandchild] = &moments[..] else { panic!("three moments") };
        let beyond = |moment: &BranchMoment, parent: &BranchMoment| {
            moment.bytes_beyond(&parent.world, &parent.memory.chain)
        };
        assert_eq!(beyond(root, root), OVERHEAD_BYTES);
        assert_eq!(beyond(grandchild, child), OVERHEAD_BYTES);
        let bytes = beyond(child, root) - OVERHEAD_BYTES;
        assert!((1000 << 10..1200 << 10).contains(&bytes), "{bytes}");
    }
}
