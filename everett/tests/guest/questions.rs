//! Observers of a timeline change nothing in it.

use everett_inspect::Kernel;
use everett_session::debug::cursor::{Aim, Stop};
use everett_session::debug::origin::step::Happened;
use everett_session::debug::origin::{Extent, Memory, Search, Source};
use everett_session::debug::questions::follow::{Span, follow};
use everett_session::debug::questions::syscalls::{Call, Calls};

use crate::cursor::Recorded;

/// Memory for the moments of a cursor, in bytes.
const BUDGET_BYTES: u64 = 512 << 20;

#[test]
fn a_timeline_is_the_recorded_one_while_its_system_calls_are_observed() {
    let recorded = Recorded::new();
    let file = std::fs::read(&recorded.setting.launcher.files.kernel).unwrap();
    let kernel = Kernel::new(&file).unwrap();
    let mut cursor = recorded.cursor(0);
    let nodes = (0..cursor.timeline().world().nodes().len()).collect();
    let span = Span { kernel: &kernel, nodes, since_ns: 0, until_ns: recorded.end_ns() };
    let mut calls: Vec<Call> = Vec::new();
    let mut found = |call| {
        calls.push(call);
        Ok(())
    };
    let mut observer = Calls::new(&|_| true, 64, &|| true, &mut found);
    follow(&mut cursor, &span, &mut observer).unwrap();
    observer.unfinished().unwrap();
    assert_eq!(cursor.digest(), recorded.digest());
    for node in 0..2 {
        assert!(calls.iter().filter(|call| call.node == node).count() > 100);
    }
    let ended = calls.iter().filter_map(|call| Some((call, call.end.as_ref()?.0)));
    assert!(ended.clone().all(|(call, end_ns)| call.begin_ns <= end_ns && end_ns <= recorded.end_ns()));
    a_search_for_an_origin_changes_nothing(&recorded, &kernel);
}

fn a_search_for_an_origin_changes_nothing(recorded: &Recorded, kernel: &Kernel) {
    let mut cursor = recorded.cursor(BUDGET_BYTES);
    cursor.seek(Aim::Vtime(recorded.end_ns()), &mut ()).unwrap();
    let address = kernel.address_of("jiffies_64").unwrap();
    let root = cursor.timeline().machine(0).cpu().cr3;
    let source = Source::Memory(Memory { node: 0, root, address, bytes: 8 });
    let extent = Extent { depth: 2, instructions: 256 };
    let steps = Search::new(&mut cursor, kernel, &[], extent, &mut ()).origins(source).unwrap();
    assert!(matches!(steps[0].what, Happened::Store { .. }), "{steps:#?}");
    assert_eq!(cursor.seek(Aim::Vtime(recorded.end_ns()), &mut ()).unwrap(), Stop::Reached);
    assert_eq!(cursor.digest(), recorded.digest(), "the search has changed the timeline");
}
