//! Encoding of a wire, and validation of a wire from a file. Files may be hostile.

use everett_fault::limits::NETWORK_FAULTS_MAX;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::log::Log;
use super::{State, Wire};

/// Upper bound of sequence numbers, frame numbers and vtimes in a file. Below it, later additions cannot overflow.
const NUMBERS_MAX: u64 = 1 << 62;

impl Serialize for Wire {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.state.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Wire {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Wire, D::Error> {
        let state = State::deserialize(deserializer)?;
        let ports = state.topology.ports().len();
        let sound = [
            ("the switch's table", state.table.is_sound(ports)),
            ("the number of frames", state.next_frame < NUMBERS_MAX && state.next_seq < NUMBERS_MAX),
            ("its vtime", state.now.max(state.last.0) < NUMBERS_MAX),
            ("the number of faults", state.faults.0.len() <= NETWORK_FAULTS_MAX),
            ("a fault", state.faults.0.values().all(|active| active.is_sound(ports))),
            (
                "its frames on their way",
                state.flight.is_sound(&state.topology, state.next_seq, state.next_frame),
            ),
        ];
        match sound.into_iter().find(|(_, sound)| !sound) {
            Some((what, _)) => Err(D::Error::custom(format_args!("stored wire: {what} out of bounds"))),
            None => Ok(Wire { state, log: Log::default() }),
        }
    }
}
