//! Data disks as guests use them, beyond reading and writing.

use crate::support::{MS, findings, launcher_of, lines, told};

/// Fills a disk, gives back what it does not use any more, and then all of it.
const WORLD: &str = r#"
[[node]]
name = "a"
memory = "96M"
disk = { path = "/data", size = "16M" }
[[workload.driver]]
name = "trim"
argv = ["sh", "-ec", '''
disk=$(awk '$2 == "/data" { print $1 }' /proc/mounts)
head -c 4000000 /dev/urandom > /data/x
sync
rm /data/x
sync
fstrim -v /data
python3 -c 'import ctypes; exit(ctypes.CDLL(None).umount2(b"/data", 0))'
blkdiscard -f -z $disk
cmp -n 16777216 $disk /dev/zero && echo zeroes
''']
"#;

#[test]
fn a_guest_discards_blocks_and_writes_zeroes() {
    let launcher = launcher_of(WORLD);
    let (_, events) = told(&mut launcher.start(1).unwrap(), 1_000 * MS);
    assert_eq!(findings(&events), Vec::<&str>::new());
    let said = lines(&events, "trim");
    let [trimmed, .., "zeroes"] = said[..] else { panic!("{said:?}") };
    assert!(trimmed.starts_with("/data: ") && trimmed.ends_with("bytes) trimmed"), "{trimmed}");
}
