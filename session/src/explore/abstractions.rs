//! The explorer's view of a world: abstract states, properties, and the names of nodes, ports and disks.

use anyhow::Context;
use everett_explorer::coverage::{Abstraction, NodeNames, World as Covered};
use everett_explorer::plan::Names;
use everett_explorer::property::Properties;
use everett_vmm::wire::log::FrameStep;
use everett_world_file::{Node, World};

use super::wire::Ports;
use crate::guest::agent_script::node_address;
use crate::probes;

/// The explorer's view of a world.
#[derive(Debug)]
pub struct Abstractions {
    /// Abstraction that turns the world's state into an abstract state for coverage.
    pub abstraction: Abstraction,
    /// Properties that the explorer checks in the world.
    pub properties: Properties,
    /// Names of nodes and disks that a fault plan can use.
    pub names: Names,
    /// The world itself.
    pub(super) world: World,
    pub(super) ports: Ports,
}

impl Abstractions {
    /// Creates the view that a world file declares. Checks it against the world's nodes.
    ///
    /// # Errors
    /// Returns an error if a declaration of coverage or of a property is invalid.
    pub fn new(world: &World) -> anyhow::Result<Abstractions> {
        let here = || world.file.display().to_string();
        let node = |(index, node): (usize, &Node)| NodeNames {
            name: node.name.clone(),
            aliases: vec![node_address(index).to_string()],
        };
        let nodes: Vec<NodeNames> = world.nodes.iter().enumerate().map(node).collect();
        let names: Vec<String> = world.nodes.iter().map(|node| node.name.clone()).collect();
        let covered =
            Covered::new(nodes, &world.explore.interchangeable).context("explore").with_context(here)?;
        let abstraction = Abstraction::new(&world.explore.state, covered).context("explore.state");
        let mut abstraction = abstraction.with_context(here)?;
        if world.probes.iter().any(|probe| probe.state.is_some()) {
            abstraction = abstraction.with_variables(&world.explore.state);
        }
        let properties = Properties::new(&world.properties, &world.explore.ignore, &names);
        let properties = properties.with_context(here)?;
        let declared: Vec<&str> = world.properties.iter().map(|property| &*property.name).collect();
        everett_explorer::probe::check(&world.probes, &declared, &names).with_context(here)?;
        let noted = world.probes.iter().filter(|probe| probe.notes_first_hit());
        let noted = noted.map(|probe| (probe.name.clone(), probe.sometimes)).collect();
        let properties = properties.with_probes(noted);
        probes::check(world)?;
        Ok(Abstractions {
            abstraction,
            properties,
            names: world.names(),
            ports: Ports::of(world),
            world: world.clone(),
        })
    }

    /// True if a frame on the wire is a message between two nodes. Empty acknowledgments and address resolution are not.
    #[must_use]
    pub fn is_message(&self, step: &FrameStep) -> bool {
        self.ports.observed(step, self.world.nodes.len()).is_some()
    }

    /// Returns the name of the node with this index.
    #[must_use]
    pub fn name(&self, node: u16) -> Option<&str> {
        self.world.nodes.get(usize::from(node)).map(|node| &*node.name)
    }

    /// Returns the index of the node with this name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<u16> {
        let index = self.world.nodes.iter().position(|node| node.name == name)?;
        u16::try_from(index).ok()
    }
}
