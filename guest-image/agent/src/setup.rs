//! What a setup asks for, short of its services.

use crate::failure::Failure;
use crate::network::Routing;
use crate::{clock, disks, etc, root};
use everett_protocol::Setup;
use std::os::fd::OwnedFd;

/// Brings the machine into the state that the setup describes.
///
/// The clock comes first, so that nothing that is made has a time of its own; the root before everything that lies
/// in it. Gives the folder in which changes of the root are.
pub(crate) fn apply(setup: &Setup) -> Result<Option<OwnedFd>, Failure> {
    clock::set(setup.clock)?;
    let upper = root::enter(&setup.root)?;
    etc::write(setup)?;
    let mut routing = Routing::open()?;
    routing.loopback()?;
    for interface in &setup.interfaces {
        routing.interface(interface)?;
    }
    for disk in &setup.disks {
        disks::mount_data(disk)?;
    }
    Ok(upper)
}
