//! e2fsck and tcpdump open the images of disks and the captures that Everett writes, and log lines are the replayed
//! ones.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use everett_session::world::timeline::disk_copy::Outcome;
use everett_streams::Seed;
use everett_vmm::disk::{BLOCK, Disk};
use everett_vmm::machine::Until;
use serde_json::Value;

use super::tools::tools;
use crate::support::{MS, everett, image, launcher_of, ready, shown, under, world_file};

/// Branches of the exploration.
const BRANCHES: u32 = 24;

/// A store that flushes every fourth entry, and its client.
const WORLD: &str = r#"
[image]
suite = "bookworm"
[[node]]
name = "db"
memory = "128M"
packages = ["openssl", "python3", "redis-server", "redis-tools", "sqlite3"]
disk = { path = "/data", size = "64M", flush = "20ms" }
[[node.service]]
name = "store"
ready = { tcp = 7000 }
argv = ["python3", "-c", '''
import os, socket
log = open("/data/log", "ab", buffering=0)
server = socket.create_server(("0.0.0.0", 7000))
entries = 0
while True:
    peer, _ = server.accept()
    try:
        with peer:
            peer.settimeout(0.2)
            while line := peer.recv(100):
                log.write(line * 200)
                entries += 1
                if entries % 4 == 0: os.fsync(log.fileno())
                peer.sendall(b"ok")
    except OSError: pass
''']
[[node]]
name = "client"
memory = "96M"
[[workload.driver]]
name = "writer"
node = "client"
argv = ["python3", "-c", '''
import socket, time
for n in range(10**9):
    try:
        with socket.create_connection(("db", 7000), timeout=0.2) as db:
            for n in range(n, 10**9):
                db.sendall(b"entry %d\n" % n)
                if not db.recv(100): break
                print("stored", n, flush=True)
    except OSError: print("no answer", flush=True)
    time.sleep(0.005)
''']
[faults]
only = ["power_loss", "loss", "duplicate", "corrupt"]
recovery = "0s"
start = "200ms"
quiet = { enabled = false }
[faults.power_loss]
every = "200ms"
for = ["10ms", "30ms"]
nodes = ["db"]
[faults.loss]
every = "100ms"
[faults.duplicate]
every = "100ms"
[explore]
segment = "1s"
horizon = "1s"
swarm = false
in_flight = 2
"#;

fn content(disk: &Disk) -> Vec<u8> {
    let mut content = vec![0; disk.len() as usize];
    disk.read(0, &mut content);
    content
}

/// Without a seed, the copy of a disk equals the disk that a power loss at this instant leaves. The timeline of the copy
/// has no power loss.
#[test]
fn a_copy_of_a_disk_is_what_the_fault_leaves() {
    let (launcher, points) = ready(launcher_of(WORLD));
    let mut losses = 0;
    // The first draw of a timeline is the mode, so timelines of different seeds have different modes.
    for (seed, at_ms) in [(1, [151, 263]), (2, [152, 254]), (3, [187, 305])] {
        let start = |plan: &str| under(&launcher, &points, plan).start(Seed::new(seed)).unwrap();
        let mut calm = start("");
        let root_ns = calm.vtime();
        for at_ms in at_ms {
            let at_ns = root_ns + at_ms * MS;
            calm.run(&Until::vtime(at_ns));
            let digest = calm.digest();
            let copy = calm.disk_after_power_loss(0, 1, &Outcome::default()).unwrap();
            let again = calm.disk_after_power_loss(0, 1, &Outcome::default()).unwrap();
            assert!(calm.digest() == digest, "a copy changes nothing");
            let mut lost = start(&format!(
                r#"{{"at": "{at_ms}ms", "fault": "power_loss", "node": "db", "restart": "never"}}"#
            ));
            lost.run(&Until::vtime(at_ns + 1));
            assert!(!lost.world().nodes()[0].is_on());
            let real = content(&lost.machine(0).disks()[1]);
            assert!(content(&copy.0) == real && content(&again.0) == real, "{at_ms}: {:?}", copy.1);
            losses += u32::from(copy.1.lost_anything());
        }
        assert!(calm.disk_after_power_loss(0, 2, &Outcome::default()).is_none(), "there is no such disk");
    }
    assert!(losses > 2, "{losses}");
}

