//! Becoming the machine that the host describes: before the restart point, and after it.

use everett_protocol::{Join, Mount, Reply};

use crate::agent::Agent;
use crate::failure::Failure;
use crate::network::Routing;
use crate::virtio::Bus;
use crate::{clock, disks, entropy, etc, root};

/// How far the machine is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stage {
    /// In the initramfs.
    Booted,
    /// The root is mounted: the restart point. The host name, which files after it need.
    Mounted(String),
    /// It is part of its world.
    Joined,
    /// A step on the way failed, and there is no way back.
    Failed,
}

impl Agent {
    /// Goes to the restart point.
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

    /// Does what comes after the restart point, short of files and services. A damaged filesystem ends it.
    ///
    /// Entropy comes first, so that everything that is drawn here depends on it; then the clock, so that nothing that is
    /// made here has an older time.
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
