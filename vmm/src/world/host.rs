//! Everett's own endpoint on a world's wire. It is plugged in while Everett or a test exchanges frames with nodes.
//!
//! The endpoint's port comes after the ports of the nodes. The port is unplugged while there is no endpoint.

use super::World;
use crate::wire::endpoint::Endpoint;

/// Error of plugging in an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlugError {
    /// The port belongs to a node, or there is no such port.
    #[error("port {0} of the wire is not the host's")]
    Port(u8),
    /// An endpoint is already plugged in.
    #[error("the host is plugged in already")]
    Taken,
    /// The moment was taken while no endpoint was plugged in.
    #[error("the host was not plugged in")]
    Out,
}

impl World {
    /// Plugs an endpoint into its port. The endpoint's time begins at the world's current vtime. Moments do not contain
    /// the endpoint (see [`World::plug_again`]).
    ///
    /// # Errors
    /// Returns an error if the port belongs to a node or does not exist, or if an endpoint is already plugged in.
    pub fn plug(&mut self, mut endpoint: Endpoint) -> Result<(), PlugError> {
        self.check_plug(&endpoint)?;
        // A call of the endpoint's functions takes effect one nanosecond after the last poll. This poll ends one
        // nanosecond before the world's current vtime, so that later calls take effect at the current vtime.
        endpoint.poll(self.round.now.saturating_sub(1), &mut |_, _| {});
        self.wire.attach(endpoint.port(), self.round.now);
        self.host = Some(endpoint);
        Ok(())
    }

    /// Plugs in an endpoint that the caller rebuilt with [`Endpoint::hear_again`]. The caller has just restored a
    /// moment at which an endpoint was plugged in.
    ///
    /// # Errors
    /// Returns the errors of [`World::plug`], and an error if no endpoint was plugged in at the moment.
    pub fn plug_again(&mut self, endpoint: Endpoint) -> Result<(), PlugError> {
        self.check_plug(&endpoint)?;
        if !self.wire.is_attached(endpoint.port()) {
            return Err(PlugError::Out);
        }
        self.host = Some(endpoint);
        Ok(())
    }

    fn check_plug(&self, endpoint: &Endpoint) -> Result<(), PlugError> {
        let port = endpoint.port();
        if usize::from(port) < self.nodes.len() || usize::from(port) >= self.wire.ports().len() {
            return Err(PlugError::Port(port));
        }
        if self.host.is_some() { Err(PlugError::Taken) } else { Ok(()) }
    }

    /// Returns the endpoint, if one is plugged in. Call its functions only while the world is stopped at a vtime.
    pub fn host(&mut self) -> Option<&mut Endpoint> {
        self.host.as_mut()
    }

    /// Unplugs the endpoint and returns it. Drops frames that it has not sent yet.
    pub fn unplug(&mut self) -> Option<Endpoint> {
        let endpoint = self.host.take()?;
        self.round.sent.retain(|&(_, port, _)| port != endpoint.port());
        self.wire.detach(endpoint.port(), self.round.now);
        Some(endpoint)
    }

    /// Runs the endpoint up to, but not including, vtime `target`.
    pub(super) fn run_host(&mut self, target: u64) {
        let (Some(host), Some(last)) = (&mut self.host, target.checked_sub(1)) else { return };
        let (port, sent) = (host.port(), &mut self.round.sent);
        let before = sent.len();
        host.poll(last, &mut |at, frame| sent.push((at, port, frame)));
        if sent.len() > before {
            sent.sort_by_key(|&(at, port, _)| (at, port));
        }
    }
}
