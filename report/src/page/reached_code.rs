//! Functions that the exploration reached, and the code that only failing branches reached.

use everett_explorer::reached_code::{FailingPlace, Function, KERNEL, Program};
use maud::{Markup, html};

use super::text::{code as code_text, count, counted, foreign};
use crate::data::{Data, FailingCode, ReachedCode};
use crate::reached_code::{function, function_of};

/// Maximum number of programs that are shown.
const PROGRAMS_SHOWN_MAX: usize = 40;
/// Maximum number of functions in the list of a program.
const FUNCTIONS_SHOWN_MAX: usize = 100;
/// Maximum number of functions in the table of functions that only some branches reached.
const ROWS_SHOWN_MAX: usize = 600;
/// Maximum number of places that are shown unfolded for a finding.
const PLACES_SHOWN_MAX: usize = 12;

pub(super) fn part(data: &Data) -> Markup {
    html! {
        h3 #functions { "Functions of programs" }
        @match &data.reached_code {
            None => { p.dim { "No functions were recorded for this run. " code { "everett coverage RUN" } " replays the branches and records them." } }
            Some(code) => { (reached(code)) }
        }
    }
}

fn reached(code: &ReachedCode) -> Markup {
    let shown = code.programs.len().min(PROGRAMS_SHOWN_MAX);
    html! {
        p.dim { (foreign(&code.sentence)) " A branch reaches what its timeline executes after the root moment." }
        @if code.programs.is_empty() { p { "No program was executed." } }
        @else {
            div.scroll role="region" aria-label="Functions reached, by program" tabindex="0" {
                table {
                    thead { tr { th scope="col" { "Program" } th.number scope="col" { "Reached" } th.number scope="col" { "Of all" } th.number scope="col" { "On some branches" } th scope="col" { "Nodes" } th scope="col" { "Functions" } } }
                    tbody { @for program in &code.programs[..shown] { (program_row(code, program)) } }
                }
            }
            @if code.programs_count > shown as u64 { p.dim { (counted(code.programs_count - shown as u64, "more program is", "more programs are")) " in the data or were left out." } }
            (some_branches(code))
        }
    }
}

/// True if some replayed branch did not reach a function.
fn is_on_some(code: &ReachedCode, function: &Function) -> bool {
    function.branches < code.branches
}

fn program_row(code: &ReachedCode, program: &Program) -> Markup {
    let some = program.functions.iter().filter(|function| is_on_some(code, function)).count() as u64;
    let cut = program.functions.len() as u64 == some && program.reached > some;
    let listed = program.functions.len().min(FUNCTIONS_SHOWN_MAX);
    html! {
        tr {
            th scope="row" { (code_text(&program.path)) }
            td.number { (count(program.reached)) }
            td.number { (count(program.functions_all)) }
            td.number { @if cut { "≥ " } (count(some)) }
            td { (foreign(&program.nodes.join(", "))) }
            td {
                @if listed == 0 { span.dim { "not listed" } }
                @else {
                    details {
                        summary { (counted(listed as u64, "function", "functions")) @if program.reached > listed as u64 { " of " (count(program.reached)) } }
                        ul.plain { @for one in &program.functions[..listed] { li { (code_text(&function(one))) @if let Some(line) = &one.line { " " span.dim { (foreign(line)) } } } } }
                    }
                }
            }
        }
    }
}

/// Returns the table of functions that only some branches reached, in ascending order of their branches. Functions of
/// programs come before those of the kernel.
fn some_branches(code: &ReachedCode) -> Markup {
    let mut rows: Vec<(&str, &Function)> = Vec::new();
    for program in &code.programs {
        let functions = program.functions.iter().filter(|one| is_on_some(code, one));
        rows.extend(functions.map(|one| (program.path.as_str(), one)));
    }
    rows.sort_by_key(|(path, one)| (*path == KERNEL, one.branches, *path, one.address));
    let all = rows.len() as u64;
    rows.truncate(ROWS_SHOWN_MAX);
    html! {
        @if !rows.is_empty() {
            h3 #functions-some-title { "Functions that only some branches reached" }
            p.dim {
                "The rarest come first. A branch can also miss a function because an interrupt came in between."
                @if all > rows.len() as u64 { " The first " (rows.len()) " of " (count(all)) " are shown." }
            }
            div.filter { label { "Filter functions " input type="search" data-filter="functions-some" autocomplete="off"; } }
            div.logs.functions role="region" aria-labelledby="functions-some-title" tabindex="0" {
                table #functions-some {
                    thead { tr { th scope="col" { "Branches" } th scope="col" { "First" } th scope="col" { "Function" } th scope="col" { "Line" } th scope="col" { "Program" } } }
                    tbody {
                        @for (program, one) in &rows {
                            tr {
                                td { (count(one.branches)) }
                                td { a.branch href="#map" data-branch=(one.first) { "b" (one.first) } }
                                th scope="row" { (code_text(&function(one))) @if one.only_failing { " " span.fail { "only failing" } } }
                                td { @if let Some(line) = &one.line { (code_text(line)) } @else { span.dim { "unknown" } } }
                                td { (code_text(program)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the part of a finding with the code that only failing branches reached.
pub(super) fn of_finding(code: Option<&FailingCode>) -> Markup {
    html! {
        @if let Some(code) = code {
            h4 { "Code that only failing branches reached" span.dim { " " (counted(code.branches, "branch", "branches")) " of this finding" } }
            p { (foreign(&code.sentence)) }
            @let (shown, folded) = code.places.split_at(code.places.len().min(PLACES_SHOWN_MAX));
            @if !shown.is_empty() { (places(shown, code.branches, "Code that only failing branches reached")) }
            @if !folded.is_empty() {
                details { summary { (folded.len()) " more" } (places(folded, code.branches, "More code that only failing branches reached")) }
            }
        }
    }
}

fn places(places: &[FailingPlace], branches: u64, name: &str) -> Markup {
    html! {
        div.scroll role="region" aria-label=(name) tabindex="0" {
            table {
                thead { tr { th scope="col" { "Function" } th scope="col" { "Line" } th scope="col" { "Program" } th.number scope="col" { "Branches" } } }
                tbody {
                    @for place in places {
                        tr {
                            th scope="row" {
                                (code_text(&function_of(place)))
                                @if let Some(inlined) = &place.inlined { span.dim { " with " } (code_text(inlined)) span.dim { " inlined" } }
                                @if place.whole_function { span.dim { " the whole function" } }
                            }
                            td { @if let Some(line) = &place.line { (code_text(line)) } @else { span.dim { "unknown" } } }
                            td { (code_text(&place.program)) }
                            td.number { (count(place.branches)) " of " (count(branches)) }
                        }
                    }
                }
            }
        }
    }
}
