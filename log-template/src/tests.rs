//! Tests with log lines of real programs, and with arbitrary lines.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const LINES: &[(&str, &str)] = &[
    // Redis and its sentinel.
    ("12:M 01 Jan 2026 00:00:00.000 * Ready to accept connections tcp", "Ready to accept connections tcp"),
    (
        "1:C 19 Dec 2025 10:11:12.345 # WARNING Memory overcommit must be enabled!",
        "warn: Memory overcommit must be enabled!",
    ),
    (
        "812:M 01 Jan 2026 00:00:04.120 * MASTER MODE enabled (user request from 'id=7 addr=10.0.0.3:51234')",
        "MASTER MODE enabled (user request from <str>)",
    ),
    ("812:S 01 Jan 2026 00:00:04.120 * Connecting to MASTER 10.0.0.1:6379", "Connecting to MASTER <addr>"),
    (
        "812:S 01 Jan 2026 00:00:05.002 * MASTER <-> REPLICA sync: Finished with success",
        "MASTER <-> REPLICA sync: Finished with success",
    ),
    (
        "812:M 01 Jan 2026 00:00:05.002 * Replication backlog created, my new replication IDs are '8c5d0a7d6f1e4b2a9c3d8e7f6a5b4c3d2e1f0a9b' and '0000000000000000000000000000000000000000'",
        "Replication backlog created, my new replication IDs are <str> and <str>",
    ),
    (
        "812:M 01 Jan 2026 00:00:06.000 * DB saved on disk in 0.002 seconds, 1.25 MB used",
        "DB saved on disk in <n> seconds, <n> MB used",
    ),
    (
        "99:X 01 Jan 2026 00:00:09.731 # +sdown master mymaster 10.0.0.1 6379",
        "warn: +sdown master mymaster <addr> <n>",
    ),
    (
        "99:X 01 Jan 2026 00:00:09.801 # +odown master mymaster 10.0.0.1 6379 #quorum 2/2",
        "warn: +odown master mymaster <addr> <n> #quorum <n>/<n>",
    ),
    (
        "99:X 01 Jan 2026 00:00:09.801 # +vote-for-leader 3f2a9c3d8e7f6a5b4c3d2e1f0a9b8c5d0a7d6f1e 1",
        "warn: +vote-for-leader <id> <n>",
    ),
    (
        "99:X 01 Jan 2026 00:00:10.002 * +slave slave 10.0.0.2:6379 10.0.0.2 6379 @ mymaster 10.0.0.1 6379",
        "+slave slave <addr> <addr> <n> @ mymaster <addr> <n>",
    ),
    (
        "99:X 01 Jan 2026 00:00:11.000 # +switch-master mymaster 10.0.0.1 6379 10.0.0.2 6379",
        "warn: +switch-master mymaster <addr> <n> <addr> <n>",
    ),
    // PostgreSQL.
    (
        "2026-01-01 00:00:00.123 UTC [123] LOG:  database system is ready to accept connections",
        "database system is ready to accept connections",
    ),
    (
        "2026-01-01 00:00:00.123 UTC [27] LOG:  database system was shut down at 2025-12-31 23:59:58 UTC",
        "database system was shut down at <time>",
    ),
    (
        "2026-01-01 00:00:00.123 UTC [1] LOG:  listening on IPv4 address \"0.0.0.0\", port 5432",
        "listening on IPv<n> address <str>, port <n>",
    ),
    (
        "2026-01-01 00:00:00.123 UTC [51] ERROR:  duplicate key value violates unique constraint \"accounts_pkey\"",
        "error: duplicate key value violates unique constraint <str>",
    ),
    (
        "2026-01-01 00:00:00.123 UTC [51] FATAL:  the database system is starting up",
        "fatal: the database system is starting up",
    ),
    ("2026-01-01 00:00:00.123 UTC [31] LOG:  redo starts at 0/1528B78", "redo starts at <n>/<id>"),
    (
        "2026-01-01 00:00:00.123 UTC [31] LOG:  checkpoint complete: wrote 44 buffers (0.3%); write=0.013 s, sync=0.008 s",
        "checkpoint complete: wrote <n> buffers (<n>%); write=<n> s, sync=<n> s",
    ),
    // etcd, as JSON and in its older format.
    (
        r#"{"level":"info","ts":"2026-01-01T00:00:00.000Z","logger":"raft","caller":"raft/raft.go:865","msg":"8e9e05c52164694d became leader at term 2"}"#,
        "<id> became leader at term <n>",
    ),
    (
        r#"{"level":"warn","ts":"2026-01-01T00:00:00.000Z","caller":"rafthttp/peer.go:267","msg":"dropped internal Raft message since sending buffer is full","local-member-id":"8e9e"}"#,
        "warn: dropped internal Raft message since sending buffer is full",
    ),
    (
        r#"{"level":"fatal","msg":"failed to purge wal file","error":"open /var/lib/etcd/member/wal: no such file"}"#,
        "fatal: failed to purge wal file",
    ),
    (
        "2026-01-01 00:00:00.000000 I | raft: 8e9e05c52164694d became follower at term 1",
        "raft: <id> became follower at term <n>",
    ),
    (
        "2026-01-01 00:00:00.000000 W | etcdserver: read-only range request \"key:\\\"a\\\" \" took too long (134.5ms) to execute",
        "warn: etcdserver: read-only range request <str> took too long (<time>) to execute",
    ),
    // The Linux kernel, on the console and through syslog.
    (
        "[    0.000000] Linux version 6.12.3 (build@host) (gcc 14.2.0) #1 SMP",
        "Linux version <n> (build@host) (gcc <n>) #<n> SMP",
    ),
    (
        "[    0.004000][    T0] BIOS-e820: [mem 0x0000000000000000-0x000000000009fbff] usable",
        "BIOS-e<n>: [mem <id>-<id>] usable",
    ),
    (
        "[   12.345678] EXT4-fs (vdb): mounted filesystem 6d1a3c5e-77aa-4b7e-9d3f-1f2e3d4c5b6a r/w with ordered data mode",
        "EXT<n>-fs (vdb): mounted filesystem <id> r/w with ordered data mode",
    ),
    (
        "[   99.100000] Out of memory: Killed process 812 (redis-server) total-vm:123456kB, anon-rss:9876kB",
        "Out of memory: Killed process <n> (redis-server) total-vm:<n>, anon-rss:<n>",
    ),
    ("<6>[    1.0] virtio_net virtio0 eth0: 52:54:00:12:34:56", "virtio_net virtio<n> eth<n>: <addr>"),
    (
        "<34>Jan  1 00:00:00 db1 kernel: TCP: request_sock_TCP: Possible SYN flooding on port 6379.",
        "TCP: request_sock_TCP: Possible SYN flooding on port <n>.",
    ),
    // systemd.
    (
        "[    3.141592] systemd[1]: Started redis-server.service - Advanced key-value store.",
        "Started redis-server.service - Advanced key-value store.",
    ),
    (
        "Jan  1 00:00:01 n1 systemd[1]: redis-server.service: Main process exited, code=killed, status=9/KILL",
        "redis-server.service: Main process exited, code=killed, status=<n>/KILL",
    ),
    (
        "systemd[1]: session-3.scope: Consumed 1min 2.345s CPU time.",
        "session-<n>.scope: Consumed <time> <time> CPU time.",
    ),
    // Python.
    ("Traceback (most recent call last):", "Traceback (most recent call last):"),
    ("  File \"/srv/app/main.py\", line 42, in <module>", "File <str>, line <n>, in <module>"),
    (
        "ValueError: invalid literal for int() with base 10: 'abc'",
        "ValueError: invalid literal for int() with base <n>: <str>",
    ),
    (
        "ConnectionRefusedError: [Errno 111] Connect call failed ('10.0.0.1', 6379)",
        "ConnectionRefusedError: [Errno <n>] Connect call failed (<str>, <n>)",
    ),
    ("ERROR:root:can't reach 10.0.0.1, that's all", "error: root:can't reach <addr>, that's all"),
    ("2026-01-01 00:00:00,123 WARNING retrying in 3s", "warn: retrying in <time>"),
    // Go, its panics, klog, logfmt, and other formats.
    (
        "2026/01/01 00:00:00 http: TLS handshake error from 10.0.0.7:51234: EOF",
        "http: TLS handshake error from <addr>: EOF",
    ),
    (
        "panic: runtime error: index out of range [5] with length 3",
        "fatal: runtime error: index out of range [<n>] with length <n>",
    ),
    ("\t/src/main.go:17 +0x1b", "<path>:<n> +<id>"),
    (
        "E0102 15:04:05.000000      12 reflector.go:138] Failed to watch *v1.Pod",
        "error: Failed to watch *v<n>.Pod",
    ),
    (
        "time=\"2026-01-01T00:00:00Z\" level=warning msg=\"peer [::1]:2380 \\\"b\\\" left\" id=7",
        "warn: peer [<addr>]:<n> <str> left",
    ),
    ("level=info msg=\"took 1m3.5s for 10MiB\"", "took <time> for <n>"),
    (
        "2026-01-01T00:00:00.5+01:00 [error] upstream fe80::1%eth0 and 2001:db8:0:0:0:0:0:1 gone",
        "error: upstream <addr>%eth<n> and <addr> gone",
    ),
    (
        "GET http://n1:8080/a/b?c=1 at 12:30:45, std::io and /var/lib/x.",
        "GET <path> at <time>, std::io and <path>.",
    ),
    ("\u{1b}[1;31mred\u{1b}[0m  text\0 here", "red text here"),
    ("{\"msg\":\" y://level=\\\"", "{<str>:\" <path>\\\""),
    ("info:/level=", "info:<path>="),
    ("", ""),
    ("info:", ""),
    ("ERROR:", "error:"),
    ("log://x is a scheme, error::code a path", "<path> is a scheme, error::code a path"),
];

