//! Tests of the wire through its public functions.

mod bounds;
mod endpoints;
mod exact;
mod faults;
mod hostile;
mod logs;
mod oracle;
mod pcap;
mod plan;
mod power;
mod queues;
mod sound;
mod summary;
mod transcript;

use everett_fault::{Distribution, Group, Links, NetworkFault};
use everett_streams::BootSeed;

use transcript::{check, check_taught};

use super::log::{DropReason, FrameStep, FrameStepKind};
use super::*;

/// Nanoseconds in a millisecond.
const MS: u64 = 1_000_000;
/// Nanoseconds in a second.
const S: u64 = 1_000 * MS;
/// EtherType for local experiments (IEEE 802, 9.2.4).
const ETHER_TYPE: [u8; 2] = [0x88, 0xb5];
const BROADCAST: [u8; 6] = [0xff; 6];

fn mac(port: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, port]
}

/// Returns a configuration of nodes n0, n1, ... whose links have the constant latency `latency` and the maximum
/// bandwidth.
fn config(ports: u8, latency: Distribution) -> WireConfig {
    WireConfig {
        ports: (0..ports).map(|i| PortConfig { name: format!("n{i}"), mac: mac(i) }).collect(),
        link: LinkConfig { latency, bits_per_s: BITS_PER_S_MAX, queue_bytes: QUEUE_BYTES_MAX },
        overrides: vec![],
    }
}

fn wire(ports: u8, latency: Distribution) -> Wire {
    Wire::new(config(ports, latency), BootSeed::new(1)).unwrap()
}

/// Returns a frame of `len` bytes that carries `tag`.
fn frame(to: [u8; 6], from: [u8; 6], len: usize, tag: u32) -> Vec<u8> {
    let mut bytes = [&to[..], &from, &ETHER_TYPE, &tag.to_le_bytes()].concat();
    bytes.resize(len.max(18), 0x55);
    bytes
}

fn tag(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[14..18].try_into().unwrap())
}

/// Lets each port tell the switch its address. Returns the vtime at which that is over.
fn teach(wire: &mut Wire) -> u64 {
    for port in 0..wire.ports().len() as u8 {
        wire.send(port, 0, frame(BROADCAST, mac(port), 60, 0));
    }
    let end = 10 * S;
    drain(wire, end);
    wire.take_steps();
    end
}

fn drain(wire: &mut Wire, until: u64) -> Vec<Delivery> {
    std::iter::from_fn(|| wire.pop_due(until)).collect()
}

/// Sends frames of 100 bytes from port 0 to port 1, one each `every` ns, tagged in order. Returns their vtimes of
/// sending.
fn stream(wire: &mut Wire, start: u64, count: u32, every: u64) -> Vec<u64> {
    let times: Vec<u64> = (0..u64::from(count)).map(|i| start + i * every).collect();
    for (i, &at) in times.iter().enumerate() {
        wire.send(0, at, frame(mac(1), mac(0), 100, i as u32));
    }
    times
}

fn group(nodes: &[&str]) -> Group {
    Group::Nodes(nodes.iter().map(|&node| node.to_owned()).collect())
}

/// Selects the frames from `from` to `to`.
fn one_way(from: &str, to: &str) -> Links {
    Links { from: group(&[from]), to: group(&[to]), both_ways: false }
}

fn drops(steps: &[FrameStep], why: DropReason) -> usize {
    steps.iter().filter(|step| step.kind == FrameStepKind::Drop { why }).count()
}

fn stored(wire: &Wire) -> Wire {
    postcard::from_bytes(&postcard::to_stdvec(wire).unwrap()).unwrap()
}
