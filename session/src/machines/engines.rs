//! Choice of the engine that executes a world's guests, with the reason in one line.
//!
//! KVM is exact on a host that passes the probes of [`everett_host::doctor`]. A probe is a small guest that tests what
//! an exact engine needs in the world's clock mode. A requirement that this version's KVM engine does not implement
//! counts as failed.
//!
//! **Invariant.** Only `--allow-inexact` starts an engine that was not proved exact. Everett then marks the results as
//! inexact.

use std::time::Duration;

use everett_cpu::CpuModel;
use everett_host::doctor::kvm;
use everett_host::doctor::kvm::probes::Effort;
use everett_vmm::engine::kvm::Proved;
use everett_world_file::Clock;
use serde::Serialize;

use crate::machines::{EngineKind, EngineOptions};

/// Probes that clock mode `exit` does not need. In this mode KVM stops only at exits and never waits for an interrupt
/// window.
const NOT_NEEDED_FOR_EXITS: [&str; 2] = ["interrupts", "guest counters"];
/// Probes that must succeed before Everett sets the guest's TSC on KVM.
const FOR_TSC: [&str; 2] = ["TSC control", "vCPU attributes"];
/// Probes that must succeed before KVM handles exceptions and system calls without Everett.
const FOR_SYSTEM_CALLS: [&str; 1] = ["system calls"];

/// Requested engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EngineChoice {
    /// The fastest engine that is exact on this host.
    #[default]
    Auto,
    /// Everett's own CPU.
    Soft,
    /// The host's `/dev/kvm`.
    Kvm,
}

/// Engine options of the command line.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// `--engine`.
    pub engine: EngineChoice,
    /// `--allow-inexact`.
    pub allow_inexact: bool,
    /// `--patience`.
    pub patience: Duration,
}

/// Engine of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Engine {
    /// Kind of the engine.
    #[serde(rename = "engine")]
    pub kind: EngineKind,
    /// Clock mode of the world, i.e. the unit that the engine counts.
    pub clock: Clock,
    /// True if results do not depend on the host. On KVM they still depend on the processor for undefined flags and for
    /// approximations such as RCPPS (`docs/kvm.md`).
    pub exact: bool,
    /// Reason for this engine, in one line.
    pub why: String,
    /// Proved capabilities of the host, which the KVM engine uses.
    #[serde(skip)]
    pub proved: Proved,
    /// Longest host time that a guest may run on KVM without an exit.
    #[serde(skip)]
    pub patience: Duration,
}

/// Reason why the requested engine is not available.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The clock mode counts instructions, and KVM cannot.
    #[error(
        "--engine kvm: clock mode \"insn\" counts instructions, which /dev/kvm does not; set clock = \"branch\" \
        or clock = \"exit\" in the world file, or use --engine soft"
    )]
    Instructions,
    /// The clock mode counts branches, and the host has no counter of guest branches.
    #[error(
        "--engine kvm: clock mode \"branch\" needs a counter of guest branches, and the probes found none on this host; \
        set clock = \"exit\" in the world file, or use --engine soft"
    )]
    Branches,
    /// The KVM engine has only the CPU model `v2`.
    #[error(
        "--engine kvm: the engine kvm has no CPU model {0}; set cpu = \"v2\" in the world file, or use --engine soft"
    )]
    Model(CpuModel),
    /// KVM was not proved exact on this host. The text lists the failed requirements.
    #[error(
        "--engine kvm: not exact on this host, which lacks: {0}; use --engine soft, or --allow-inexact, which marks \
        every result"
    )]
    Inexact(String),
}

impl Engine {
    /// Chooses the engine for a command's options, and a world's clock mode and CPU model.
    ///
    /// # Errors
    /// Returns an error if the operator requested an engine that is not available.
    pub fn choose(asked: Asked, clock: Clock, cpu: CpuModel) -> Result<Engine, Refused> {
        decide(asked, clock, cpu, || look(clock))
    }

