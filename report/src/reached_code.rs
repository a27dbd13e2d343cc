//! Describes in words the functions and source lines that an exploration reached.

use everett_explorer::reached_code::{FailingPlace, FindingCode, Function, Program, ReachedCode, ReplaysEnd};

use crate::exploration::figures::{count, counted};

/// Returns how many branches were replayed, as a sentence.
#[must_use]
pub fn sentence(code: &ReachedCode) -> String {
    let replayed = match code.branches == code.branches_all {
        true => format!("All {} were", counted(code.branches, "branch", "branches")),
        false => {
            format!("{} of {} were", count(code.branches), counted(code.branches_all, "branch", "branches"))
        }
    };
    let why = match code.why {
        ReplaysEnd::Done => "",
        ReplaysEnd::Budget => " before the time budget ran out",
        ReplaysEnd::Interrupted => " before the command was interrupted",
    };
    let passing = match code.passing {
        0 => "each shows a finding".to_owned(),
        1 => "1 shows no finding".to_owned(),
        passing => format!("{} show no finding", count(passing)),
    };
    format!("{replayed} replayed{why}; {passing}.")
}

/// Returns how many functions of a program were reached.
#[must_use]
pub fn program(program: &Program) -> String {
    let Program { path, reached, functions_all, .. } = program;
    format!("{} of {} functions of {path}", count(*reached), count(*functions_all))
}

/// Returns the name of a function, or its address in the program's file.
#[must_use]
pub fn function(function: &Function) -> String {
    function.name.clone().unwrap_or_else(|| unnamed(function.address))
}

/// Returns how much code only branches with this finding or another one reached, as a sentence.
#[must_use]
pub fn finding(finding: &FindingCode) -> String {
    let FindingCode { id, branches, places_count, .. } = finding;
    let branches = counted(*branches, "branch", "branches");
    match places_count {
        0 => format!("Finding {id}, on {branches}: no code was reached only by branches with a finding."),
        _ => format!(
            "Finding {id}, on {branches}: {} that no branch without a finding reached.",
            counted(*places_count, "place of code", "places of code")
        ),
    }
}

/// Returns a line about code that only failing branches reached. `branches` is the number of branches with the finding.
#[must_use]
pub fn place(place: &FailingPlace, branches: u64) -> String {
    let FailingPlace { program, inlined, line, whole_function, .. } = place;
    let inlined = inlined.as_ref().map(|name| format!(", {name} (inlined)")).unwrap_or_default();
    let line = line.as_ref().map(|line| format!(" at {line}")).unwrap_or_default();
    let part = if *whole_function { "" } else { "part of " };
    let reached = format!("{} of {}", count(place.branches), counted(branches, "branch", "branches"));
    format!("{part}{}{inlined}{line} in {program}, on {reached}", function_of(place))
}

/// Returns the function of a place that only failing branches reached, or the place's address.
#[must_use]
pub fn function_of(place: &FailingPlace) -> String {
    match (&place.function, place.whole_function) {
        (Some(name), true) => name.clone(),
        (None, true) => unnamed(place.address),
        (Some(name), false) if place.line.is_none() => format!("{name} at {:#x}", place.address),
        (Some(name), false) => name.clone(),
        (None, false) => format!("code at {:#x}", place.address),
    }
}

fn unnamed(address: u64) -> String {
    format!("function at {address:#x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing() -> FailingPlace {
        FailingPlace {
            program: "/p".to_owned(),
            function: Some("main".to_owned()),
            inlined: Some("corrupt".to_owned()),
            address: 0x1234,
            line: Some("p.c:7".to_owned()),
            whole_function: false,
            branches: 3,
        }
    }

    #[test]
    fn places_name_function_and_line_or_address() {
        let told = |change: &dyn Fn(&mut FailingPlace)| {
            let mut place = failing();
            change(&mut place);
            super::place(&place, 4)
        };
        assert_eq!(told(&|_| ()), "part of main, corrupt (inlined) at p.c:7 in /p, on 3 of 4 branches");
        let whole = |it: &mut FailingPlace| (it.whole_function, it.inlined) = (true, None);
        assert_eq!(told(&whole), "main at p.c:7 in /p, on 3 of 4 branches");
        let bare = |it: &mut FailingPlace| (it.line, it.inlined) = (None, None);
        assert_eq!(told(&bare), "part of main at 0x1234 in /p, on 3 of 4 branches");
        let unnamed = |it: &mut FailingPlace| {
            *it = FailingPlace { function: None, inlined: None, line: None, ..it.clone() };
        };
        assert_eq!(told(&unnamed), "part of code at 0x1234 in /p, on 3 of 4 branches");
    }

    #[test]
    fn the_sentence_says_what_was_replayed() {
        let code = |branches, passing, why| ReachedCode {
            schema_version: 1,
            identity: String::new(),
            seed: everett_streams::Seed::new(1),
            branches,
            branches_all: 30,
            passing,
            why,
            programs: Vec::new(),
            programs_count: 0,
            findings: Vec::new(),
        };
        let told = |branches, passing, why| sentence(&code(branches, passing, why));
        assert_eq!(told(30, 28, ReplaysEnd::Done), "All 30 branches were replayed; 28 show no finding.");
        assert_eq!(
            told(7, 1, ReplaysEnd::Budget),
            "7 of 30 branches were replayed before the time budget ran out; 1 shows no finding."
        );
        let interrupted = told(2, 0, ReplaysEnd::Interrupted);
        assert!(
            interrupted.ends_with("before the command was interrupted; each shows a finding."),
            "{interrupted}"
        );
    }
}
