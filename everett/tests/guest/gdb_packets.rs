//! gdb's stub takes any bytes. It ends, and it never shows wrong memory as right.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use everett_explorer::search::{Fork, Path};
use everett_gdb::limits::{PACKET_BYTES_MAX, POINTS_MAX, READ_BYTES_MAX};
use everett_gdb::{Debuggee, Subject};
use everett_inspect::{Guest, Kernel};
use everett_session::debug::cursor::{Aim, Cursor, Stop};
use everett_session::explore::setting::Setting;
use everett_session::inside::machine::{MachineRam, registers};
use everett_session::machines::EngineOptions;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use vm_memory::{Bytes, GuestAddress};

use crate::explore::{WORLD, setting};
use crate::inspection;

/// Number of random conversations.
const CASES: u32 = 200;
/// Maximum number of packets of a random conversation.
const PACKETS_MAX: usize = 24;
/// Memory for the moments of the cursor, in bytes.
const BUDGET_BYTES: u64 = 512 << 20;
/// Answer of the stub to a request that it cannot fulfil.
const REFUSED: &str = "E79";
/// Number of the node with the process.
const DB: usize = 0;

/// Packets that gdb sends. `*` stands for a number.
const PACKETS: [&str; 40] = [
    "?",
    "g",
    "G*",
    "p*",
    "P*=*",
    "m*,*",
    "M*,*:*",
    "X*,*:*",
    "H*",
    "Hg*",
    "Hc*",
    "T*",
    "c",
    "c*",
    "s",
    "s*",
    "bs",
    "bc",
    "C*",
    "S*",
    "D",
    "D;*",
    "k",
    "!",
    "vCont?",
    "vCont;c",
    "vCont;s:*",
    "vCont;r*,*:*",
    "vCont;t",
    "vCont;s:*;c",
    "vKill;*",
    "Z0,*,*",
    "z0,*,*",
    "Z1,*,*",
    "Z2,*,*",
    "z2,*,*",
    "Z4,*,*",
    "qRcmd,*",
    "qThreadExtraInfo,*",
    "qXfer:auxv:read::*,*",
];
/// More packets that gdb sends.
const QUERIES: [&str; 12] = [
    "qSupported:multiprocess+;swbreak+;vContSupported+",
    "qfThreadInfo",
    "qsThreadInfo",
    "qC",
    "qAttached:*",
    "qXfer:features:read:target.xml:*,*",
    "qXfer:features:read:*:*,*",
    "qOffsets",
    "qSymbol::",
    "QStartNoAckMode",
    "vMustReplyEmpty",
    "qRcmd,7365656b2031302e32733a3a",
];
/// Numbers of interest, as they stand in packets.
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "-1",
    "p1.1",
    "7f",
    "800",
    "801",
    "1000",
    "400000",
    "ffffffff81000000",
    "ffffffffffffffff",
    "ffffffffffffff00",
    "10000000000000000",
    "",
];

fn packet(body: &[u8]) -> Vec<u8> {
    let sum = body.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    [b"$", body, format!("#{sum:02x}").as_bytes()].concat()
}

/// Returns random packets: valid ones, ones with random numbers and bytes, wrong sums, interrupts, and garbage.
fn packets() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![
        3 => prop::sample::select(&NUMBERS[..]).prop_map(str::to_owned),
        1 => any::<u64>().prop_map(|n| format!("{n:x}")),
    ];
    let text = prop::sample::select([&PACKETS[..], &QUERIES[..]].concat());
    let body = (text, vec(number, 3)).prop_map(|(text, numbers)| {
        let mut numbers = numbers.into_iter().cycle();
        let put = |part: &str| part.to_owned();
        let parts: Vec<String> = text.split('*').map(put).collect();
        let mut body = parts[0].clone();
        for part in &parts[1..] {
            body.push_str(&numbers.next().unwrap_or_default());
            body.push_str(part);
        }
        body.into_bytes()
    });
    let changed =
        (body.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut body, at, byte)| {
            let at = at.index(body.len());
            body[at] = byte;
            body
        });
    let framed = prop_oneof![4 => body, 1 => changed].prop_map(|body| [b"+", &packet(&body)[..]].concat());
    let long =
        (PACKET_BYTES_MAX - 8..PACKET_BYTES_MAX + 8).prop_map(|length| packet(&vec![b'0'; length][..]));
    let one = prop_oneof![
        30 => framed.clone(),
        1 => framed.prop_map(|mut bytes| { bytes.pop(); bytes }),
        1 => vec(any::<u8>(), 0..40),
        1 => Just(vec![3]),
        1 => Just(b"-".to_vec()),
        1 => long,
    ];
    vec(one, 1..PACKETS_MAX).prop_map(|all| all.concat())
}