    /// Returns the soft engine, for commands without the option `--engine`.
    #[must_use]
    pub fn soft(clock: Clock) -> Engine {
        Engine {
            kind: EngineKind::Soft,
            clock,
            exact: true,
            why: SOFT.to_owned(),
            proved: Proved::default(),
            patience: Duration::ZERO,
        }
    }

    /// Returns `options` with this engine, its proved capabilities and its patience.
    #[must_use]
    pub fn options(&self, options: EngineOptions) -> EngineOptions {
        EngineOptions { engine: self.kind, proved: self.proved, patience: self.patience, ..options }
    }

    /// Returns the warning that every result of an inexact engine gets.
    #[must_use]
    pub fn warning(&self) -> Option<&'static str> {
        (!self.exact).then_some("INEXACT: this result may depend on the host, and another run may differ")
    }
}

/// Reason that Everett prints for the soft engine, i.e. Everett's own CPU. To compute a result for the guest, this
/// engine uses only host instructions for which the manuals of all vendors define every bit of the result. A test, the
/// instruction oracle (`cpu/tests/oracle`), compared the results on Intel and AMD processors. It fails on a host with
/// an unknown difference.
const SOFT: &str = "exact on all hosts tried so far";

/// Results of this host's probes.
struct Found {
    /// Names of the requirements of an exact engine that this host does not meet.
    missing: Vec<&'static str>,
    proved: Proved,
}

fn decide(
    asked: Asked,
    clock: Clock,
    cpu: CpuModel,
    look: impl FnOnce() -> Found,
) -> Result<Engine, Refused> {
    let soft = |why: String| Ok(Engine { why, ..Engine::soft(clock) });
    match (asked.engine, clock) {
        (EngineChoice::Kvm, Clock::Branch | Clock::Exit) if cpu != CpuModel::V2 => Err(Refused::Model(cpu)),
        (EngineChoice::Auto, Clock::Branch | Clock::Exit) if cpu != CpuModel::V2 => {
            soft(format!("{SOFT}; the engine kvm has no CPU model {cpu}"))
        }
        (EngineChoice::Soft, _) => soft(SOFT.to_owned()),
        (EngineChoice::Auto, Clock::Insn) => {
            soft(format!("{SOFT}; clock mode \"insn\" counts instructions, which /dev/kvm does not"))
        }
        (EngineChoice::Kvm, Clock::Insn) => Err(Refused::Instructions),
        (engine, Clock::Branch | Clock::Exit) => {
            let Found { missing, proved } = look();
            let patience = asked.patience;
            let kvm = |exact, why| Ok(Engine { kind: EngineKind::Kvm, clock, exact, why, proved, patience });
            let for_want_of = missing.join(", ");
            match engine {
                _ if missing.is_empty() => {
                    kvm(true, "the fastest engine that proved exact on this host".to_owned())
                }
                EngineChoice::Kvm if !asked.allow_inexact => Err(Refused::Inexact(for_want_of)),
                // Without a branch counter, the guest would have no clock.
                EngineChoice::Kvm if clock == Clock::Branch && proved.branches.is_none() => {
                    Err(Refused::Branches)
                }
                EngineChoice::Kvm => {
                    kvm(false, format!("--allow-inexact; not exact on this host, which lacks: {for_want_of}"))
                }
                _ => soft(format!("{SOFT}; /dev/kvm is not exact on this host, which lacks: {for_want_of}")),
            }
        }
    }
}

/// Probes this host for an engine in this clock mode: quickly, then fully if the quick probes succeed.
fn look(clock: Clock) -> Found {
    let seen = found(&kvm::examine(Effort::Look), clock);
    if seen.missing.is_empty() { found(&kvm::examine(Effort::Proof), clock) } else { seen }
}

