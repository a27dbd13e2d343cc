//! Cost of final phases. A final phase is what follows a branch with checks: waiting until the world is at rest, and
//! the checks.

use super::figures::{count, counted, duration};
use everett_explorer::run::{Cost, FinalPhases, LongestFinal};

/// Returns `part` as a percentage of `whole`. `None` if `whole` is 0.
#[must_use]
pub fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}

/// Returns a clause about the share of final phases in the cost. `cost` is the cost of the whole exploration. `None`
/// if no branch had checks.
#[must_use]
pub fn told(cost: &Cost, finals: &FinalPhases) -> Option<String> {
    let FinalPhases { branches, unknown, sum, longest } = finals;
    let Some(LongestFinal { branch, final_phase }) = longest else {
        return (*unknown > 0).then(|| {
            format!(
                "the records do not have the cost of {}",
                counted(*unknown, "final phase", "final phases")
            )
        });
    };
    let share = |part| percent(part, cost.instructions).unwrap_or(0.0);
    let verb = if *branches == 1 { "takes" } else { "take" };
    let mut text = format!(
        "{} {verb} {:.0} % of all instructions: {:.0} % until the world is at rest, {:.0} % for checks; the longest checks \
         take {} of vtime, after branch {branch}",
        counted(*branches, "final phase", "final phases"),
        share(sum.instructions()),
        share(sum.calm.instructions),
        share(sum.checks.instructions),
        duration(final_phase.checks.vtime_ns),
    );
    if *unknown > 0 {
        text += &format!("; the cost of {} more is not recorded", count(*unknown));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use everett_explorer::run::{FinalPhase, Span};

    #[test]
    fn the_share_is_one_line() {
        let cost = Cost { cpu_ns: 1, instructions: 200 };
        assert_eq!(told(&cost, &FinalPhases::default()), None);
        let calm = Span { instructions: 18, vtime_ns: 2_000_000_000 };
        let checks = Span { instructions: 98, vtime_ns: 135_000_000_000 };
        let final_phase = FinalPhase { calm, checks };
        let longest = Some(LongestFinal { branch: 21, final_phase });
        let finals = FinalPhases { branches: 36, unknown: 0, sum: final_phase, longest };
        let whole = "36 final phases take 58 % of all instructions: 9 % until the world is at rest, 49 % for checks; the \
                     longest checks take 2.25 min of vtime, after branch 21";
        assert_eq!(told(&cost, &finals).as_deref(), Some(whole));
        let mixed = FinalPhases { unknown: 2, ..finals };
        assert_eq!(told(&cost, &mixed), Some(format!("{whole}; the cost of 2 more is not recorded")));
        let older = FinalPhases { unknown: 1, ..FinalPhases::default() };
        assert_eq!(told(&cost, &older).as_deref(), Some("the records do not have the cost of 1 final phase"));
        // A damaged file may have any numbers.
        let huge = FinalPhase { checks: Span { instructions: u64::MAX, vtime_ns: u64::MAX }, ..final_phase };
        assert!(
            told(&Cost::default(), &FinalPhases { sum: huge, ..finals }).unwrap().contains(" 0 % of all")
        );
    }
}
