//! Sockets and open files that Everett reads from a guest's memory equal those that the guest reports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use everett_inspect::Guest;
use everett_inspect::sockets::address::Address;
use everett_inspect::sockets::state::{Kind, State};
use everett_inspect::sockets::tcp::TimerKind;
use everett_inspect::sockets::{Socket, Sockets};
use everett_inspect::special_files::Special;
use everett_session::inside::machine::MachineRam;
use everett_session::machines::EngineOptions;
use everett_session::world::event::Event;
use everett_session::world::timeline::{COMMAND, Timeline};
use everett_streams::Seed;
use everett_vmm::machine::Until;

use crate::inspection::{Changed, Lying, ReadKernel, kernel};
use crate::support::{MS, everett, launcher, lines, run_script, shown, world_file};

/// Opens sockets and files, and prints what the guest's `/proc` says of them.
const SCRIPT: &str = concat!(
    "cat > /tmp/sockets.py <<'END'\n",
    include_str!("sockets.py"),
    r#"
END
python3 /tmp/sockets.py > /tmp/opened &
until grep -q ^opened /tmp/opened; do sleep 0.05; done
sleep 0.5
cat /tmp/opened
read -r _ pid child <<END
$(grep ^opened /tmp/opened)
END
for process in $pid $child; do
    echo "namespace $(readlink /proc/$process/ns/net)"
    for table in tcp tcp6 udp udp6 raw raw6 unix packet; do
        sed "1d; s/^/$table /" /proc/$process/net/$table
    done
done
for folder in /proc/[0-9]*; do
    for file in $folder/fd/*; do
        if [ -L $file ]; then
            echo "file ${folder#/proc/} ${file##*/} $(readlink $file)"
            sed "s;^;fdinfo ${folder#/proc/} ${file##*/} ;" $folder/fdinfo/${file##*/}
        fi
    done
done
echo done
sleep 1000
"#
);

/// Returns the state with the number in a table of `/proc/net`.
fn state(number: &str) -> &'static str {
    let names = [
        "",
        "ESTAB",
        "SYN-SENT",
        "SYN-RECV",
        "FIN-WAIT-1",
        "FIN-WAIT-2",
        "TIME-WAIT",
        "UNCONN",
        "CLOSE-WAIT",
        "LAST-ACK",
        "LISTEN",
        "CLOSING",
    ];
    names[usize::from_str_radix(number, 16).unwrap()]
}

/// Returns an address as in a table of `/proc/net`: words of 32 bits in the host's order.
fn address(text: &str) -> (IpAddr, u16) {
    let (ip, port) = text.split_once(':').unwrap();
    let word = |n: usize| u32::from_str_radix(&ip[8 * n..8 * n + 8], 16).unwrap().to_le_bytes();
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0))),
        _ => {
            let bytes: Vec<u8> = (0..4).flat_map(word).collect();
            IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).unwrap()))
        }
    };
    (ip, u16::from_str_radix(port, 16).unwrap())
}

/// Returns the fact in a line of `/proc/net`.
fn reported_socket(table: &str, line: &str) -> String {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    match table {
        "unix" => {
            let is_listening = hex(fields[3]) & 0x1_0000 != 0;
            let name = fields.get(7).unwrap_or(&"-");
            format!("{} {is_listening} {} {} {name}", fields[4], fields[5], fields[6])
        }
        "packet" => format!("{} {} {} {}", fields[3], fields[4], fields[6], fields[8]),
        _ => {
            let ((local, local_port), (remote, remote_port)) = (address(fields[1]), address(fields[2]));
            let (sent, received) = fields[4].split_once(':').unwrap();
            let timer = fields[5].split_once(':').unwrap().0;
            format!(
                "{local} {local_port} {remote} {remote_port} {} tx {} rx {} timer {timer} retransmits {} user {} {}",
                state(fields[3]),
                hex(sent),
                hex(received),
                hex(fields[6]),
                fields[7],
                fields[9]
            )
        }
    }
}