/// Interprets a report of probes for a clock mode.
fn found(report: &kvm::ProbeReport, clock: Clock) -> Found {
    let needed = |name: &&str| clock != Clock::Exit || !NOT_NEEDED_FOR_EXITS.contains(name);
    let missing = report.unproven.iter().copied().filter(needed).collect();
    let branches = report.branches.filter(|_| clock == Clock::Branch);
    let branches = branches.map(|branches| (branches.event, branches.margin));
    // A report with only one result comes from a host without a usable `/dev/kvm`. No other capability was tested.
    let known = report.findings.len() > 1;
    let has = |names: &[&str]| known && !report.unproven.iter().any(|name| names.contains(name));
    let (tsc, system_calls) = (has(&FOR_TSC), has(&FOR_SYSTEM_CALLS));
    Found { missing, proved: Proved { branches, tsc, system_calls, coherent: report.coherent } }
}

#[cfg(test)]
mod tests {
    use super::*;

    use everett_host::doctor::kvm::guest::Guest;
    use everett_host::doctor::kvm::host::Ran;
    use everett_host::doctor::kvm::scripted::report;

    /// Chooses an engine on a scripted host (an imitation of hardware on which every probe succeeds) with one defect:
    /// `leak` changes the results of the guests' runs.
    fn on(
        engine: EngineChoice,
        allow_inexact: bool,
        clock: Clock,
        leak: fn(&Guest, &mut Ran),
    ) -> Result<Engine, Refused> {
        decide(Asked { engine, allow_inexact, patience: Duration::ZERO }, clock, CpuModel::V2, || {
            found(&report(Effort::Look, leak), clock)
        })
    }

