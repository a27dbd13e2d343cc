//! How a world is looked at: what is taken for its state, what must not be seen, what its nodes, ports and disks are called.

use anyhow::Context;
use everett_explorer::coverage::{Abstraction, NodeNames, World as Covered};
use everett_explorer::plan::Names;
use everett_explorer::property::Properties;

use super::wire::Ports;
use crate::agent_script::node_address;
use crate::world_file::{Node, World};

/// How a world is looked at.
#[derive(Debug)]
pub struct Lens {
    /// What is taken for the state of the world.
    pub abstraction: Abstraction,
    /// What must not be seen.
    pub properties: Properties,
    /// What a fault can be done to.
    pub names: Names,
    /// The world.
    pub(super) world: World,
    pub(super) ports: Ports,
}

impl Lens {
    /// What a world file declares, checked against its nodes.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(world: &World) -> anyhow::Result<Lens> {
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
        let properties = Properties::new(&world.properties, &world.explore.ignore, &names);
        Ok(Lens {
            abstraction: abstraction.with_context(here)?,
            properties: properties.with_context(here)?,
            names: world.names(),
            ports: Ports::of(world),
            world: world.clone(),
        })
    }

    /// The name of a node.
    #[must_use]
    pub fn name(&self, node: u16) -> Option<&str> {
        self.world.nodes.get(usize::from(node)).map(|node| &*node.name)
    }

    /// A node's number.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<u16> {
        let index = self.world.nodes.iter().position(|node| node.name == name)?;
        u16::try_from(index).ok()
    }
}