/// Returns the same fact, read from the guest's memory, with the name of its table. `None` for Netlink.
fn observed_socket(socket: &Socket) -> Option<String> {
    let six = if socket.is_version_6 { "6" } else { "" };
    Some(match (&socket.local, &socket.remote) {
        (Address::Unix { name, inode }, _) => {
            let kind = match socket.kind {
                Kind::UnixStream => "0001",
                Kind::UnixDatagram => "0002",
                _ => "0005",
            };
            let state = match (*inode, socket.state) {
                (0, State::Established) => "02",
                (0, _) => "04",
                (_, State::Established) => "03",
                _ => "01",
            };
            let is_listening = socket.state == State::Listen;
            format!("unix {kind} {is_listening} {state} {inode} {}", name.as_deref().unwrap_or("-"))
        }
        (Address::Card { protocol, index }, _) => {
            format!("packet {protocol:04x} {index} {} {}", socket.receive_queue, socket.inode)
        }
        (Address::Ip(local), Address::Ip(remote)) => {
            let table = match socket.kind {
                Kind::Tcp => "tcp",
                Kind::Udp => "udp",
                Kind::Raw => "raw",
                other => panic!("{other:?}"),
            };
            let timer = match socket.timer.map(|timer| timer.kind) {
                None => "00",
                Some(TimerKind::Retransmit) => "01",
                Some(TimerKind::KeepAlive) => "02",
                Some(TimerKind::TimeWait) => "03",
                Some(TimerKind::Persist) => "04",
            };
            // The guest's table shows no maximum of a listening socket's queue.
            let sent = if socket.state == State::Listen { 0 } else { socket.send_queue };
            format!(
                "{table}{six} {} {} {} {} {} tx {sent} rx {} timer {timer} retransmits {} user {} {}",
                local.ip(),
                local.port(),
                remote.ip(),
                remote.port(),
                socket.state.name(),
                socket.receive_queue,
                socket.retransmits,
                socket.user.unwrap_or(0),
                socket.inode
            )
        }
        _ => return None,
    })
}

/// Returns the facts about the open files of all processes, by process ID.
fn observed_files(guest: Guest<'_>) -> BTreeMap<u32, BTreeSet<String>> {
    let mut facts = BTreeMap::new();
    for process in guest.processes().unwrap() {
        let of_process = facts.entry(process.pid).or_insert_with(BTreeSet::new);
        for (fd, file) in guest.files(&process).unwrap() {
            let file = file.unwrap();
            of_process.insert(format!("file {fd} {}", file.name));
            let (offset, flags, mount) = (file.offset, file.flags, file.mount);
            of_process
                .insert(format!("{fd} pos:{offset} flags:0{flags:o} mnt_id:{mount} ino:{}", file.inode));
            match guest.special(&file).unwrap() {
                Some(Special::Event(count)) => {
                    of_process.insert(format!("{fd} eventfd-count:{count:x}"));
                }
                Some(Special::Epoll(watches)) => of_process.extend(
                    watches
                        .iter()
                        .map(|watch| format!("{fd} tfd:{} events:{:x}", watch.descriptor, watch.events)),
                ),
                _ => {}
            }
        }
    }
    facts
}

/// Output of the guest.
#[derive(Default)]
struct Reported {
    /// Facts about sockets: the namespace, the table, and the fact.
    sockets: BTreeSet<String>,
    /// Facts about open files, by process ID.
    files: BTreeMap<u32, BTreeSet<String>>,
    /// Other lines of the program that opened the sockets, by their first word.
    lines: BTreeMap<String, Vec<String>>,
}