#[test]
fn real_lines_have_these_templates() {
    let wrong: Vec<(String, &str)> = LINES
        .iter()
        .flat_map(|(line, expected)| [(template(line), *expected), (template(expected), *expected)])
        .filter(|(found, expected)| found != expected)
        .collect();
    assert!(wrong.is_empty(), "found and expected: {wrong:#?}");
}

/// Lines that differ only in numbers have the same template. Lines that differ in words have different templates.
#[test]
fn words_count_and_numbers_do_not() {
    let all: BTreeSet<String> = LINES.iter().map(|(line, _)| template(line)).collect();
    let expected: BTreeSet<&str> = LINES.iter().map(|(_, expected)| *expected).collect();
    assert_eq!(all.len(), expected.len());
    for (line, expected) in LINES {
        let other: String = line.chars().map(|c| if c == '7' { '8' } else { c }).collect();
        assert_eq!(template(&other), *expected, "{line}");
    }
}

#[test]
fn long_lines_are_cut() {
    let long = template(&"word ".repeat(TEMPLATE_LINE_BYTES_MAX));
    assert_eq!((long.len(), long.ends_with('…')), (TEMPLATE_BYTES_MAX, true));
    // Bytes beyond the bound of a line are not read.
    let (a, b) = (" ".repeat(TEMPLATE_LINE_BYTES_MAX) + "a", " ".repeat(TEMPLATE_LINE_BYTES_MAX - 1) + "b");
    assert_eq!((template(&a).as_str(), template(&b).as_str()), ("", "b"));
}