    fn of(
        engine: EngineChoice,
        allow_inexact: bool,
        clock: Clock,
        lacks: &[&'static str],
    ) -> Result<Engine, Refused> {
        let found = || Found { missing: lacks.to_vec(), proved: Proved::default() };
        decide(Asked { engine, allow_inexact, patience: Duration::ZERO }, clock, CpuModel::V2, found)
    }

    #[test]
    fn other_cpu_models_need_the_soft_engine() {
        for clock in [Clock::Insn, Clock::Branch, Clock::Exit] {
            let choose = |engine| {
                let asked = Asked { engine, allow_inexact: true, patience: Duration::ZERO };
                decide(asked, clock, CpuModel::V3, || found(&report(Effort::Look, |_, _| {}), clock))
            };
            assert_eq!(choose(EngineChoice::Auto).unwrap().kind, EngineKind::Soft);
            assert_eq!(choose(EngineChoice::Soft).unwrap().kind, EngineKind::Soft);
            let refused = match clock {
                Clock::Insn => Refused::Instructions,
                Clock::Branch | Clock::Exit => Refused::Model(CpuModel::V3),
            };
            assert_eq!(choose(EngineChoice::Kvm), Err(refused));
        }
    }

    #[test]
    fn an_unproven_engine_needs_allow_inexact() {
        use EngineChoice::{Auto, Kvm, Soft};
        let lacks = ["RDRAND", "TSC control"];
        let auto = of(Auto, false, Clock::Exit, &lacks).unwrap();
        assert_eq!((auto.kind, auto.exact), (EngineKind::Soft, true));
        assert!(auto.why.ends_with("which lacks: RDRAND, TSC control"), "{}", auto.why);
        assert_eq!(
            of(Auto, true, Clock::Exit, &lacks).unwrap(),
            auto,
            "--allow-inexact alone does not choose KVM"
        );
        let refused = of(Kvm, false, Clock::Exit, &lacks).unwrap_err().to_string();
        assert!(refused.contains("RDRAND, TSC control") && refused.contains("--allow-inexact"), "{refused}");
        let insists = of(Kvm, true, Clock::Exit, &lacks).unwrap();
        assert_eq!((insists.kind, insists.exact), (EngineKind::Kvm, false));
        assert!(insists.warning().is_some() && auto.warning().is_none());
        assert_eq!(of(Soft, true, Clock::Exit, &lacks).unwrap().kind, EngineKind::Soft);
    }

    #[test]
    fn a_proven_engine_is_chosen_with_its_measurements() {
        for engine in [EngineChoice::Auto, EngineChoice::Kvm] {
            let exits = on(engine, false, Clock::Exit, |_, _| {}).unwrap();
            assert_eq!((exits.kind, exits.exact), (EngineKind::Kvm, true));
            assert_eq!(
                exits.proved,
                Proved { branches: None, tsc: true, system_calls: true, coherent: true }
            );
            let branches = on(engine, false, Clock::Branch, |_, _| {}).unwrap();
            assert_eq!((branches.kind, branches.exact), (EngineKind::Kvm, true));
            // The scripted host delivers counter signals 345 branches late.
            assert_eq!(branches.proved, Proved { branches: Some((0x11c4, 2 * 345 + 1000)), ..exits.proved });
            assert_eq!(branches.options(EngineOptions::default()).proved, branches.proved);
        }
    }

    #[test]
    fn system_calls_that_stay_in_ring_3_are_not_left_to_kvm() {
        let stays = |guest: &Guest, ran: &mut Ran| {
            if guest.name == "system calls" {
                ran.gpr[3] |= 3;
            }
        };
        let kvm = on(EngineChoice::Kvm, true, Clock::Exit, stays).unwrap();
        assert!(kvm.why.ends_with("which lacks: system calls"), "{}", kvm.why);
        assert_eq!(kvm.proved, Proved { branches: None, tsc: true, system_calls: false, coherent: true });
    }

    #[test]
    fn a_host_without_counters_supports_exits_but_not_branches() {
        use EngineChoice::{Auto, Kvm};
        let uncounted = |guest: &Guest, ran: &mut Ran| {
            if guest.name == "counters" {
                ran.counted = None;
            }
        };
        assert_eq!(on(Auto, false, Clock::Exit, uncounted).unwrap().kind, EngineKind::Kvm);
        let auto = on(Auto, false, Clock::Branch, uncounted).unwrap();
        assert_eq!(auto.kind, EngineKind::Soft);
        assert!(auto.why.ends_with("which lacks: guest counters"), "{}", auto.why);
        let refused = on(Kvm, false, Clock::Branch, uncounted).unwrap_err();
        assert_eq!(refused, Refused::Inexact("guest counters".to_owned()));
        assert_eq!(on(Kvm, true, Clock::Branch, uncounted), Err(Refused::Branches));
    }

    #[test]
    fn a_counter_without_a_signal_counts_as_missing() {
        let silent = |guest: &Guest, ran: &mut Ran| {
            if guest.name == "skid" {
                ran.end = everett_host::doctor::kvm::host::End::TimedOut;
            }
        };
        let auto = on(EngineChoice::Auto, false, Clock::Branch, silent).unwrap();
        assert!(auto.why.ends_with("which lacks: guest counters"), "{}", auto.why);
    }

    #[test]
    fn without_tsc_control_the_engine_is_inexact() {
        let free = |guest: &Guest, ran: &mut Ran| {
            if guest.name == "TSC held" {
                (ran.gpr[8], ran.gpr[6]) = (9_999, 1_000_000);
            }
        };
        for clock in [Clock::Exit, Clock::Branch] {
            assert_eq!(on(EngineChoice::Auto, false, clock, free).unwrap().kind, EngineKind::Soft);
            let insists = on(EngineChoice::Kvm, true, clock, free).unwrap();
            assert_eq!((insists.exact, insists.proved.tsc), (false, false));
            assert_eq!(insists.proved.branches.is_some(), clock == Clock::Branch);
        }
    }

    #[test]
    fn only_the_soft_engine_counts_instructions() {
        let no_probes = || -> Found { unreachable!("this decision needs no probes") };
        let asked = |engine, allow_inexact| Asked { engine, allow_inexact, patience: Duration::ZERO };
        assert_eq!(
            decide(asked(EngineChoice::Kvm, true), Clock::Insn, CpuModel::V2, no_probes),
            Err(Refused::Instructions)
        );
        let auto = decide(asked(EngineChoice::Auto, false), Clock::Insn, CpuModel::V2, no_probes).unwrap();
        assert_eq!((auto.kind, auto.exact), (EngineKind::Soft, true));
    }
}