fn reported(lines: &[&str]) -> Reported {
    let mut reported = Reported::default();
    let mut namespace = String::new();
    let mut position: Vec<String> = Vec::new();
    for line in lines.iter().take_while(|line| **line != "done") {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "namespace" => namespace = rest.trim_matches(|c: char| !c.is_ascii_digit()).to_owned(),
            "tcp" | "tcp6" | "udp" | "udp6" | "raw" | "raw6" | "unix" | "packet" => {
                reported.sockets.insert(format!("{namespace} {word} {}", reported_socket(word, rest)));
            }
            "file" => {
                let (pid, rest) = rest.split_once(' ').unwrap();
                let files = reported.files.entry(pid.parse().unwrap()).or_default();
                files.insert(format!("file {}", rest.trim_end()));
            }
            "fdinfo" => {
                let fields: Vec<&str> = rest.split_whitespace().collect();
                let files = reported.files.entry(fields[0].parse().unwrap()).or_default();
                let fd = fields[1];
                match fields[2] {
                    "pos:" => position = vec![format!("{fd} pos:{}", fields[3])],
                    key @ ("flags:" | "mnt_id:") => position.push(format!("{key}{}", fields[3])),
                    "ino:" => {
                        position.push(format!("ino:{}", fields[3]));
                        files.insert(position.join(" "));
                    }
                    "eventfd-count:" => {
                        files.insert(format!("{fd} eventfd-count:{}", fields[3]));
                    }
                    "tfd:" => {
                        files.insert(format!("{fd} tfd:{} events:{}", fields[3], fields[5]));
                    }
                    _ => {}
                }
            }
            _ => reported.lines.entry(word.to_owned()).or_default().push(rest.to_owned()),
        }
    }
    reported
}

/// Reads all sockets. Every part of them can be read.
fn sockets(guest: Guest<'_>) -> Sockets {
    let sockets = guest.sockets(&guest.processes().unwrap()).unwrap();
    assert_eq!(sockets.unreadable, []);
    sockets
}

/// Facts that were observed while the script ran.
#[derive(Default)]
struct Observed {
    sockets: BTreeSet<String>,
    /// Facts of all instants since the sockets were open.
    always: Option<BTreeSet<String>>,
    files: BTreeMap<u32, BTreeSet<String>>,
    last: Sockets,
    last_files: BTreeMap<u32, BTreeSet<String>>,
}

impl Observed {
    fn observe(&mut self, timeline: &Timeline, kernel: &ReadKernel) {
        let ram = MachineRam(timeline.machine(0));
        let guest = Guest::new(&kernel.kernel, &ram).unwrap();
        self.last = sockets(guest);
        let fact = |socket: &Socket| Some(format!("{} {}", socket.namespace, observed_socket(socket)?));
        let facts: BTreeSet<String> = self.last.found.iter().filter_map(fact).collect();
        self.sockets.extend(facts.iter().cloned());
        self.always = Some(match &self.always {
            Some(always) => always.intersection(&facts).cloned().collect(),
            None => facts,
        });
        self.last_files = observed_files(guest);
        for (pid, files) in &self.last_files {
            self.files.entry(*pid).or_default().extend(files.iter().cloned());
        }
    }
}

/// Runs the script until the sockets and files are open. Returns what it printed.
fn open() -> (Timeline, Vec<Event>) {
    let mut timeline = launcher(EngineOptions::default()).start(Seed::new(5)).unwrap();
    let mut printed = run_script(&mut timeline, SCRIPT, 0).1;
    while !lines(&printed, COMMAND).iter().any(|line| line.starts_with("opened")) {
        timeline.run(&Until::vtime(timeline.vtime() + MS));
        printed.append(&mut timeline.take_events());
    }
    (timeline, printed)
}

/// Runs the script to its end, and observes the guest every 500 us of vtime while the script prints.
fn run(kernel: &ReadKernel) -> (Reported, Observed) {
    let (mut timeline, mut printed) = open();
    let mut observed = Observed::default();
    while lines(&printed, COMMAND).last() != Some(&"done") {
        observed.observe(&timeline, kernel);
        timeline.run(&Until::vtime(timeline.vtime() + MS / 2));
        printed.append(&mut timeline.take_events());
    }
    let reported = reported(&lines(&printed, COMMAND));
    (reported, observed)
}