/// On these lines, a scanner without bounds would start again at each position. The test would then take hours.
#[test]
fn hostile_lines_take_linear_time() {
    let parts = [
        "\"",
        "'",
        "'a",
        "\"\\",
        "/",
        "/-",
        "<",
        "info: ",
        "[1]",
        "{\"msg\":\"",
        "1.",
        "a:",
        "1:",
        "level=info msg=",
        "\\",
        "1s",
        "1.1s",
        "1s.",
        "a",
        "1",
        "1a",
        "00:00:",
        "1-",
        "2026-01-01",
        "http://",
        "\u{1b}[",
        "Jan  1 00:00:00 ",
    ];
    for part in parts {
        for end in ["", "x", "\"", "1x"] {
            let line = part.repeat((2 << 20) / part.len()) + end;
            let cleaned = clean(&line);
            let stripped = prefix::strip(&cleaned);
            assert!(record::message(stripped.rest).is_none_or(|(_, message)| message.len() < line.len()));
            let mut out = String::new();
            mask::mask(&cleaned, &mut out);
            assert!(!out.bytes().any(|byte| byte.is_ascii_digit()));
        }
    }
}

/// Generates lines from pieces, so that special cases occur together.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "\"",
        "'",
        "\\",
        "/",
        "<",
        ">",
        "<n>",
        "<str>",
        "<path>",
        "<time>",
        "[",
        "]",
        "{",
        "}",
        ":",
        "::",
        "://",
        "-",
        ".",
        ",",
        " ",
        "  ",
        "=",
        "\n",
        "\u{1b}[3",
        "µs",
        "ä",
        "…",
        "level=",
        "msg=",
        "time=",
        "info",
        "ERROR",
        "warn",
        "http",
        "0x",
        "12",
        "7",
        "3ms",
        "10.0.0.1",
        "::1",
        "2026-01-01",
        "00:00:00",
        "Jan  1",
        "Jan",
        "12:M ",
        "I0102",
        "* ",
        "# ",
        "W | ",
        "abc",
        "deadbeef",
        "file",
        "{\"msg\":\"",
        "\"}",
        "6d1a3c5e-77aa-4b7e-9d3f-1f2e3d4c5b6a",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Checks that the template of a line is bounded and has no digits, and that a second call of [`template`] does not
/// change it.
fn sound(line: &str) -> Result<(), TestCaseError> {
    let once = template(line);
    prop_assert_eq!(template(&once), once.clone(), "the template of {:?} is not its own template", line);
    prop_assert!(once.len() <= TEMPLATE_BYTES_MAX);
    prop_assert!(
        !once.bytes().any(|byte| byte.is_ascii_digit()),
        "the template {:?} of {:?} has a digit",
        once,
        line
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn the_template_of_a_template_is_itself(line in pieces()) {
        sound(&line)?;
    }

    #[test]
    fn the_template_of_a_cut_template_is_itself(line in pieces(), more in pieces(), length in 100usize..170) {
        sound(&format!("{}{line}{more}", "x".repeat(length)))?;
        sound(&format!("{line} {}{more}", "y".repeat(length)))?;
    }

    #[test]
    fn the_template_of_any_bytes_is_sound(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        sound(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn the_template_of_any_text_is_sound(line in "\\PC{0,80}") {
        sound(&line)?;
    }
}
