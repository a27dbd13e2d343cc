//! Requests of a caller outside the timeline to the agents (Everett's program in each guest), and an early end of faults.
//!
//! After the first such request, the timeline is no recorded one any more. Callers make the requests in a timeline that
//! they throw away.

use everett_protocol::{Exec, Operation};
use everett_vmm::machine::{Stop, Until};

use super::Timeline;
use crate::world::conversation::{Answer, CannotAsk};

impl Timeline {
    /// Sends a request to the agent of a node, and returns the number of the request. [`Timeline::take_answers`] has the
    /// answers.
    ///
    /// # Errors
    /// Returns an error if the node is off or paused, if its agent is not up, or if the request is invalid.
    ///
    /// # Panics
    /// Panics if there is no such node.
    pub fn ask_agent(&mut self, node: usize, op: Operation) -> Result<u64, CannotAsk> {
        let place = self.world.node_mut(node);
        if !place.is_on() {
            return Err(CannotAsk::Off);
        }
        if place.is_paused() {
            return Err(CannotAsk::Paused);
        }
        let session = &mut self.nodes[node];
        let request = session.conversation.ask(op)?;
        session.speak(place);
        Ok(request)
    }

    /// Takes the answers of a node's agent since the last call.
    ///
    /// # Panics
    /// Panics if there is no such node.
    pub fn take_answers(&mut self, node: usize) -> Vec<Answer> {
        self.nodes[node].conversation.take_answers()
    }

    /// Like [`Timeline::run`], but the run also stops when an agent has answered, so that few answers wait.
    pub fn run_to_answer(&mut self, until: &Until) -> Stop {
        self.run_until(0, until, &|timeline| {
            timeline.nodes.iter().any(|session| session.conversation.has_answers())
        })
    }

    /// Returns true if the agent of a node can be asked, or will be up without any further request.
    ///
    /// # Panics
    /// Panics if there is no such node.
    #[must_use]
    pub fn is_agent_up(&self, node: usize) -> bool {
        self.nodes[node].conversation.is_agent_up()
    }

    /// Returns a command as the node's own programs run: with the environment, the user and the rights of the container if
    /// the node has a container image. `user` replaces the user.
    ///
    /// # Panics
    /// Panics if there is no such node.
    #[must_use]
    pub fn command_on(&self, node: usize, argv: Vec<String>, user: Option<&str>) -> Exec {
        let mut prefix = self.nodes[node].conversation.script().prefix.clone();
        if prefix.is_empty() {
            return Exec { user: user.map(str::to_owned), ..Exec::new(argv) };
        }
        // The last word of the prefix ends its options.
        let end = prefix.pop();
        prefix.extend(user.iter().flat_map(|user| ["--user".to_owned(), (*user).to_owned()]));
        Exec::new(prefix.into_iter().chain(end).chain(argv).collect())
    }

    /// Ends all faults for good, as the end of a workload does. Nodes without power start again.
    pub fn calm(&mut self) {
        self.end_faults();
        self.faults = None;
    }
}