#[test]
fn sockets_and_files_are_those_that_the_guest_reports() {
    let kernel = kernel();
    let (reported, observed) = run(&kernel);
    check_details(&reported, &observed.last.found);
    let opened: Vec<u32> =
        reported.lines["opened"][0].split(' ').map(|number| number.parse().unwrap()).collect();
    let program = opened[0];

    for fact in &reported.sockets {
        assert!(
            observed.sockets.contains(fact),
            "the guest reports {fact}, observed were {:#?}",
            observed.sockets
        );
    }
    for fact in observed.always.as_ref().unwrap() {
        assert!(reported.sockets.contains(fact), "the guest does not report {fact}: {:#?}", reported.sockets);
    }
    for wanted in [
        " tcp ",
        " tcp6 ",
        " udp ",
        " udp6 ",
        " raw ",
        " raw6 ",
        " unix ",
        " packet ",
        "LISTEN",
        "ESTAB",
        "SYN-RECV",
        "FIN-WAIT-1",
        "FIN-WAIT-2",
        "TIME-WAIT",
        "CLOSE-WAIT",
        "@ever@ett",
        "/tmp/server.sock",
        "@other",
        " 7200 ",
        "::ffff:127.0.0.1",
    ] {
        assert!(
            reported.sockets.iter().any(|fact| fact.contains(wanted)),
            "{wanted}: {:#?}",
            reported.sockets
        );
    }

    // The program's files no longer change. Those of the script's own processes do.
    let files = &reported.files[&program];
    assert_eq!(files, &observed.last_files[&program]);
    let told = reported.files.iter().filter(|(pid, _)| observed.last_files.contains_key(pid));
    for (pid, facts) in told {
        for fact in facts {
            assert!(observed.files[pid].contains(fact), "{pid}: the guest reports {fact}");
        }
    }
    for wanted in
        ["(deleted)", "pipe:[", "[eventpoll]", "[eventfd]", "[pidfd]", "net:[", "/memfd:memory", "tfd:"]
    {
        assert!(files.iter().any(|fact| fact.contains(wanted)), "{wanted}: {files:#?}");
    }

    // A socket that a table of the guest lists has the process and the descriptor that the guest's links say.
    let sockets = &observed.last.found;
    let mut owned = 0;
    for fact in files {
        let Some((fd, inode)) = fact.strip_prefix("file ").and_then(|rest| rest.split_once(" socket:["))
        else {
            continue;
        };
        let inode: u64 = inode.trim_end_matches(']').parse().unwrap();
        let Some(socket) = sockets.iter().find(|socket| socket.inode == inode) else { continue };
        let owners = &socket.owners;
        assert!(
            owners.iter().any(|owner| (owner.pid, owner.descriptor) == (program, fd.parse().unwrap())),
            "{socket:?}"
        );
        owned += 1;
    }
    assert!(owned > 25, "{owned}");
}

/// Checks that connections that are not accepted are known, and that details and times are those of the program.
fn check_details(reported: &Reported, sockets: &[Socket]) {
    let is_listening = |socket: &&Socket| socket.kind == Kind::Tcp && socket.state == State::Listen;
    let queued: u64 = sockets.iter().filter(is_listening).map(|socket| socket.receive_queue).sum();
    let waiting = sockets.iter().filter(|socket| socket.waits_for_accept);
    assert_eq!(waiting.count() as u64, queued);
    assert!(queued >= 2, "{queued}");

    let line = |word: &str| {
        let line = &reported.lines[word][0];
        let (port, rest) = line.split_once(' ').unwrap();
        (port.parse::<u16>().unwrap(), rest.to_owned())
    };
    let port_of = |address: &Address| if let Address::Ip(address) = address { address.port() } else { 0 };
    let find = |local: u16, remote: u16| {
        let is = |socket: &&Socket| port_of(&socket.local) == local && port_of(&socket.remote) == remote;
        sockets.iter().find(is).unwrap()
    };
    let number = |socket: &Socket, wanted: &str| {
        let details = socket.details.as_ref().unwrap();
        details.numbers.iter().find(|(name, _)| *name == wanted).expect(wanted).1
    };
    let seconds = |text: &str| text.split(' ').map(|word| word.parse::<f64>().unwrap()).collect::<Vec<_>>();

    let (port, info) = line("info");
    let accepted = find(port, 7001);
    for part in info.split(' ') {
        let (name, told) = part.split_once(':').unwrap();
        assert_eq!(number(accepted, name).to_string(), told, "{name} {accepted:?}");
    }
    assert_eq!(accepted.details.as_ref().unwrap().congestion.as_deref(), Some("cubic"));

    // The kernel's ticks are 4 ms long.
    let (port, times) = line("sent");
    let times = seconds(&times);
    let sent = number(find(7001, port), "lastsnd_ms") as f64 / 1000.0;
    assert!((times[0] - 0.004..=times[1]).contains(&sent), "{sent} {times:?}");
    let (port, closed) = line("closed");
    let timer = find(port, 7002).timer.unwrap();
    let after = timer.expires_ns.unwrap() as f64 / 1e9 - seconds(&closed)[0];
    assert_eq!(timer.kind, TimerKind::TimeWait);
    assert!((59.9..60.1).contains(&after), "{after}");
}

