//! Tests of a world's boot up to *ready* (all services are up): a file with owner and mode, and a service that opens
//! its port before it answers.

use everett_session::machines::memory;
use everett_session::world::conversation::Phase;
use everett_session::world::event::What;
use everett_session::world::timeline::BootError;
use everett_streams::Seed;
use everett_world_file::FileEntry;

use crate::support::{MS, findings, launcher_of, lines, run_to_end};

/// World with a node whose kernel accepts connections two seconds before its service answers them.
const SLOW: &str = r#"
[[node]]
name = "a"
memory = "128M"
[[node.service]]
name = "slow"
argv = ["python3", "-uc", '''
import socket, time
s = socket.create_server(("", 7000), backlog=64)
print("open")
time.sleep(2)
print("serves")
while True:
    c, _ = s.accept()
    try:
        c.sendall(b"+PONG" if c.recv(6) == b"PING\r\n" else b"-ERR")
    except OSError:
        pass
    c.close()
''']
ready = { tcp = 7000, send = "PING\r\n", expect = "+PONG" }
"#;

#[test]
fn a_service_is_not_ready_before_it_answers() {
    let ready_ns = |world: &str| {
        let mut timeline = launcher_of(world).boot().unwrap();
        timeline.run_to(Phase::Ready, &mut |_, _| true).unwrap();
        let events = timeline.take_events();
        assert_eq!(findings(&events), Vec::<&str>::new());
        let serves = events.iter().find_map(|event| match &event.what {
            What::Line { text, .. } if text == "serves" => Some(event.vtime_ns),
            _ => None,
        });
        (timeline.ready_ns().unwrap(), serves)
    };
    let (at_ns, serves_ns) = ready_ns(SLOW);
    let serves_ns = serves_ns.expect("the service served before the node was ready");
    assert!(
        (serves_ns..serves_ns + 4_000 * MS).contains(&at_ns),
        "the service serves at {serves_ns}, the node is ready at {at_ns}"
    );
    let (_, serves) = ready_ns(&SLOW.replace(", send = \"PING\\r\\n\", expect = \"+PONG\"", ""));
    assert_eq!(serves, None, "without `send` and `expect`, an open port must be enough");
}

/// World with a file that only one user may read.
const SECRET: &str = r#"
[[node]]
name = "a"
memory = "128M"
[[workload.driver]]
name = "owner"
user = "redis"
argv = ["sh", "-c", "stat -c '%U:%G %a' /etc/secret /etc/shared; cat /etc/secret"]
[[workload.driver]]
name = "other"
user = "nobody"
argv = ["sh", "-c", "! cat /etc/secret"]
"#;

fn secret(owner: &str) -> Vec<FileEntry> {
    let file = |path: &str| FileEntry::of_root(path.to_owned(), b"sesame\n".as_slice().into());
    let secret = FileEntry {
        owner: Some(owner.to_owned()),
        group: None,
        own_mode: Some(0o400),
        ..file("/etc/secret")
    };
    vec![secret, FileEntry { group: Some("redis".to_owned()), own_mode: Some(0o640), ..file("/etc/shared") }]
}

#[test]
fn files_have_owners_and_modes() {
    let mut launcher = launcher_of(SECRET);
    launcher.world.nodes[0].files = secret("redis");
    let (_, events) = run_to_end(&mut launcher.start(Seed::new(1)).unwrap(), 500 * MS);
    assert_eq!(lines(&events, "owner"), ["redis:redis 400", "root:redis 640", "sesame"]);
    assert_eq!(findings(&events), Vec::<&str>::new());
}

#[test]
fn an_unknown_user_is_named_with_the_file() {
    let mut launcher = launcher_of(SECRET);
    launcher.world.nodes[0].files = secret("nosuch");
    let mut timeline = launcher.boot().unwrap();
    let ended = timeline.run_to(Phase::Ready, &mut |_, _| true);
    let Err(BootError::File { node, path, why }) = ended else { panic!("{ended:?}") };
    assert_eq!((node.as_str(), path.as_str()), ("a", "/etc/secret"));
    assert_eq!(why, "cannot write /etc/secret: cannot find the user nosuch in /etc/passwd");
}

#[test]
fn a_node_with_too_little_memory_is_named_with_its_minimum() {
    let launcher = |memory: &str| launcher_of(&format!("[[node]]\nname = \"tiny\"\nmemory = \"{memory}\"\n"));
    let refused = launcher("40M").boot().err().expect("it is too little").to_string();
    let (begins, least) = (
        "test.toml: node \"tiny\": memory: 40M is too little for its kernel and initramfs; give it at least ",
        memory::least_bytes(&launcher("40M").files).unwrap() >> 20,
    );
    assert_eq!(refused, format!("{begins}{least}M"));
    assert!(launcher(&format!("{}M", least - 1)).boot().is_err());
    let mut timeline = launcher(&format!("{least}M")).boot().unwrap();
    timeline.run_to(Phase::Ready, &mut |_, _| true).expect("it boots with the least memory");
}
