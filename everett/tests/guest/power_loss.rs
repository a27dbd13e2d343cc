//! Data after power losses: SQLite, in a shortened example, and files on XFS.

use std::path::Path;

use everett_explorer::plan::draw::draw;
use everett_host::interrupt::Interrupt;
use everett_remote_client::Online;
use everett_session::images;
use everett_session::machines::EngineOptions;
use everett_session::output::progress::Quiet;
use everett_session::run::launch::Launcher;
use everett_session::world::event::{Event, What};
use everett_streams::{Lineage, Owner, Seed, Streams};
use everett_world_file as world_file;

use crate::support::{
    MS, cold_launcher, findings, lines, ready, run_to_end, under, world_file as test_world,
};

/// Duration that has about a dozen power losses.
const DURATION_NS: u64 = 12_000 * MS;

/// Runs a world of `examples/sqlite-power-loss` on the test world's image, under a randomly drawn fault plan.
fn run(file: &str) -> Vec<Event> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/sqlite-power-loss");
    let world = world_file::load(&folder.join(file)).expect("an example");
    let mut streams = Streams::new(&Lineage::new(Seed::new(1)), Owner::Plan);
    let drawn = draw(&world.faults, &world.names(), DURATION_NS, &mut streams);
    let launcher = Launcher { world, ..cold_launcher(EngineOptions::default()) };
    let (launcher, points) = ready(launcher);
    let launcher = under(&launcher, &points, &drawn.plan.write());
    run_to_end(&mut launcher.start(Seed::new(1)).unwrap(), DURATION_NS).1
}

#[test]
fn sqlite_keeps_acknowledged_data_unless_it_does_not_flush() {
    let events = run("world.toml");
    let losses =
        events.iter().filter_map(|event| if let What::Loss(loss) = &event.what { Some(loss) } else { None });
    let (all, of_data) =
        losses.fold((0, 0), |(all, of_data), loss| (all + 1, of_data + u32::from(loss.lost_anything())));
    assert!(
        all >= 6 && of_data * 10 >= all * 8,
        "{all} power losses, of which {of_data} lost unflushed sectors"
    );
    assert_eq!(findings(&events), Vec::<&str>::new());
    let events = run("unsafe.toml");
    assert!(!findings(&events).is_empty(), "a program that does not flush must lose data");
}

#[test]
fn xfs_recovers_flushed_data() {
    let world = world_file::load(&test_world().with_file_name("xfs.toml")).expect("a world");
    let image = images::get(&Quiet, &world, &Online, &Interrupt::default()).expect("its image");
    let (launcher, points) =
        ready(Launcher { world, files: image.files, ..cold_launcher(EngineOptions::default()) });
    const PLAN: &str = r#"
{"at": "700ms", "for": "50ms", "fault": "power_loss", "node": "a"}
{"at": "3200ms", "for": "50ms", "fault": "power_loss", "node": "a"}
"#;
    let launcher = under(&launcher, &points, PLAN);
    let (_, events) = run_to_end(&mut launcher.start(Seed::new(1)).unwrap(), 5_600 * MS);
    let (mut last, mut begun) = (0, Vec::new());
    for line in lines(&events, "count") {
        match line.strip_prefix("begins at ") {
            None => last = line.parse().unwrap(),
            Some(at) => {
                let at: u32 = at.parse().unwrap();
                // A write in flight may also have reached the disk.
                assert!(
                    at == last || at == last + 1,
                    "{last} was flushed, and after the restart the disk had {at}"
                );
                begun.push(at);
            }
        }
    }
    assert_eq!(begun.len(), 3, "{begun:?}");
    assert!(begun.is_sorted_by(|a, b| a < b), "{begun:?}: nothing was written between two losses");
    assert_eq!(findings(&events), Vec::<&str>::new());
}
