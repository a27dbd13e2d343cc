//! Tests of the report's page in a real browser. The tests download headless Chromium from Debian and axe-core from
//! npm.
//!
//! * `access`: accessibility
//! * `diagrams`: space-time diagrams and charts
//! * `forms`: the page on paper, in dark mode, in a narrow window, and without JavaScript
//! * `live`: the page of a running exploration, which `everett serve` updates
//! * `logs`: logs of findings and branches
//! * `map`: the interactive map
//! * `quiet`: the page makes no requests, prints nothing and throws no exceptions
//! * `sample`: makes the run whose page the tests open
//! * `search`: search over the texts

#[path = "../../../vmm/tests/kvm/trials.rs"]
mod trials;

mod access;
mod diagrams;
mod forms;
mod live;
mod logs;
mod map;
mod quiet;
mod sample;
mod search;

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::Arguments;

use trials::{each_test_is_listed, trial};

fn no_test_is_left_out() {
    each_test_is_listed(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page"));
}

fn main() -> ExitCode {
    let trials = vec![
        trial(quiet::a_page_requests_nothing_and_reports_no_problem),
        trial(quiet::hostile_texts_are_inert),
        trial(map::it_shows_filters_and_finds_branches),
        trial(map::keys_go_from_branch_to_branch),
        trial(diagrams::forty_messages_are_arrows),
        trial(diagrams::four_thousand_messages_are_readable),
        trial(search::texts_are_found_with_the_keyboard),
        trial(search::the_page_says_what_is_interim_and_what_was_spent),
        trial(logs::branches_on_recorded_timelines_show_their_logs),
        trial(logs::a_branch_without_a_finding_shows_its_own_lines),
        trial(logs::all_lines_can_be_shown),
        trial(forms::it_prints_with_a_static_map),
        trial(forms::it_is_dark_where_the_reader_wants_it),
        trial(forms::it_fits_a_narrow_window),
        trial(forms::it_is_complete_without_its_script),
        trial(live::a_served_page_grows_and_the_reader_stays_where_they_are),
        trial(live::a_page_that_scrolls_is_left_alone),
        trial(live::trouble_is_said_and_updates_can_be_paused),
        trial(access::axe_finds_nothing_serious),
        trial(no_test_is_left_out),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
