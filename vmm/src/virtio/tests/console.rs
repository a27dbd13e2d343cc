use crate::output::PORTS;
use crate::virtio::Device;
use crate::virtio::console::{Console, INPUT_BYTES_MAX, PORT_NAMES};
use crate::virtio::testing::Rig;

const QUEUES: u16 = 2 + 2 * PORTS as u16;

fn rig() -> Rig {
    Rig::running(Device::Console(Console::default()), Vec::new(), QUEUES, 32)
}

/// Sends a control message to the device.
fn control(rig: &mut Rig, port: u32, event: u16, value: u16) {
    let message = [&port.to_le_bytes()[..], &event.to_le_bytes(), &value.to_le_bytes()].concat();
    let at = rig.buffer(&message);
    rig.chain(3, 0, &[(at, 8, false)]);
}

/// Supplies control buffers and returns the messages that the device wrote: port, event, value, name.
fn messages(rig: &mut Rig) -> Vec<(u32, u16, u16, String)> {
    let mut messages = Vec::new();
    loop {
        let at = rig.buffer(&[0; 64]);
        rig.chain(2, 0, &[(at, 64, true)]);
        let Some(&(_, len)) = rig.used(2).first() else { return messages };
        let bytes = rig.read(at, len as usize);
        let half = |i: usize| u16::from_le_bytes([bytes[i], bytes[i + 1]]);
        let port = u32::from_le_bytes(bytes[..4].try_into().unwrap());
        messages.push((port, half(4), half(6), String::from_utf8(bytes[8..].to_vec()).unwrap()));
    }
}

fn input(rig: &mut Rig, port: usize, bytes: &[u8]) -> usize {
    rig.with(|transport, cx| {
        let Device::Console(console) = transport.device_mut() else { panic!() };
        let taken = console.input(port, bytes);
        transport.event(0, cx);
        taken
    })
}

#[test]
fn ports_are_added_and_named_in_order() {
    let mut rig = rig();
    assert_eq!(rig.transport.read(0x104, 4), PORTS as u64);
    control(&mut rig, 0, 0, 1);
    let added: Vec<(u32, u16)> = messages(&mut rig).iter().map(|m| (m.0, m.1)).collect();
    assert_eq!(added, (0..PORTS as u32).map(|port| (port, 1)).collect::<Vec<_>>());
    rig = self::rig();
    control(&mut rig, 4, 3, 1);
    assert_eq!(
        messages(&mut rig),
        [(4, 7, 1, PORT_NAMES[4].to_owned()), (4, 6, 1, String::new())],
        "each port gets its name, and the host has opened it"
    );
}

#[test]
fn writes_of_the_guest_are_taken_at_once() {
    let mut rig = rig();
    rig.now = 5;
    let (a, b) = (rig.buffer(b"hello "), rig.buffer(b"world\n"));
    // Port 1 transmits on queue 5, port 0 on queue 1.
    rig.chain(5, 0, &[(a, 6, false), (b, 6, false)]);
    rig.chain(1, 0, &[(b, 6, false)]);
    assert_eq!(rig.used(5), [(0, 0)]);
    let writes = rig.output.take_port(1);
    assert_eq!((writes[0].vtime, writes[0].bytes.as_slice()), (5, &b"hello world\n"[..]));
    assert_eq!(rig.output.take_port(0)[0].bytes, b"world\n");
    assert_eq!(rig.output.take_port_lines(), 0b11);
}

#[test]
fn input_waits_for_an_open_port_and_buffers() {
    let mut rig = rig();
    assert_eq!(input(&mut rig, 2, b"abcdef"), 6);
    let at = rig.buffer(&[0; 16]);
    // Port 2 receives on queue 6.
    rig.chain(6, 0, &[(at, 4, true)]);
    assert_eq!(rig.used(6), [], "the port is closed");
    control(&mut rig, 2, 6, 1);
    assert_eq!(rig.used(6), [(0, 4)]);
    assert_eq!(rig.read(at, 4), b"abcd");
    rig.chain(6, 1, &[(at, 16, true)]);
    assert_eq!((rig.used(6), &rig.read(at, 2)), (vec![(1, 2)], &b"ef".to_vec()));
    assert_eq!(input(&mut rig, 2, &vec![0; INPUT_BYTES_MAX + 1]), INPUT_BYTES_MAX);
    assert_eq!(input(&mut rig, 2, b"x"), 0);
    assert_eq!(input(&mut rig, 6, b"x"), 0, "there is no port 6");
}

#[test]
fn senseless_control_messages_are_ignored_and_bounded() {
    let mut rig = rig();
    for (port, event, value) in [(77, 3, 1), (u32::MAX, 6, 1), (0, 99, 9), (0, 0, 0)] {
        control(&mut rig, port, event, value);
    }
    let at = rig.buffer(&[1, 2, 3]);
    rig.chain(3, 0, &[(at, 3, false)]);
    assert!(messages(&mut rig).is_empty());
    assert!(!rig.needs_reset());
    // A guest that sends requests without reading the answers makes the device need a reset.
    for _ in 0..400 {
        control(&mut rig, 0, 0, 1);
        rig.used(3);
    }
    assert!(rig.needs_reset());
    assert_eq!(rig.notes().len(), 1);
}
