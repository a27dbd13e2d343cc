//! The ports of the virtio-console device.

/// Port of the guest's virtio-console device. The port's number on the device is part of the machine version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Port {
    /// From the agent to the host: the output lines of services and of some commands, each as one JSON line.
    Log = 0,
    /// In both directions: requests to the agent, and messages to the host.
    Control = 1,
    /// From guest programs to the host: operation histories. The agent opens this port and passes it to the programs.
    History = 2,
    /// From guest programs to the host: lines of the SDK, and coverage edges that the programs have reached.
    Sdk = 3,
    /// Reserved for a debugger.
    Debug = 4,
    /// Unused.
    Spare = 5,
}

impl Port {
    /// All ports, in the order of their numbers.
    pub const ALL: [Port; 6] = [Port::Log, Port::Control, Port::History, Port::Sdk, Port::Debug, Port::Spare];

    /// Returns the port's number on the device (virtio 1.2, section 5.3).
    #[must_use]
    pub const fn index(self) -> u32 {
        self as u32
    }

    /// Returns the name that the device announces (`VIRTIO_CONSOLE_PORT_NAME`) and that the guest reads in
    /// `/sys/class/virtio-ports/*/name`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Port::Log => "everett.log",
            Port::Control => "everett.control",
            Port::History => "everett.history",
            Port::Sdk => "everett.sdk",
            Port::Debug => "everett.debug",
            Port::Spare => "everett.spare",
        }
    }

    /// Returns the port with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Port> {
        Port::ALL.into_iter().find(|port| port.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::Port;

    #[test]
    fn numbers_follow_the_order_and_names_are_unique() {
        for (number, port) in Port::ALL.into_iter().enumerate() {
            assert_eq!(port.index() as usize, number);
            assert_eq!(Port::from_name(port.name()), Some(port));
        }
        assert_eq!(Port::from_name("everett"), None);
    }
}
