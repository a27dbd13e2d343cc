//! The host's own machine on a world's wire: it is there while somebody talks to nodes from outside.
//!
//! Its port is the wire's after those of the nodes, and unplugged while there is no endpoint.

use super::World;
use crate::engine::Engine;
use crate::wire::endpoint::Endpoint;

/// Why an endpoint cannot be plugged in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlugError {
    /// A node's port, or none of the wire.
    #[error("port {0} of the wire is not the host's")]
    Port(u8),
    /// There is an endpoint.
    #[error("the host is plugged in already")]
    Taken,
    /// The wire is of a moment at which it was not.
    #[error("the host was not plugged in")]
    Out,
}

impl<E: Engine> World<E> {
    /// Plug an endpoint into its port: its time begins now. It is no part of a moment: see [`World::plug_again`].
    ///
    /// # Errors
    /// There is no such port for it, or there is one.
    pub fn plug(&mut self, mut endpoint: Endpoint) -> Result<(), PlugError> {
        self.check_plug(&endpoint)?;
        // What is asked of it from here on happens now.
        endpoint.poll(self.round.now.saturating_sub(1), &mut |_, _| {});
        self.wire.attach(endpoint.port(), self.round.now);
        self.host = Some(endpoint);
        Ok(())
    }

    /// Plug in what the host was, made again ([`Endpoint::hear_again`]), where a moment was taken with its plug in.
    ///
    /// # Errors
    /// As [`World::plug`], or the moment had none.
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

    /// The endpoint that is plugged in. Ask something of it only at a stop at a vtime.
    pub fn host(&mut self) -> Option<&mut Endpoint> {
        self.host.as_mut()
    }

    /// Pull the endpoint's plug. What it had not sent yet it never sends.
    pub fn unplug(&mut self) -> Option<Endpoint> {
        let endpoint = self.host.take()?;
        self.round.sent.retain(|&(_, port, _)| port != endpoint.port());
        self.wire.detach(endpoint.port(), self.round.now);
        Some(endpoint)
    }

    /// The endpoint does what it has to do before `target`.
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
