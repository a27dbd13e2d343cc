//! Tests of data disks: discards, sector sizes, damage, and a full disk.

use std::path::Path;

use everett_explorer::plan::draw::draw;
use everett_session::machines::EngineOptions;
use everett_session::run::launch::Launcher;
use everett_session::world::event::{Event, What};
use everett_streams::{Lineage, Owner, Seed, Streams};
use everett_world_file as world_file;

use crate::support::{MS, cold_launcher, findings, launcher_of, lines, ready, run_to_end, under};

/// World that writes and removes a file, discards unused blocks, and then writes zeroes to the whole disk.
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
    let (_, events) = run_to_end(&mut launcher.start(Seed::new(1)).unwrap(), 1_000 * MS);
    assert_eq!(findings(&events), Vec::<&str>::new());
    let said = lines(&events, "trim");
    let [trimmed, .., "zeroes"] = said[..] else { panic!("{said:?}") };
    assert!(trimmed.starts_with("/data: ") && trimmed.ends_with("bytes) trimmed"), "{trimmed}");
}

/// World that prints the block size of each file system and the sector size of its disk.
const SIZES: &str = r#"
[[node]]
name = "a"
memory = "128M"
disk = [
    { path = "/usual", size = "64M" },
    { path = "/small", size = "8M" },
    { path = "/old", size = "64M", sector = "512B" },
]
[[workload.driver]]
name = "sizes"
argv = ["sh", "-ec", '''
for path in /usual /small /old; do
    disk=$(awk -v path=$path '$2 == path { print $1 }' /proc/mounts)
    dumpe2fs -h $disk 2> /dev/null | grep -q has_journal
    echo "$path: blocks of $(stat -f -c %S $path), sectors of $(blockdev --getss $disk)"
done
''']
"#;

#[test]
fn blocks_have_4_kib_whatever_the_sectors_and_the_size() {
    let launcher = launcher_of(SIZES);
    let (_, events) = run_to_end(&mut launcher.start(Seed::new(1)).unwrap(), 500 * MS);
    assert_eq!(findings(&events), Vec::<&str>::new());
    assert_eq!(
        lines(&events, "sizes"),
        [
            "/usual: blocks of 4096, sectors of 4096",
            "/small: blocks of 4096, sectors of 4096",
            "/old: blocks of 4096, sectors of 512"
        ]
    );
}

/// World that overwrites a byte in the superblock of its data disk, bypassing the file system.
const SCRIBBLES: &str = r#"
[[node]]
name = "a"
memory = "96M"
disk = { path = "/data", size = "64M" }
[[workload.driver]]
name = "scribble"
argv = ["sh", "-ec", '''
disk=$(awk '$2 == "/data" { print $1 }' /proc/mounts)
printf X | dd of=$disk bs=1 seek=1076 conv=notrunc,fsync
''']
"#;

#[test]
fn a_file_system_that_the_kernel_refuses_is_a_finding_of_its_own() {
    let (launcher, points) = ready(launcher_of(SCRIBBLES));
    let plan = r#"{"at": "500ms", "for": "10ms", "fault": "power_loss", "node": "a"}"#;
    let launcher = under(&launcher, &points, plan);
    let (_, events) = run_to_end(&mut launcher.start(Seed::new(1)).unwrap(), 2_000 * MS);
    let found: Vec<(&str, &str)> = events.iter().filter_map(finding).collect();
    let [("file system damaged", text)] = found[..] else { panic!("{found:?}") };
    assert!(text.starts_with("the ext4 at /data cannot be mounted: Bad message"), "{text}");
    assert!(text.contains("; the kernel says: EXT4-fs (vd"), "{text}");
}

fn finding(event: &Event) -> Option<(&str, &str)> {
    match &event.what {
        What::Finding { property, text } => Some((property, text)),
        _ => None,
    }
}

/// Duration of the shortened run of `examples/small-disk`.
const SMALL_NS: u64 = 20_000 * MS;

#[test]
fn losses_of_power_leave_a_small_disk_mountable() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/small-disk");
    let world = world_file::load(&folder.join("world.toml")).expect("an example");
    let drawn = draw(
        &world.faults,
        &world.names(),
        SMALL_NS,
        &mut Streams::new(&Lineage::new(Seed::new(1)), Owner::Plan),
    );
    let launcher = Launcher { world, ..cold_launcher(EngineOptions::default()) };
    let (launcher, points) = ready(launcher);
    let launcher = under(&launcher, &points, &drawn.plan.write());
    let (_, events) = run_to_end(&mut launcher.start(Seed::new(1)).unwrap(), SMALL_NS);
    let losses = events.iter().filter(|event| matches!(event.what, What::Loss(_))).count();
    assert!(losses >= 20, "{losses}");
    let (mut last, mut starts) = (0, 0);
    for line in lines(&events, "writer") {
        match line.strip_prefix("begins at ") {
            None => last = line.parse().unwrap(),
            Some(at) => {
                let at: u32 = at.parse().unwrap();
                // A write in flight may also have reached the disk.
                assert!(
                    at == last || at == last + 1,
                    "{last} was flushed, and after the restart the disk had {at}"
                );
                starts += 1;
            }
        }
    }
    assert!(starts > 5 && last > 100, "the program started {starts} times and wrote {last} numbers");
    assert_eq!(findings(&events), Vec::<&str>::new());
}
