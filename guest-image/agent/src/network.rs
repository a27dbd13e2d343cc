//! Configuration of network interfaces through rtnetlink.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use everett_protocol::Interface;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

use crate::failure::{Context as _, Failure};
use crate::netlink::{Message, NEW_ADDRESS, NEW_LINK, NEW_ROUTE, acknowledgement};

/// Types of attributes of addresses and routes (rtnetlink(7)).
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;

const IFF_UP: u32 = 1;
/// Flag that disables duplicate address detection, which would delay the address by a second.
const IFA_F_NODAD: u8 = 2;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RTN_UNICAST: u8 = 1;

/// An rtnetlink socket.
pub(crate) struct Routing {
    socket: OwnedFd,
    sequence: u32,
}

impl Routing {
    pub(crate) fn open() -> Result<Self, Failure> {
        let socket =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)
                .context(|| String::from("open a routing socket"))?;
        rustix::net::bind(&socket, &netlink::SocketAddrNetlink::new(0, 0))
            .context(|| String::from("open a routing socket"))?;
        Ok(Routing { socket, sequence: 0 })
    }

    /// Brings up the loopback interface. The kernel assigns its addresses without a request.
    pub(crate) fn loopback(&mut self) -> Result<(), Failure> {
        let index = self.index("lo")?;
        self.up(index).context(|| String::from("bring up lo"))
    }

    /// Brings up an interface, assigns its address, and sets the default route if there is a gateway.
    pub(crate) fn interface(&mut self, interface: &Interface) -> Result<(), Failure> {
        let name = &interface.name;
        let index = self.index(name)?;
        self.up(index).context(|| format!("bring up {name}"))?;
        self.address(index, interface)
            .context(|| format!("give {name} the address {}/{}", interface.address, interface.prefix))?;
        if let Some(gateway) = interface.gateway {
            self.default_route(index, gateway).context(|| format!("route through {gateway} on {name}"))?;
        }
        Ok(())
    }

    fn index(&self, name: &str) -> Result<u32, Failure> {
        rustix::net::netdevice::name_to_index(&self.socket, name)
            .context(|| format!("find the network interface {name}"))
    }

    fn up(&mut self, index: u32) -> io::Result<()> {
        // Fields of struct ifinfomsg: family, padding, device type, index, flags, mask of flags to change.
        let mut body = vec![0u8; 4];
        body.extend(index.to_ne_bytes());
        body.extend(IFF_UP.to_ne_bytes());
        body.extend(IFF_UP.to_ne_bytes());
        self.ask(|sequence| Message::new(NEW_LINK, sequence, &body))
    }

    fn address(&mut self, index: u32, interface: &Interface) -> io::Result<()> {
        let address = octets(interface.address);
        // Fields of struct ifaddrmsg: family, prefix length, flags, scope (0 is global), index.
        let mut body = vec![family(interface.address), interface.prefix, IFA_F_NODAD, 0];
        body.extend(index.to_ne_bytes());
        self.ask(|sequence| {
            Message::new(NEW_ADDRESS, sequence, &body)
                .attribute(IFA_LOCAL, &address)
                .attribute(IFA_ADDRESS, &address)
        })
    }

    fn default_route(&mut self, index: u32, gateway: IpAddr) -> io::Result<()> {
        // Fields of struct rtmsg: family, destination and source prefix, TOS, table, protocol, scope, type, flags.
        let body = [family(gateway), 0, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, 0, RTN_UNICAST, 0, 0, 0, 0];
        self.ask(|sequence| {
            Message::new(NEW_ROUTE, sequence, &body)
                .attribute(RTA_GATEWAY, &octets(gateway))
                .attribute(RTA_OIF, &index.to_ne_bytes())
        })
    }

    /// Sends a request and reads the kernel's acknowledgement. The kernel queues the answer before `send` returns.
    fn ask(&mut self, message: impl Fn(u32) -> Message) -> io::Result<()> {
        self.sequence += 1;
        rustix::net::send(&self.socket, &message(self.sequence).bytes(), SendFlags::empty())?;
        let mut answer = [0u8; 4096];
        loop {
            let (length, _) = rustix::net::recv(&self.socket, &mut answer[..], RecvFlags::DONTWAIT)?;
            match acknowledgement(&answer[..length.min(answer.len())], self.sequence) {
                Some(0) => return Ok(()),
                Some(error) => return Err(io::Error::from_raw_os_error(error)),
                None => {}
            }
        }
    }
}

fn family(address: IpAddr) -> u8 {
    // AF_INET is 2 and AF_INET6 is 10. The message's field has one byte.
    match address {
        IpAddr::V4(_) => 2,
        IpAddr::V6(_) => 10,
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}
