//! Which engine executes the guests of a world, and why, in one line.
//!
//! What is exact is not believed of a name: this host's KVM has to show, with small guests, everything that an exact engine needs in
//! the world's clock mode ([`crate::doctor`]), and what this version's engine does not do counts as missing.
//!
//! **Invariant.** Only `--allow-inexact` starts an engine that did not prove exact, and whatever comes of it says so.

use serde::Serialize;

use crate::cli::EngineChoice;
use crate::doctor::kvm;
use crate::doctor::kvm::probes::Effort;
use crate::session::launch::{EngineKind, EngineOptions};
use crate::world_file::Clock;

/// What an exact engine needs, and one that counts exits does without: it never waits for a window, and stops nowhere else.
const NOT_NEEDED_FOR_EXITS: [&str; 2] = ["interrupts", "guest counters"];

/// What the kvm engine does not do in this version, whatever the host can.
fn engine_lacks(clock: Clock) -> &'static str {
    match clock {
        Clock::Insn => "a count of instructions",
        Clock::Branch => "a count of branches (not in this version)",
        Clock::Exit => "a TSC that stands still between exits (not in this version)",
    }
}

/// What the command line asks for.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// `--engine`.
    pub engine: EngineChoice,
    /// `--allow-inexact`.
    pub allow_inexact: bool,
}

/// The engine of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Engine {
    /// Which.
    #[serde(rename = "engine")]
    pub kind: EngineKind,
    /// What it counts.
    pub clock: Clock,
    /// Nothing of the host shows in what comes of it.
    pub exact: bool,
    /// Why this one, in one line.
    pub why: String,
}

/// An engine that is not to be had.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It cannot count what the clock counts.
    #[error(
        "--engine kvm: clock mode \"insn\" counts instructions, which /dev/kvm does not; say clock = \"branch\" or clock = \"exit\" \
         in the world file, or use --engine soft"
    )]
    Instructions,
    /// It was not proved exact.
    #[error(
        "--engine kvm: not exact on this host, for want of: {0}; use --engine soft, or --allow-inexact, which marks every result"
    )]
    Inexact(String),
}

impl Engine {
    /// What this host offers of what is asked for.
    ///
    /// # Errors
    /// It is not to be had.
    pub fn choose(asked: Asked, clock: Clock) -> Result<Engine, Refused> {
        decide(asked, clock, || missing(clock))
    }

    /// Everett's own CPU, for what no other is asked for.
    #[must_use]
    pub fn soft(clock: Clock) -> Engine {
        Engine { kind: EngineKind::Soft, clock, exact: true, why: SOFT.to_owned() }
    }

    /// How machines are to be made for it.
    #[must_use]
    pub fn options(&self, options: EngineOptions) -> EngineOptions {
        EngineOptions { engine: self.kind, ..options }
    }

    /// What people have to know of every result, if there is something.
    #[must_use]
    pub fn warning(&self) -> Option<&'static str> {
        (!self.exact).then_some("INEXACT: the host may show in this result, and another run may give another")
    }
}

const SOFT: &str = "exact on every x86-64 host";

fn decide(
    asked: Asked,
    clock: Clock,
    missing: impl FnOnce() -> Vec<&'static str>,
) -> Result<Engine, Refused> {
    let soft = |why: String| Ok(Engine { why, ..Engine::soft(clock) });
    let kvm = |exact, why| Ok(Engine { kind: EngineKind::Kvm, clock, exact, why });
    match (asked.engine, clock) {
        (EngineChoice::Soft, _) => soft(SOFT.to_owned()),
        (EngineChoice::Auto, Clock::Insn) => {
            soft(format!("{SOFT}; clock mode \"insn\" counts instructions, which /dev/kvm does not"))
        }
        (EngineChoice::Kvm, Clock::Insn) => Err(Refused::Instructions),
        (engine, Clock::Branch | Clock::Exit) => {
            let missing = missing();
            match (engine, missing.is_empty()) {
                (_, true) => kvm(true, "the fastest that proved exact on this host".to_owned()),
                (EngineChoice::Kvm, false) if asked.allow_inexact => kvm(
                    false,
                    format!("--allow-inexact; not exact on this host, for want of: {}", missing.join(", ")),
                ),
                (EngineChoice::Kvm, false) => Err(Refused::Inexact(missing.join(", "))),
                _ => {
                    soft(format!("{SOFT}; /dev/kvm is not on this one, for want of: {}", missing.join(", ")))
                }
            }
        }
    }
}

/// What is missing for an engine that counts what this clock does. What a first look does not find wanting has to prove itself.
fn missing(clock: Clock) -> Vec<&'static str> {
    let needed = |names: Vec<&'static str>| {
        let needed =
            names.into_iter().filter(|name| clock != Clock::Exit || !NOT_NEEDED_FOR_EXITS.contains(name));
        needed.chain([engine_lacks(clock)]).collect::<Vec<_>>()
    };
    let seen = needed(kvm::examine(Effort::Look).unproven);
    if seen.is_empty() { needed(kvm::examine(Effort::Proof).unproven) } else { seen }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(
        engine: EngineChoice,
        allow_inexact: bool,
        clock: Clock,
        lacks: &[&'static str],
    ) -> Result<Engine, Refused> {
        decide(Asked { engine, allow_inexact }, clock, || lacks.to_vec())
    }

    #[test]
    fn what_is_not_proved_is_not_taken_unless_somebody_insists() {
        use EngineChoice::{Auto, Kvm, Soft};
        let lacks = ["RDRAND", "TSC control"];
        let auto = of(Auto, false, Clock::Exit, &lacks).unwrap();
        assert_eq!((auto.kind, auto.exact), (EngineKind::Soft, true));
        assert!(auto.why.ends_with("for want of: RDRAND, TSC control"), "{}", auto.why);
        assert_eq!(
            of(Auto, true, Clock::Exit, &lacks).unwrap(),
            auto,
            "who does not ask for it does not get it"
        );
        let refused = of(Kvm, false, Clock::Exit, &lacks).unwrap_err().to_string();
        assert!(refused.contains("RDRAND, TSC control") && refused.contains("--allow-inexact"), "{refused}");
        let insists = of(Kvm, true, Clock::Exit, &lacks).unwrap();
        assert_eq!((insists.kind, insists.exact), (EngineKind::Kvm, false));
        assert!(insists.warning().is_some() && auto.warning().is_none());
        assert_eq!(of(Soft, true, Clock::Exit, &lacks).unwrap().kind, EngineKind::Soft);
    }

    #[test]
    fn what_proved_exact_is_taken() {
        for engine in [EngineChoice::Auto, EngineChoice::Kvm] {
            let taken = of(engine, false, Clock::Exit, &[]).unwrap();
            assert_eq!((taken.kind, taken.exact), (EngineKind::Kvm, true));
        }
    }

    #[test]
    fn instructions_are_counted_by_soft_alone() {
        let nobody_asks = || -> Vec<&'static str> { unreachable!("no guest has to run for that") };
        let asked = |engine, allow_inexact| Asked { engine, allow_inexact };
        assert_eq!(
            decide(asked(EngineChoice::Kvm, true), Clock::Insn, nobody_asks),
            Err(Refused::Instructions)
        );
        let auto = decide(asked(EngineChoice::Auto, false), Clock::Insn, nobody_asks).unwrap();
        assert_eq!((auto.kind, auto.exact), (EngineKind::Soft, true));
    }
}
