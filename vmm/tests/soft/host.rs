//! Everett's endpoint on a world's wire, i.e. the TCP/IP stack with which Everett itself talks to nodes. Nodes receive
//! the endpoint's frames, and these frames are the same wherever a run stops and continues.

use std::net::{Ipv4Addr, SocketAddr};

use everett_streams::{BootSeed, Lineage, Owner, Seed, Streams};
use everett_vmm::digest::Breakdown;
use everett_vmm::wire::endpoint::{Endpoint, EndpointConfig, EndpointDraws};
use everett_vmm::wire::{PortConfig, WireConfig};
use everett_vmm::world::{Captured, PlugError, World};

use crate::card::mac;
use crate::plan::{MS, run, trio};

const PORT: u8 = 3;
const BEGIN: u64 = 500_003;
const END: u64 = 3 * MS;

fn draws(seed: u64) -> EndpointDraws {
    EndpointDraws::draw(&mut Streams::new(&Lineage::new(Seed::new(seed)), Owner::Endpoint))
}

fn config(port: u8) -> EndpointConfig {
    let node = PortConfig { name: "_host".to_owned(), mac: mac(PORT) };
    EndpointConfig { port, node, ipv4: Some((Ipv4Addr::new(10, 0, 0, 254), 24)), ipv6: None }
}

fn world() -> World {
    let ports = vec![config(PORT).node];
    World::new(trio(), WireConfig { ports, ..WireConfig::default() }, BootSeed::new(7)).unwrap()
}

/// Runs a world in which Everett's endpoint sends ARP requests for an address that no node has. The run also stops at
/// the vtimes `cuts`.
fn asked(cuts: &mut dyn Iterator<Item = u64>) -> (Breakdown, Vec<Captured>) {
    let mut world = world();
    world.capture(true);
    let mut cuts = cuts.peekable();
    for stop in [BEGIN, END] {
        while let Some(at) = cuts.next_if(|&at| at < stop) {
            run(&mut world, at);
        }
        run(&mut world, stop);
        if stop == BEGIN {
            world.plug(Endpoint::new(&config(PORT), draws(1)).unwrap()).unwrap();
            let nobody = SocketAddr::new(Ipv4Addr::new(10, 0, 0, 9).into(), 80);
            world.host().unwrap().tcp_connect(nobody).unwrap();
        }
    }
    (world.breakdown(), world.take_captured())
}

#[test]
fn nodes_receive_the_hosts_frames_wherever_the_run_is_cut() {
    let (whole, frames) = asked(&mut std::iter::empty());
    let of_host = |captured: &&Captured| matches!(captured, Captured::Sent { port: PORT, .. });
    let first = frames.iter().find(of_host).unwrap();
    assert_eq!(first.at(), BEGIN, "a call takes effect at once");
    let heard = frames.iter().filter(|captured| match captured {
        Captured::Delivered(delivery) => delivery.bytes[6..12] == mac(PORT),
        Captured::Sent { .. } => false,
    });
    assert!(heard.count() >= 3, "each of the three nodes receives a frame");
    assert!(whole.parts.iter().any(|(name, _)| name == "the host"));
    let (cut, frames_cut) = asked(&mut (1..).map(|i| i * 7_919));
    assert_eq!((cut, frames_cut), (whole, frames));
}

#[test]
fn the_host_has_one_port_and_can_plug_in_once() {
    let mut world = world();
    let endpoint = |port| Endpoint::new(&config(port), draws(1)).unwrap();
    assert_eq!(world.plug(endpoint(0)), Err(PlugError::Port(0)), "this port is a node's");
    assert_eq!(world.plug(endpoint(4)), Err(PlugError::Port(4)));
    assert!(!world.wire().is_attached(PORT));
    world.plug(endpoint(PORT)).unwrap();
    assert_eq!(world.plug(endpoint(PORT)), Err(PlugError::Taken));
    assert!(world.wire().is_attached(PORT));
    run(&mut world, MS);
    assert!(world.unplug().is_some() && world.unplug().is_none());
    assert!(!world.wire().is_attached(PORT));
}
