//! Restart point of a node, from which the node starts again after a power loss.

use everett_vmm::machine::Moment;

use crate::world::conversation::state::ConversationState;

/// A machine whose kernel and agent (Everett's program in the guest) are up and whose root file system is mounted. No
/// data disk, network or service has been used yet.
#[derive(Debug, Clone)]
pub struct RestartPoint {
    /// State of the machine.
    pub machine: Moment,
    /// State of Everett's end of the conversation with the machine's agent.
    pub conversation: ConversationState,
}
