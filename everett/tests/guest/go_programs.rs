//! Stacks and probes of a Go program without symbols: etcd of `examples/etcd-single`, as Debian packages it.

use std::path::Path;

use crate::support::{everett, explored, shown};

#[test]
fn functions_and_lines_of_a_stripped_go_program_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let world = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/etcd-single/world.toml");
    let run = explored(&world, folder.path(), 1, 0);
    let text = |arguments: &[&str]| {
        let output = everett(arguments);
        assert!(output.status.success(), "{}", shown(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let stacks = text(&["stack", &run, "b0", "--process", "etcd"]);
    // Threads of the runtime wait for work, or for time to pass. Their stacks lead to where they began.
    for frame in ["runtime.futex+", "runtime.findRunnable+", "runtime.sysmon+", "runtime.mstart+0x5 "] {
        let line =
            stacks.lines().find(|line| line.contains(frame)).unwrap_or_else(|| panic!("{frame}: {stacks}"));
        assert!(line.contains(" at runtime/") || frame.starts_with("runtime.findRunnable"), "{line}");
    }
    let sysmon = stacks.split_once("runtime.sysmon+").unwrap().1;
    let begins: Vec<&str> = sysmon.lines().take(4).collect();
    assert!(begins[1].contains("runtime.mstart1+") && begins[3].contains("runtime.mstart+0x5"), "{begins:?}");
    let hits = text(&["print", &run, "etcd:runtime.findRunnable \"%d\" 1", "--count"]);
    let count = hits.lines().find_map(|line| line.strip_prefix("etcd:runtime.findRunnable: "));
    let count = count.and_then(|text| text.split(' ').next()?.replace(',', "").parse::<u64>().ok());
    assert!(count.is_some_and(|count| count > 50), "{hits}");
}
