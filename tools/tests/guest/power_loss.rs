//! Crash consistency of a program that nobody here wrote, in the short: the long form is an example.

use std::path::Path;

use everett_explorer::plan::draw::draw;
use everett_tools::identity::Identity;
use everett_tools::interrupt::Interrupt;
use everett_tools::moments::{self, Shelf, Wanted};
use everett_tools::session::drive::{Ended, drive};
use everett_tools::session::event::{Event, What};
use everett_tools::session::launch::Launcher;
use everett_tools::ui::Ui;
use everett_tools::world_file;
use everett_vmm::streams::Streams;

use crate::support::{Keeper, MS, cold_launcher, findings, image, under};

/// About a dozen losses of power.
const DURATION_NS: u64 = 12_000 * MS;

/// Run a world of `examples/sqlite-power-loss` on the test world's image under a drawn plan.
fn run(file: &str) -> Vec<Event> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/sqlite-power-loss");
    let world = world_file::load(&folder.join(file)).expect("an example");
    let plan = draw(&world.faults, &world.names(), DURATION_NS, &mut Streams::new(1, "plan"));
    let launcher = Launcher { world, ..cold_launcher(Default::default()) };
    let folder = tempfile::tempdir().expect("a folder");
    let identity = Identity::new(&launcher.world, std::slice::from_ref(&image().digest));
    let shelf = Shelf::new(folder.path(), &identity, &identity);
    let booted = moments::get(&Ui::new(false), &launcher, &shelf, Wanted::Both, &Interrupt::default());
    let booted = booted.expect("it boots");
    let launcher = Launcher { from: Some(booted.ready), ..launcher };
    let launcher = under(&launcher, &booted.restart.expect("restart points"), &plan.write());
    let mut keeper = Keeper::default();
    assert_eq!(drive(&mut launcher.start(1).unwrap(), DURATION_NS, &mut keeper).unwrap(), Ended::Whole);
    keeper.0
}

#[test]
fn sqlite_keeps_what_it_acknowledged_unless_it_is_told_not_to_flush() {
    let events = run("world.toml");
    let losses =
        events.iter().filter_map(|event| if let What::Loss(loss) = &event.what { Some(loss) } else { None });
    let (all, of_data) =
        losses.fold((0, 0), |(all, of_data), loss| (all + 1, of_data + u32::from(loss.lost_anything())));
    assert!(all >= 6 && of_data * 10 >= all * 8, "{all} losses of power, {of_data} with unflushed sectors");
    assert_eq!(findings(&events), Vec::<&str>::new());
    let events = run("unsafe.toml");
    assert!(!findings(&events).is_empty(), "without flushes something is lost");
}
