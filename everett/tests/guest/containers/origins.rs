//! `everett who` names the origin of bytes across nodes: from memory over the wire to the program that computed them.

use std::path::Path;

use everett_explorer::search::ForkPoint;
use everett_session::debug::origin::limits::Bounds;
use everett_session::debug::origin::step::{Happened, Step};
use everett_session::debug::origin::{FileBytes, Memory, MessageBytes, Source};
use everett_session::machines::EngineOptions;
use serde_json::Value;

use super::{explored, launcher_of};
use crate::cursor::Recorded;
use crate::explore::{explore, setting_of};
use crate::origins::Asker;
use crate::support::{everett, shown};

/// A program that computes values on n1, passes them on through n2, which also writes them into a file, and receives them
/// on n3.
const SOURCE: &str = r#"#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
long made, passed, got;
static struct sockaddr_in address(const char *ip) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7000)};
    at.sin_addr.s_addr = inet_addr(ip);
    return at;
}
static int connected(const char *ip) {
    struct sockaddr_in at = address(ip);
    for (;;) {
        int out = socket(AF_INET, SOCK_STREAM, 0);
        if (!connect(out, (void *)&at, sizeof at))
            return out;
        close(out);
        usleep(10000);
    }
}
static int accepted(void) {
    struct sockaddr_in at = address("0.0.0.0");
    int in = socket(AF_INET, SOCK_STREAM, 0);
    bind(in, (void *)&at, sizeof at);
    listen(in, 1);
    return accept(in, 0, 0);
}
static void make(long day) {
    made = day * 7;
}
static void send_on(int out, long *value) {
    write(out, value, sizeof *value);
}
static void keep(int file, long *value) {
    pwrite(file, value, sizeof *value, 16);
}
static void receive(int in, long *value) {
    read(in, value, sizeof *value);
}
static long *mapped(long address) {
    int file = open("/dev/shm/both", O_RDWR | O_CREAT, 0600);
    ftruncate(file, 4096);
    return mmap((void *)address, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file, 0);
}
static void share(long *to) {
    *to = got;
}
int main(void) {
    char name[16] = "";
    gethostname(name, sizeof name);
    if (!strcmp(name, "n1")) {
        int out = connected("10.0.0.2");
        sleep(1);
        for (long day = 1;; day++) {
            make(day);
            send_on(out, &made);
            usleep(20000);
        }
    }
    if (!strcmp(name, "n2")) {
        int in = accepted(), out = connected("10.0.0.3");
        int file = open("/dev/shm/kept", O_RDWR | O_CREAT, 0600);
        for (;;) {
            receive(in, &passed);
            keep(file, &passed);
            send_on(out, &passed);
        }
    }
    long *one = mapped(0x10000000);
    mapped(0x20000000);
    for (int in = accepted();;) {
        receive(in, &got);
        share(one);
        if (got == 77)
            puts("the value is 77"), fflush(stdout), sleep(1000);
    }
}
"#;

const WORLD: &str = r#"
[[node]]
name = "n1"
memory = "96M"
image = "layout"
[[node]]
name = "n2"
memory = "96M"
image = "layout"
[[node]]
name = "n3"
memory = "96M"
image = "layout"
[[property]]
name = "value"
never = "the value is 77"
[faults]
only = []
[explore]
segment = "2s"
horizon = "2s"
"#;

