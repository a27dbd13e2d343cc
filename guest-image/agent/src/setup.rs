//! Setup of the machine before and after its restart point, the state that Everett restores after a power loss.

use everett_protocol::{Join, Mount, Reply};

use crate::agent::Agent;
use crate::failure::Failure;
use crate::network::Routing;
use crate::virtio::Bus;
use crate::{clock, disks, entropy, etc, root};

/// Progress of a machine's setup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The machine is in the initramfs.
    Booted,
    /// The machine is at its restart point, with a mounted root. The text is the host name, which `join` needs.
    Mounted(String),
    /// The machine has joined its world.
    Joined,
    /// A step has failed. The setup cannot be repeated.
    Failed,
}

impl Agent {
    /// Takes the machine to its restart point.
    pub(crate) fn mount(&mut self, mount: &Mount) -> Result<(), Failure> {
        if self.stage != Stage::Booted {
            return Err(Failure::new("the machine has left its initramfs already"));
        }
        self.stage = Stage::Failed;
        self.upper = root::enter(&mount.root)?;
        etc::write_name(&mount.hostname)?;
        self.stage = Stage::Mounted(mount.hostname.clone());
        Ok(())
    }

    /// Performs the steps after the restart point, except files and services. Stops if a filesystem is damaged.
    ///
    /// Entropy comes first, so that all later random values depend on it. The clock comes next, so that new files have
    /// timestamps of the world's time.
    pub(crate) fn join(&mut self, join: &Join) -> Result<Reply, Failure> {
        let Stage::Mounted(hostname) = &self.stage else {
            return Err(Failure::new("the machine is not at its restart point"));
        };
        let hostname = hostname.clone();
        self.stage = Stage::Failed;
        entropy::reseed(&join.entropy.0)?;
        clock::set(join.clock)?;
        Bus::of_machine().bind_all()?;
        for disk in &join.disks {
            if let Some(message) = disks::mount_data(disk)? {
                return Ok(Reply::Damaged { message });
            }
        }
        etc::write_network(&hostname, join)?;
        let mut routing = Routing::open()?;
        routing.loopback()?;
        for interface in &join.interfaces {
            routing.interface(interface)?;
        }
        self.stage = Stage::Joined;
        Ok(Reply::Done)
    }
}