/// Runs a command of the program on the run directory, with JSON lines. Returns the lines.
fn lines_of(run: &str, command: &str, arguments: &[&str]) -> Vec<Value> {
    let output = everett(&[&["--json", command, run], arguments].concat());
    assert!(output.status.code().is_some_and(|code| code < 2), "{command} {arguments:?}: {}", shown(&output));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the standard error of a command that fails.
fn refused(arguments: &[&str]) -> String {
    let output = everett(arguments);
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
    String::from_utf8(output.stderr).unwrap()
}

/// Replays the journal of an ext4 image and checks the file system, which must need no repair then.
fn check(image: &Path) {
    let path = image.to_str().unwrap();
    tools().run("e2fsck", &["-p", "-E", "journal_only", path]);
    let report = tools().run("e2fsck", &["-fn", path]);
    assert!(report.contains("Pass 5"), "{report}");
}

#[test]
fn e2fsck_and_tcpdump_open_what_the_commands_write() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (world, run) = (at("world.toml"), at("run"));
    fs::write(&world, WORLD).unwrap();
    // The root disk is compared with the test world's, so both worlds have the same packages.
    image();
    fs::copy(world_file().with_extension("lock"), at("world.lock")).unwrap();
    let branches = &BRANCHES.to_string();
    let explored =
        everett(&["explore", &world, "--seed", "1", "--branches", branches, "--plain", "-o", &run]);
    assert!(explored.status.code().is_some_and(|code| code < 2), "{}", shown(&explored));
    // Most branches have neither, and packages of another version move the instants of faults.
    let events: Vec<(String, OnceCell<Vec<Value>>)> =
        (0..BRANCHES).map(|branch| (format!("b{branch}"), OnceCell::new())).collect();
    let first = |is_wanted: &dyn Fn(&Value) -> bool| {
        let found = events.iter().find_map(|(id, events)| {
            let events = events.get_or_init(|| lines_of(&run, "logs", &[id, "--events"]));
            events.iter().find(|event| is_wanted(event)).map(|event| (id, events, event))
        });
        found.expect("one of the branches has it")
    };
    let (id, _, loss) = first(&|event| event["kind"] == "loss" && event["lost"].as_u64() > Some(0));
    disks(folder.path(), &run, id, loss);
    let (id, events, _) = first(&|event| event["move"] == "DROP" && event["vtime_ns"] != event["sent_ns"]);
    captures(folder.path(), &run, id, events);
    logs(&run, id, events);
}

/// Checks the images around a power loss.
fn disks(folder: &Path, run: &str, id: &str, loss: &Value) {
    let loss_ns = loss["vtime_ns"].as_u64().unwrap();
    let write = |name: &str, at_ns: u64, more: &[&str]| {
        let (file, at) = (folder.join(name), format!("{at_ns}ns"));
        let arguments = [&[id, "--node", "db", "--at", &at, "-o", file.to_str().unwrap()], more].concat();
        let [line] = &lines_of(run, "disk", &arguments)[..] else { panic!("{arguments:?}") };
        assert_eq!(fs::metadata(&file).unwrap().len(), line["bytes"].as_u64().unwrap());
        (fs::read(&file).unwrap(), line.clone(), file)
    };
    let (now, before, now_file) = write("now", loss_ns, &[]);
    let (lost, line, lost_file) = write("lost", loss_ns, &["--after-power-loss"]);
    let (real, _, _) = write("real", loss_ns + 1, &[]);
    assert!(lost == real && now != real);
    let counts = ["unflushed", "lost", "in_between", "torn", "requests", "landed", "in_part"];
    for count in counts {
        assert_eq!(line["power_loss"][count], loss[count], "{count}: {line}");
    }
    assert!(before["unflushed_writes"].as_u64() > Some(0) && before["power_loss"].is_null(), "{before}");
    assert_eq!((&before["file_system"], &before["needs_recovery"]), (&"ext4".into(), &true.into()));
    let used = now.chunks(BLOCK as usize).filter(|block| block.iter().any(|&byte| byte != 0));
    assert_eq!(before["content_bytes"].as_u64().unwrap(), used.count() as u64 * BLOCK);
    let commands = before["checks"].as_array().unwrap();
    assert!(commands[1].as_str().unwrap() == format!("e2fsck -fn {}", now_file.display()), "{before}");

    let all_lost = &["--after-power-loss", "--mode", "all-lost"];
    let (_, line, all_lost_file) = write("all-lost", loss_ns, all_lost);
    let drawn = &line["power_loss"];
    assert_eq!((&drawn["mode"], &drawn["lost"]), (&"all-lost".into(), &drawn["unflushed"]), "{line}");
    let (under_7, line, _) = write("seven", loss_ns, &["--after-power-loss", "--seed", "7"]);
    let loses = line["power_loss"]["lost"].as_u64() > Some(0);
    assert_eq!(under_7 != now, loses, "{line}");
    for image in [now_file, lost_file, all_lost_file] {
        check(&image);
    }

    let (root, line, file) = write("root", loss_ns, &["--disk", "root"]);
    assert_eq!((&line["file_system"], &line["unflushed_writes"]), (&"squashfs".into(), &0.into()));
    let (base, _) = image().files.root.as_ref().unwrap();
    let base = fs::read(base).unwrap();
    assert!(root[..base.len()] == base && root[base.len()..].iter().all(|&byte| byte == 0));

    let file = file.to_str().unwrap();
    let error = refused(&["disk", run, id, "--node", "db", "-o", file]);
    assert!(error.contains("it exists already, and a new file is needed"), "{error}");
    let new = folder.join("new").display().to_string();
    let error = refused(&["disk", run, id, "-o", &new]);
    assert!(error.contains("--node: name a node; this world has db, client"), "{error}");
    let error = refused(&["disk", run, id, "--node", "client", "-o", &new]);
    assert!(error.contains("--disk: client has no data disk; its disks are root (everett-root)"), "{error}");
    assert!(!Path::new(&new).exists());
}