/// Returns the steps that `everett who` prints.
fn steps(arguments: &[&str]) -> Vec<Value> {
    let output = everett(&[&["who", "--json"], arguments].concat());
    assert!(output.status.success(), "{}", shown(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["kind"] == "who")
        .collect()
}

/// Returns a step in short: node, kind, and the innermost function of the program that has a frame. musl's system calls
/// have no unwind tables, so their callers have none.
fn short(step: &Value) -> String {
    let frames = step["thread"]["user"].as_array().cloned().unwrap_or_default();
    let own = frames.iter().find(|frame| frame["file"] == "/program");
    let function = own.and_then(|frame| frame["function"].as_str()).unwrap_or("-");
    let function = function.split('+').next().unwrap();
    let (node, kind) = (step["node"].as_str().unwrap(), step["step"].as_str().unwrap());
    format!("{node} {kind} {function}")
}

#[test]
fn the_origin_of_a_value_is_found_across_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let run = explored(folder.path(), SOURCE, WORLD, 1, 1);

    let received = steps(&[&run, "1", "--node", "n3", "--process", "program", "got"]);
    let shorts: Vec<String> = received.iter().map(short).collect();
    let way = [
        "n3 store main",
        "n2 message -",
        "n2 sent main",
        "n2 store main",
        "n1 message -",
        "n1 sent main",
        "n1 store make",
        "n1 computed make",
    ];
    assert_eq!(shorts.get(..way.len()), Some(&way.map(str::to_owned)[..]), "{received:#?}");
    let bytes = 77u64.to_le_bytes().map(|byte| format!("{byte:02x}")).concat();
    assert_eq!(
        (&received[0]["after"], &received[6]["after"]),
        (&Value::from(&*bytes), &Value::from(&*bytes))
    );
    assert_eq!((&received[1]["sender"], &received[2]["bytes"]), (&"n2".into(), &Value::from(&*bytes)));
    let line = &received[6]["thread"]["user"][0]["source"][0]["line"];
    assert_eq!(line, 32, "{:#?}", received[6]);
    let kernel = |n: usize| received[n]["thread"]["kernel"].to_string();
    assert!(kernel(0).contains("tcp_recvmsg") && kernel(2).contains("tcp_sendmsg"), "{received:#?}");

    // A file needs no process.
    let of_file = ["--node", "n2", "--process", "ended", "--depth", "0", "file:/dev/shm/kept@16+8"];
    let kept = steps(&[&[&run[..], "1"], &of_file[..]].concat());
    let shorts: Vec<String> = kept.iter().map(short).collect();
    let way = ["n2 written main", "n2 store main", "n1 message -", "n1 sent main", "n1 store make"];
    assert_eq!(shorts.get(..way.len()), Some(&way.map(str::to_owned)[..]), "{kept:#?}");

    let replayed = everett(&["replay", &run, "1"]);
    assert_eq!(replayed.status.code(), Some(1), "{}", shown(&replayed));

    let refused = |arguments: &[&str], expected: &str| {
        let output = everett(&[&["who", &run, "1"], arguments].concat());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), text.contains(expected)), (Some(2), true), "{text}");
    };
    refused(&["got"], "--node: name the node");
    refused(&["--node", "n3", "--process", "program", "nothing"], "no variable of this name");
    refused(&["message:99999999"], "no such message");
    searches_change_nothing(&folder.path().join("world.toml").display().to_string());
}

/// Asks about memory of several mappings, a file and a message, on three nodes. The asker compares the world's digest at
/// the branch's end after each search.
fn searches_change_nothing(world: &str) {
    let setting = setting_of(launcher_of(Path::new(world)), EngineOptions::default());
    let outcome = explore(&setting, 1, 1, 1 << 30, false);
    let path = outcome.tree.path(ForkPoint::After(0)).unwrap();
    let recorded = Recorded::of(setting, path);
    let mut asker = Asker::new(&recorded);
    let (root, _) = asker.program(2, "program", "got");
    // The page that was stored to at another address.
    let memory = Source::Memory(Memory { node: 2, root, address: 0x2000_0000, bytes: 8 });
    let file = Source::File(1, FileBytes { path: "/dev/shm/kept".to_owned(), offset: 16, bytes: 8 });
    let value = |text: &[u8]| {
        Source::Message(Some(1), MessageBytes::Payload { text: text.to_vec(), offset: 0, bytes: 8 })
    };
    let mut steps = |bounds, source: &Source| asker.ask(&mut (), bounds, source.clone());
    let mut way = |source: &Source, expected: &[&str]| {
        let steps = steps(Bounds::default(), source).unwrap();
        let shorts: Vec<String> = steps.iter().map(|step| short(&in_json(step))).collect();
        assert_eq!(shorts.get(..expected.len()).unwrap_or(&shorts), expected, "{steps:#?}");
        steps
    };
    let of_memory = way(&memory, &["2 store share", "2 store main", "1 message -", "1 sent main"]);
    way(&file, &["1 written main", "1 store main", "0 message -", "0 sent main", "0 store make"]);
    let of_message = way(&value(&77u64.to_le_bytes()), &["1 message -", "1 sent main", "1 store main"]);
    let Happened::Message { message, .. } = of_message[0].what else { panic!("{of_message:#?}") };
    let by_number = Source::Message(None, MessageBytes::Number { number: message, offset: 0, bytes: 8 });
    assert_eq!(way(&by_number, &[]), of_message);
    assert_eq!(way(&memory, &[]), of_memory, "the same question has another answer");
    let error = steps(Bounds::default(), &value(b"nobody sent this")).unwrap_err().to_string();
    assert!(error.starts_with("payload: no message with a TCP segment"), "{error}");
    // The chain ends if not all mappings of the page can be looked at.
    let few = Bounds { alias_pages: 1, ..Bounds::default() };
    let steps = steps(few, &memory).unwrap();
    let [Step { what: Happened::Unknown { because }, .. }] = &steps[..] else { panic!("{steps:#?}") };
    assert!(because.contains("more mappings than are looked at"), "{because}");
}

/// Returns a step as `--json` prints it, with its node's number.
fn in_json(step: &Step) -> Value {
    let mut json = serde_json::to_value(step).unwrap();
    json["node"] = step.node.to_string().into();
    json
}