/// A hostile guest can write anything into its kernel's structures. Reading them ends, and does not panic.
#[test]
fn a_guest_that_lies_about_its_sockets_harms_no_one() {
    let ReadKernel { kernel, .. } = kernel();
    let (timeline, _) = open();
    let (mut read, mut refused, mut files) = (0, 0, 0);
    for seed in 0..60 {
        let ram = MachineRam(timeline.machine(0));
        let ram = Lying { ram, seed, rarity: [200, 2_000, 20_000][seed as usize % 3] };
        let Ok(guest) = Guest::new(&kernel, &ram) else { continue };
        let Ok(processes) = guest.processes() else { continue };
        match guest.sockets(&processes) {
            Ok(sockets) => {
                read += sockets.found.len();
                refused += sockets.unreadable.len();
            }
            Err(_) => refused += 1,
        }
        for file in processes.iter().filter_map(|process| guest.files(process).ok()).flatten() {
            let Ok(file) = file.1 else { continue };
            let _ = (guest.special(&file), file.sock.map(|sock| guest.socket(sock)));
            files += 1;
        }
    }
    assert!(read > 100 && refused > 10 && files > 100, "{read} {refused} {files}");
}

/// Lists that lead back to themselves, tables without an end and wild pointers are errors. The other parts are read.
#[test]
fn tables_that_lie_are_refused_by_their_names() {
    let read_kernel = kernel();
    let ReadKernel { kernel, types, values } = &read_kernel;
    let (timeline, _) = open();
    let mut ram = Changed { ram: MachineRam(timeline.machine(0)), words: BTreeMap::new() };
    let guest = Guest::new(kernel, &ram).unwrap();
    let field = |name: &str| types.field(name).unwrap().offset();
    let physical = |at: u64| guest.memory().physical(at).unwrap();
    let redis = guest.processes().unwrap();
    let redis = redis.iter().find(|process| process.threads[0].name == "redis-server").unwrap();
    let sockets = sockets(guest);
    let is_of_redis = |socket: &&Socket| socket.owners.iter().any(|owner| owner.pid == redis.pid);
    let mut listening = sockets.found.iter().filter(|socket| socket.state == State::Listen);
    let listening = listening.find(is_of_redis).unwrap();
    let node = listening.sock + field("sock_common.skc_nulls_node");
    let hash = values.get("tcp_hashinfo").unwrap();
    let udp = values.get("udp_table").unwrap();
    let word = |at: u64| {
        let mut bytes = [0; 8];
        guest.memory().read(at, &mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    };
    // The mask is the lower half of a word.
    let masks = hash + field("inet_hashinfo.ehash_mask");
    let task = redis.threads[0].task;
    let table = word(word(task + field("task_struct.files")) + field("files_struct.fdt"));
    let lies = [
        (node, node, "the table of TCP sockets cannot be read: a list of sockets leads back to itself"),
        (node, 0x1234_5678, "the table of TCP sockets cannot be read: 0x12345678 is unmapped"),
        (masks, word(masks) | 0xffff_ffff, "there are more than 1048576 buckets of a hash table"),
        (udp, 0, "the table of UDP sockets cannot be read: 0x0 is unmapped"),
        (listening.sock + field("sock.sk_socket"), 8, "a socket cannot be read: 0x"),
        (
            listening.sock + field("sock_common.skc_family"),
            99 | 10 << 16,
            "a socket cannot be read: it has the unknown address family 99",
        ),
        (
            listening.sock + field("inet_connection_sock.icsk_accept_queue.rskq_accept_head"),
            16,
            "a queue of connections cannot be read",
        ),
        (
            table,
            0xffff_ffff,
            "the open files of a process cannot be read: there are more than 1048576 open files",
        ),
        (table + field("fdtable.fd"), 16, "the open files of a process cannot be read: 0x10 is unmapped"),
    ];
    let lies: Vec<(u64, u64, &str)> =
        lies.into_iter().map(|(at, word, text)| (physical(at), word, text)).collect();
    for (at, word, expected) in lies {
        ram.words = BTreeMap::from([(at, word)]);
        let guest = Guest::new(kernel, &ram).unwrap();
        let read = guest.sockets(&guest.processes().unwrap()).unwrap();
        let errors: Vec<String> =
            read.unreadable.iter().map(|(_, error)| everett_input::causes::with_causes(error)).collect();
        assert!(errors.iter().any(|error| error.contains(expected)), "{expected}: {errors:?}");
        assert!(read.found.iter().any(|socket| socket.kind.is_unix()), "others are read");
    }
}

/// The commands print the sockets and files of a branch's machines.
#[test]
fn ss_and_files_show_the_machines_of_a_branch() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run").display().to_string();
    let world = world_file().display().to_string();
    let explored = everett(&["explore", &world, "--seed", "1", "--branches", "1", "--plain", "-o", &run]);
    assert!(explored.status.code().is_some_and(|code| code < 2), "{}", shown(&explored));
    let text = |arguments: &[&str]| {
        let output = everett(arguments);
        assert!(output.status.success(), "{}", shown(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let refused = everett(&["ss", &run, "b0", "--at", "1000s"]);
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    let start =
        refused.split_once("goes from ").expect("the first instant").1.split_once(" s to ").unwrap().0;
    let start = format!("{start}s");
    let sockets = text(&["ss", &run, "b0", "--at", &start, "--tcp", "--listening", "--info"]);
    let line = sockets.lines().find(|line| line.contains("0.0.0.0:6379")).expect("a line for Redis");
    assert!(line.contains("tcp   LISTEN") && line.contains("redis-server pid="), "{sockets}");
    assert!(!sockets.contains("u_str") && !sockets.contains("TIME-WAIT"), "{sockets}");
    let all = text(&["ss", &run, "b0", "--info"]);
    assert!(all.contains("TIME-WAIT") && all.contains("timer:timewait expires:6"), "{all}");
    let json = text(&["--json", "ss", &run, "b0", "--at", &start, "--process", "redis-server"]);
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = lines.iter().find(|line| line["local"]["port"] == 6379 && line["state"] == "LISTEN").unwrap();
    assert_eq!((&line["owners"][0]["name"], &line["netid"]), (&"redis-server".into(), &"tcp".into()));
    assert!(lines.iter().all(|line| line["kind"] == "socket"), "{json}");

    // Redis listens before it opens its file, so the file is open at the end, and not always at the start.
    let files = text(&["files", &run, "b0", "--process", "redis-server"]);
    for expected in
        ["tcp LISTEN 0.0.0.0:6379 -> 0.0.0.0:*", "[eventpoll]  watches ", "appendonly.aof", "/dev/null"]
    {
        assert!(files.contains(expected), "{expected}: {files}");
    }
    let json = text(&["--json", "files", &run, "b0", "--at", &start]);
    let line = json.lines().find(|line| line.contains(r#""type":"socket""#)).expect("a socket");
    assert!(line.contains(r#""socket":{"namespace":"#), "{line}");
    for (command, arguments, expected) in [
        ("ss", ["--at", "1000s"], "--at: 1000.000000000 s is not on this timeline"),
        ("ss", ["--at", "x"], "invalid value"),
        ("files", ["--node", "n9"], "--node: no node of this world is named n9"),
        ("files", ["--process", "nothing"], "--process: no machine has a process nothing at this instant"),
    ] {
        let output = everett(&[&[command, &run, "b0"], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{}", shown(&output));
    }
}