/// A recorded branch, and a process on it.
struct Recorded {
    setting: Setting,
    path: Path,
    end_ns: u64,
    kernel: Kernel,
}

impl Recorded {
    fn new() -> Recorded {
        let setting = setting(WORLD, EngineOptions::default());
        let path = Path::default().child(Fork { vtime_ns: setting.root_ns, child: 1 }).unwrap();
        let end_ns = setting.fates().end(&path).unwrap().at_ns;
        let kernel = Kernel::new(&std::fs::read(&setting.launcher.files.kernel).unwrap()).unwrap();
        Recorded { setting, path, end_ns, kernel }
    }
    fn cursor(&self) -> Cursor<'_> {
        Cursor::new(&self.setting, &self.path, self.end_ns, BUDGET_BYTES).unwrap()
    }
}

/// Sends `bytes` to the stub, and returns its answers. The stub has ended then.
fn answers(cursor: &mut Cursor<'_>, kernel: &Kernel, subject: Subject, bytes: &[u8]) -> Vec<u8> {
    let mut debuggee = Debuggee::new(cursor, kernel, None, DB, subject).unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut to = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (connection, _) = listener.accept().unwrap();
    let mut from = to.try_clone().unwrap();
    thread::scope(|scope| {
        let sender = scope.spawn(move || {
            // A stub that has ended takes no more bytes.
            let _ = to.write_all(bytes).and_then(|()| to.shutdown(Shutdown::Write));
        });
        let receiver = scope.spawn(move || {
            let mut answers = Vec::new();
            let _ = from.read_to_end(&mut answers);
            answers
        });
        // It may end with an error, e.g. if a packet is too long.
        let _ = everett_gdb::serve(&mut debuggee, connection);
        sender.join().unwrap();
        receiver.join().unwrap()
    })
}

/// Returns the bodies of answers. `*` and a character stand for repetitions of the character before.
fn bodies(answers: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(answers).into_owned();
    let bodies = text.split('$').skip(1).map(|packet| packet.split('#').next().unwrap_or_default());
    let whole = |body: &str| {
        let (mut whole, mut rest) = (String::new(), body.chars());
        while let Some(next) = rest.next() {
            match (next, whole.chars().last()) {
                ('*', Some(last)) => {
                    let count = rest.next().map_or(0, |count| u32::from(count) - 29);
                    whole.extend((0..count).map(|_| last));
                }
                _ => whole.push(next),
            }
        }
        whole
    };
    bodies.map(whole).collect()
}

fn process(cursor: &Cursor<'_>, kernel: &Kernel) -> (u32, u64) {
    let ram = MachineRam(cursor.timeline().machine(DB));
    let processes = Guest::new(kernel, &ram).unwrap().processes().unwrap();
    let redis = processes.iter().find(|process| process.threads[0].name == "redis-server").unwrap();
    (redis.pid, redis.threads[0].task)
}

