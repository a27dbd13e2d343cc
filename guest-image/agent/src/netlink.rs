//! Encoding of rtnetlink(7) messages.

/// Flags of a message (netlink(7)): `NLM_F_REQUEST`, `NLM_F_ACK`, `NLM_F_REPLACE`, `NLM_F_CREATE`.
const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
const REPLACE: u16 = 0x100;
const CREATE: u16 = 0x400;

/// Types of messages (rtnetlink(7)), and `NLMSG_ERROR`.
pub(crate) const NEW_LINK: u16 = 16;
pub(crate) const NEW_ADDRESS: u16 = 20;
pub(crate) const NEW_ROUTE: u16 = 24;
const ERROR: u16 = 2;

/// Length of `struct nlmsghdr` in bytes. Its fields are length, type, flags, sequence number and port.
const HEADER_BYTES: usize = 16;

/// A message under construction.
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// Starts a request that asks for an acknowledgement. `body` is the fixed structure after the header.
    pub(crate) fn new(kind: u16, sequence: u32, body: &[u8]) -> Self {
        let flags = match kind {
            NEW_LINK => REQUEST | ACK,
            _ => REQUEST | ACK | CREATE | REPLACE,
        };
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
        let mut message = Message(bytes);
        message.pad();
        message
    }

    /// Appends a `struct rtattr` with this type and value.
    pub(crate) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        // A value is an address or an index, so it has at most 16 bytes.
        let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.pad();
        self
    }

    /// Fills in the length and returns the encoded message.
    pub(crate) fn bytes(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }

    /// Pads the message to a multiple of four bytes.
    fn pad(&mut self) {
        while !self.0.len().is_multiple_of(4) {
            self.0.push(0);
        }
    }
}

/// Returns the error number (0 for success) if `answer` acknowledges the request `sequence`, and otherwise `None`.
pub(crate) fn acknowledgement(answer: &[u8], sequence: u32) -> Option<i32> {
    let field = |at: usize| answer.get(at..at + 4)?.try_into().ok();
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    if kind != ERROR || u32::from_ne_bytes(field(8)?) != sequence {
        return None;
    }
    Some(i32::from_ne_bytes(field(HEADER_BYTES)?).wrapping_neg())
}

#[cfg(test)]
mod tests {
    use super::{Message, NEW_ADDRESS, NEW_LINK, acknowledgement};

    #[test]
    fn a_message_has_its_length_and_alignment() {
        let bytes = Message::new(NEW_ADDRESS, 7, &[1, 2, 3, 4, 5]).attribute(2, &[127, 0, 0, 1, 9]).bytes();
        assert_eq!(bytes.len(), 16 + 8 + 12);
        assert_eq!(u32::from_ne_bytes(bytes[..4].try_into().unwrap()) as usize, bytes.len());
        assert_eq!(bytes[24..33], [9, 0, 2, 0, 127, 0, 0, 1, 9]);
        assert_eq!(u16::from_ne_bytes(bytes[6..8].try_into().unwrap()), 0x505);
    }

    #[test]
    fn an_answer_is_matched_by_its_sequence() {
        let mut answer = Message::new(2, 7, &(-17i32).to_ne_bytes()).bytes();
        assert_eq!(acknowledgement(&answer, 7), Some(17));
        assert_eq!(acknowledgement(&answer, 8), None);
        answer.truncate(17);
        assert_eq!(acknowledgement(&answer, 7), None);
        assert_eq!(acknowledgement(&Message::new(NEW_LINK, 7, &[]).bytes(), 7), None);
    }
}