/// Returns the packets of a capture, as tcpdump prints them, with times in seconds.
fn tcpdump(capture: &str) -> String {
    // As root, tcpdump would change to a user that the host may not have.
    tools().run("tcpdump", &["-Z", "root", "-nn", "-tt", "--nano", "-r", capture])
}

/// Checks captures of the branch with these events.
fn captures(folder: &Path, run: &str, id: &str, events: &[Value]) {
    let file = folder.join("wire.pcapng");
    let path = file.to_str().unwrap();
    let [line] = &lines_of(run, "pcap", &[id, "-o", path])[..] else { panic!("one line") };
    assert_eq!(line["missing"], 0);
    let printed = tcpdump(path);
    assert_eq!(printed.lines().count() as u64, line["packets"].as_u64().unwrap());
    // Each arrival has a packet with its date.
    let is_arrival = |event: &&Value| {
        event["kind"] == "message" && (event["move"] == "DELIVER" || event["move"] == "DUPLICATE")
    };
    let arrivals: Vec<&Value> = events.iter().filter(is_arrival).collect();
    assert!(arrivals.len() > 30, "{}", arrivals.len());
    let times: BTreeSet<&str> = printed.lines().filter_map(|line| line.split(' ').next()).collect();
    for arrival in &arrivals {
        let ns = arrival["vtime_ns"].as_u64().unwrap();
        let date = format!("{}.{:09}", 1_767_225_600 + ns / 1_000_000_000, ns % 1_000_000_000);
        assert!(times.contains(&*date), "{arrival}");
    }
    assert!(printed.contains(".7000: Flags [P.]") && printed.contains("length 2"), "{printed}");
    let bytes = fs::read(&file).unwrap();
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("fault #0 begins: {\"at\":"));
    let fates = [("DUPLICATE", " duplicated: an extra copy"), ("DROP", " lost: ")];
    for (fate, text) in fates {
        assert_eq!(events.iter().any(|event| event["move"] == fate), has(text), "{fate}");
    }

    let output = everett(&["pcap", run, id, "-o", "-"]);
    assert!(output.status.success() && output.stdout == bytes, "{:?}", output.status);
    let other = folder.join("client.pcapng").display().to_string();
    let since = format!("{}ns", arrivals[arrivals.len() / 2]["vtime_ns"]);
    lines_of(run, "pcap", &[id, "-o", &other, "--node", "client", "--vtime", "--since", &since]);
    let of_client = tcpdump(&other);
    let first = of_client.lines().next().unwrap().split('.').next().unwrap();
    assert!(first.parse::<u64>().unwrap() < 1_000_000, "{first}");
    assert!(of_client.lines().count() * 2 < printed.lines().count());
}

/// Checks the lines of the branch with these events.
fn logs(run: &str, id: &str, events: &[Value]) {
    let replayed = lines_of(run, "replay", &[id]);
    let is_event = |event: &&Value| event["kind"] != "message";
    let events: Vec<&Value> = events.iter().filter(is_event).collect();
    let replayed: Vec<&Value> = replayed.iter().filter(|line| line["kind"] != "replay").collect();
    assert!(events.ends_with(&replayed), "logs {:?}, replay {:?}", events.last(), replayed.last());
    assert!(events.iter().any(|event| event["kind"] == "ready"), "events of the boot come first");

    let of_writer = lines_of(run, "logs", &[id, "--service", "writer"]);
    let expected: Vec<&Value> =
        events.into_iter().filter(|event| event["kind"] == "line" && event["unit"] == "writer").collect();
    assert!(of_writer.iter().collect::<Vec<_>>() == expected && expected.len() > 10, "{}", expected.len());
    let text = |arguments: &[&str]| {
        let output = everett(&[&["logs", run, id], arguments].concat());
        assert!(output.status.success(), "{}", shown(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let (early, late) = (&expected[3]["vtime_ns"], &expected[9]["vtime_ns"]);
    let (since, at) = (format!("{early}ns"), format!("{}ns", late.as_u64().unwrap() + MS));
    let span = text(&["--service", "writer", "--since", &since, "--at", &at]);
    assert!((7..12).contains(&span.lines().count()), "{span}");
    let stored = text(&["--grep", r"\| stored 1\d$", "--node", "client", "--context", "1"]);
    let stored: Vec<&str> = stored.lines().collect();
    // Ten lines match, unless the branch ends before, and there are the lines before and after them.
    let matching = stored.iter().filter(|line| line.contains("| stored 1")).count();
    let others = stored.len() - matching;
    assert!(matching > 2 && (1..=2).contains(&others) && stored[0].ends_with("| stored 9"), "{stored:?}");
    let error = refused(&["logs", run, id, "--service", "nginx"]);
    assert!(error.contains("--service: nginx printed nothing here; lines came from "), "{error}");
    let error = refused(&["logs", run, id, "--since", "1h"]);
    assert!(error.contains("--since: 3600.000000000 s is later than the end"), "{error}");
}
