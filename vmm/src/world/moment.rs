//! Moments of a world: the moments of its machines, and the state between the machines.

use serde::{Deserialize, Serialize};

use everett_snapshot::Pool;

use super::{Node, NodeState, Round, World};
use crate::clock::VTIME_MAX;
use crate::machine::{Machine, Moment, MomentError};
use crate::wire::Wire;

/// Version of the stored form of the state between machines: clocks, power, the wire, and frames that are not on the
/// wire yet.
pub const WORLD_VERSION: u32 = 3;

/// Snapshot of a world, taken while no machine runs.
#[derive(Debug, Clone)]
pub struct WorldMoment {
    /// Moments of the machines, indexed by node number.
    pub machines: Vec<Moment>,
    /// State between the machines: the nodes' clocks and power, the wire, and the frames that are not on it yet.
    between: Between,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Between {
    nodes: Vec<NodeState>,
    wire: Wire,
    round: Round,
}

impl WorldMoment {
    /// Returns the vtime, in nanoseconds, that every running node had reached. In a round, each node runs once, up to a
    /// common vtime. The result is the end of the last complete round. In a world with only one node, it is the node's
    /// own vtime, even if the node stopped within a round.
    pub fn vtime(&self) -> u64 {
        let now = self.between.round.now;
        match (&*self.machines, &*self.between.nodes) {
            ([machine], [node]) => node.clock.world(machine.vtime()).max(now),
            _ => now,
        }
    }

    /// Returns the state between the machines, in the format of [`WORLD_VERSION`].
    pub fn state(&self) -> Vec<u8> {
        // The state is plain data, which postcard can always encode.
        postcard::to_stdvec(&self.between).unwrap_or_default()
    }

    /// Builds a moment from its parts in a file.
    ///
    /// # Errors
    /// Returns an error if the state has another version or is invalid for these machines.
    pub fn from_parts(version: u32, state: &[u8], machines: Vec<Moment>) -> Result<WorldMoment, MomentError> {
        if version != WORLD_VERSION {
            return Err(MomentError::Version(version));
        }
        let damaged = |what: &str| MomentError::Damaged(what.to_owned());
        let (between, rest): (Between, _) =
            postcard::take_from_bytes(state).map_err(|error| MomentError::Damaged(error.to_string()))?;
        if !rest.is_empty() {
            return Err(damaged("bytes follow the state of the world"));
        }
        let moment = WorldMoment { machines, between };
        moment.check().map_err(damaged)?;
        Ok(moment)
    }

    /// Checks that the moment's machines have these names.
    fn check_names<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<(), MomentError> {
        let here: Vec<&str> = names.collect();
        let ports = self.between.wire.ports().iter().take(self.machines.len());
        let there: Vec<&str> = ports.map(|port| &*port.name).collect();
        if here == there {
            return Ok(());
        }
        Err(MomentError::Other { what: "nodes", moment: there.join(", "), machine: here.join(", ") })
    }

    fn check(&self) -> Result<(), &'static str> {
        let Between { nodes, wire, round } = &self.between;
        if nodes.len() != self.machines.len() || wire.ports().len() < nodes.len() {
            return Err("the numbers of nodes and of machines differ");
        }
        if !nodes.iter().all(|node| node.clock.is_sound()) {
            return Err("a node's clock");
        }
        if !nodes.iter().all(NodeState::is_sound) {
            return Err("a node's stalls or frames");
        }
        let sound = round.now <= VTIME_MAX && wire.vtime() <= VTIME_MAX;
        let sound = sound && round.sent.is_sorted_by_key(|&(at, node, _)| (at, node));
        let ports = wire.ports().len();
        if !sound || round.sent.iter().any(|&(at, port, _)| usize::from(port) >= ports || at > VTIME_MAX) {
            return Err("the round");
        }
        Ok(())
    }
}

impl World {
    /// Creates a world at `moment`. The caller has already restored each machine to its own moment in
    /// `moment.machines`.
    ///
    /// # Errors
    /// Returns an error if the machines' names differ from the moment's.
    pub fn from_moment(machines: Vec<Machine>, moment: &WorldMoment) -> Result<World, MomentError> {
        moment.check_names(machines.iter().map(Machine::name))?;
        let Between { nodes, wire, round } = &moment.between;
        let nodes = machines.into_iter().zip(nodes).map(|(machine, state)| Node::of(machine, state.clone()));
        let (wire, round) = (wire.clone(), round.clone());
        Ok(World { nodes: nodes.collect(), wire, round, host: None, capture: None })
    }

    /// Takes a moment. Adds the pages that were written since the previous moment to `pool`. The pool stores equal
    /// pages once.
    ///
    /// The moment does not contain Everett's endpoint, i.e. its own TCP/IP stack on the wire. The endpoint's owner
    /// rebuilds it after a restore ([`World::plug_again`]).
    pub fn moment(&mut self, pool: &Pool) -> WorldMoment {
        let machines = self.nodes.iter_mut().map(|node| node.machine.moment(pool)).collect();
        let nodes = self.nodes.iter().map(|node| node.state.clone()).collect();
        let mut wire = self.wire.clone();
        // The moment does not contain the part of the wire's log that no observer has taken.
        wire.take_steps();
        WorldMoment { machines, between: Between { nodes, wire, round: self.round.clone() } }
    }

    /// Restores the world to `moment`.
    ///
    /// # Errors
    /// Returns an error if the moment does not fit this world. The machines before the one that fails have then already
    /// been restored.
    pub fn restore(&mut self, moment: &WorldMoment) -> Result<(), MomentError> {
        moment.check_names(self.nodes.iter().map(|node| node.machine.name()))?;
        for (node, then) in self.nodes.iter_mut().zip(&moment.machines) {
            node.machine.restore(then)?;
        }
        for (node, then) in self.nodes.iter_mut().zip(&moment.between.nodes) {
            node.state = then.clone();
        }
        self.host = None;
        self.wire = moment.between.wire.clone();
        self.round = moment.between.round.clone();
        // Captured frames belong to the timeline that this restore abandons.
        self.take_captured();
        Ok(())
    }
}
