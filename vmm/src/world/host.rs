//! The host's own endpoint on a world's wire, which is plugged in while the session or a test talks to nodes.
//!
//! Its port comes after those of the nodes, and is unplugged while there is no endpoint.

use super::World;
use crate::wire::endpoint::Endpoint;

/// Error of plugging in an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlugError {
    /// The port belongs to a node or does not exist.
    #[error("port {0} of the wire is not the host's")]
    Port(u8),
    /// An endpoint is already plugged in.
    #[error("the host is plugged in already")]
    Taken,
    /// No endpoint was plugged in when the wire's moment was taken.
    #[error("the host was not plugged in")]
    Out,
}

impl World {
    /// Plugs an endpoint into its port; its time begins now. It is not part of moments: see [`World::plug_again`].
    ///
    /// # Errors
    /// Returns an error if its port is not the host's, or an endpoint is already plugged in.
    pub fn plug(&mut self, mut endpoint: Endpoint) -> Result<(), PlugError> {
        self.check_plug(&endpoint)?;
        // From here on, calls to it take effect now.
        endpoint.poll(self.round.now.saturating_sub(1), &mut |_, _| {});
        self.wire.attach(endpoint.port(), self.round.now);
        self.host = Some(endpoint);
        Ok(())
    }

    /// Plugs in a rebuilt endpoint ([`Endpoint::hear_again`]) after the restore of a moment at which one was plugged
    /// in.
    ///
    /// # Errors
    /// Returns the errors of [`World::plug`], and an error if the moment had no endpoint.
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

    /// Returns the endpoint that is plugged in. Call its functions only at a stop at a vtime.
    pub fn host(&mut self) -> Option<&mut Endpoint> {
        self.host.as_mut()
    }

    /// Unplugs the endpoint and returns it. Frames that it had not sent yet are dropped.
    pub fn unplug(&mut self) -> Option<Endpoint> {
        let endpoint = self.host.take()?;
        self.round.sent.retain(|&(_, port, _)| port != endpoint.port());
        self.wire.detach(endpoint.port(), self.round.now);
        Some(endpoint)
    }

    /// Runs the endpoint up to `target`, exclusively.
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
