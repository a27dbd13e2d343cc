//! A node's restart point: where it starts again after a loss of power.

use everett_vmm::machine::Moment;

use crate::conversation::state::ConversationState;

/// A machine whose kernel and agent are up and whose root is mounted, with nothing else touched: no disk, no network, no service.
#[derive(Debug, Clone)]
pub struct RestartPoint {
    /// The machine.
    pub machine: Moment,
    /// State of the conversation with its agent.
    pub conversation: ConversationState,
}