#[test]
fn a_stub_takes_any_packets_and_changes_nothing() {
    let recorded = Recorded::new();
    let kernel = &recorded.kernel;
    let mut cursor = recorded.cursor();
    assert_eq!(cursor.seek(Aim::Vtime(recorded.end_ns), &mut ()).unwrap(), Stop::Reached);
    let digest = cursor.digest();
    let middle_ns = recorded.setting.root_ns.midpoint(recorded.end_ns);
    cursor.seek(Aim::Vtime(middle_ns), &mut ()).unwrap();
    let (pid, task) = process(&cursor, kernel);
    let ask = |cursor: &mut Cursor<'_>, all: &[String]| {
        let bytes: Vec<u8> = all.iter().flat_map(|body| packet(body.as_bytes())).collect();
        bodies(&answers(cursor, kernel, Subject::Process(pid), &bytes))
    };

    // The kernel uses the CPU's x87 and SSE registers, too.
    let floating = registers(&cursor.timeline().machine(DB).cpu()).floating;
    let debuggee = Debuggee::new(&mut cursor, kernel, None, DB, Subject::Kernel).unwrap();
    assert_eq!(debuggee.floating_registers(1), Some(floating));

    // The number of breakpoints has a bound.
    let points: Vec<String> = (0..POINTS_MAX + 3).map(|n| format!("Z0,{n:x},1")).collect();
    let set = ask(&mut cursor, &points);
    assert!(set[..POINTS_MAX].iter().all(|answer| answer == "OK"), "{set:?}");
    assert!(
        set.len() == points.len() && set[POINTS_MAX..].iter().all(|answer| answer.starts_with('E')),
        "{set:?}"
    );

    // So has an answer. No page is mapped at the address 0.
    let guest_text = format!("{:x}", text_of(&cursor, kernel, pid));
    let lengths = [1, READ_BYTES_MAX, READ_BYTES_MAX + 1, usize::MAX];
    let reads: Vec<String> = lengths.iter().map(|length| format!("m{guest_text},{length:x}")).collect();
    let read = ask(&mut cursor, &reads);
    assert_eq!((read[0].len(), read[1].len()), (2, 2 * READ_BYTES_MAX), "{read:?}");
    assert!(read[2..].iter().all(|answer| answer == REFUSED) && read.len() == 4, "{read:?}");
    assert_eq!(ask(&mut cursor, &["m0,8".to_owned()]), [REFUSED]);

    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let mut most = 0;
    let cursor = std::cell::RefCell::new(cursor);
    let longest = std::cell::RefCell::new(&mut most);
    let ran = runner.run(&(packets(), any::<bool>()), |(bytes, is_kernel)| {
        let mut cursor = cursor.borrow_mut();
        cursor.seek(Aim::Vtime(middle_ns), &mut ()).unwrap();
        let subject = if is_kernel { Subject::Kernel } else { Subject::Process(pid) };
        let answers = answers(&mut cursor, kernel, subject, &bytes);
        let mut longest = longest.borrow_mut();
        **longest = bodies(&answers).iter().map(String::len).max().unwrap_or_default().max(**longest);
        Ok(())
    });
    ran.unwrap();
    assert!(most > 500 && most <= 2 * PACKET_BYTES_MAX, "{most}");
    let mut cursor = cursor.into_inner();
    cursor.seek(Aim::Vtime(recorded.end_ns), &mut ()).unwrap();
    assert_eq!(cursor.digest(), digest, "gdb has changed the timeline");

    // The guest's list of processes leads out of memory. Nothing is known about the process then.
    cursor.seek(Aim::Vtime(middle_ns), &mut ()).unwrap();
    let select = format!("Hg{pid:x}");
    let questions = ["qfThreadInfo", &select, "g", &format!("m{guest_text},8"), "qXfer:auxv:read::0,100"]
        .map(str::to_owned);
    let honest = ask(&mut cursor, &questions);
    assert!(honest.iter().all(|answer| !answer.starts_with('E')), "{honest:?}");
    break_list(&cursor, kernel, task);
    let lied = ask(&mut cursor, &questions);
    assert_eq!(lied[2..], [REFUSED; 3], "{lied:?}");
    assert!(lied[0].ends_with(&format!("{pid:x}")) || lied[0].ends_with(&format!("{pid:02x}")), "{lied:?}");
    let stepped = ask(&mut cursor, &["vCont;c".to_owned()]);
    assert!(!stepped.iter().any(|answer| answer.starts_with('W')), "the process has not ended: {stepped:?}");
}

/// Returns the address of the first page that is in the memory of a process and whose next page is, too.
fn text_of(cursor: &Cursor<'_>, kernel: &Kernel, pid: u32) -> u64 {
    let ram = MachineRam(cursor.timeline().machine(DB));
    let guest = Guest::new(kernel, &ram).unwrap();
    let processes = guest.processes().unwrap();
    let process = processes.iter().find(|process| process.pid == pid).unwrap();
    let memory = guest.memory_of_process(process).unwrap().unwrap();
    let mappings = guest.mappings(process).unwrap();
    let mut pages = mappings.iter().flat_map(|mapping| (mapping.start..mapping.end).step_by(4096));
    pages.find(|page| memory.read_some(*page, &mut [0; 4096]) == 4096).unwrap()
}

/// Makes the list of processes lead out of memory behind a process, as a hostile guest can.
fn break_list(cursor: &Cursor<'_>, kernel: &Kernel, task: u64) {
    let machine = cursor.timeline().machine(DB);
    let ram = MachineRam(machine);
    let tasks = task + inspection::kernel().types.field("task_struct.tasks").unwrap().offset();
    let physical = Guest::new(kernel, &ram).unwrap().memory().physical(tasks).unwrap();
    machine.ram().memory().write_slice(&[0x5a; 16], GuestAddress(physical)).unwrap();
}
