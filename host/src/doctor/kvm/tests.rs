//! Tests of the probes of `/dev/kvm` and of their reports, on hosts whose answers are scripted.

use std::sync::mpsc::channel;
use std::time::Duration;

use super::guest::{END_MARK, Guest, HELD_TSC, Ring};
use super::host::{End, Host, Ran};
use super::probes::{Effort, all, approximations, flags};
use super::scripted::{raise, report};
use super::{PATIENCE, ProbeReport, Told, Verdict, wait};

fn detail<'a>(report: &'a ProbeReport, name: &str) -> (Verdict, &'a str) {
    let finding = report.findings.iter().find(|finding| finding.name == name).expect("the finding exists");
    (finding.verdict, &finding.detail)
}

#[test]
fn a_sound_host_is_proven() {
    for effort in [Effort::Look, Effort::Proof] {
        let report = report(effort, |_, _| {});
        assert_eq!(report.unproven, Vec::<&str>::new());
        assert!(report.findings.iter().all(|finding| finding.verdict == Verdict::Ok), "{report:#?}");
        assert!(detail(&report, "guest counters").1.contains("up to 345 branches late"));
    }
}

#[test]
fn each_leak_is_found_by_name() {
    type Leak = fn(&Guest, &mut Ran);
    let leaks: [(&str, Leak); 20] = [
        ("CPUID in ring 3", |guest, ran| {
            if guest.name == "CPUID" && guest.ring == Ring::Three {
                ran.gpr[2] ^= 1;
            }
        }),
        ("CPUID in ring 0", |guest, ran| {
            if guest.name == "CPUID" && guest.rax == 0x4000_0000 && guest.ring == Ring::Zero {
                ran.gpr[3] = u64::from(u32::from_le_bytes(*b"KVMK"));
            }
        }),
        ("RDRAND", |guest, ran| {
            if guest.name == "RDRAND" && guest.ring == Ring::Three {
                ran.gpr[15] = END_MARK;
            }
        }),
        ("RDSEED", |guest, ran| {
            if guest.name == "RDSEED" {
                ran.end = End::TimedOut;
            }
        }),
        ("XBEGIN", |guest, ran| {
            // Three of the guest's transactions commit. The host's interrupts and caches decide which transactions
            // commit, so the probe must fail.
            if guest.name == "XBEGIN" && guest.ring == Ring::Three {
                (ran.gpr[15], ran.gpr[3]) = (END_MARK, 3);
            }
        }),
        ("TSC control", |guest, ran| {
            if guest.name == "TSC held" {
                (ran.gpr[8], ran.gpr[6]) = (9_999, 1_000_000);
            }
        }),
        ("TSC control", |guest, ran| {
            // The TSC stands still during each slice (a run of the guest between two returns to Everett), but not at
            // the value that Everett set. The host reports that the TSC moved.
            if guest.name == "TSC held" {
                (ran.gpr[3], ran.gpr[6], ran.moved) = (77, 77, Some(true));
            }
        }),
        ("CR4.TSD", |guest, ran| {
            if guest.name == "CR4.TSD" {
                ran.gpr[15] = END_MARK;
            }
        }),
        ("dirty log", |guest, ran| {
            if guest.name == "dirty log" {
                ran.dirty.pop();
            }
        }),
        ("MSR filter", |guest, ran| {
            if guest.name == "MSR filter" {
                ran.msr_exits = 1;
            }
        }),
        ("system calls", |guest, ran| {
            if guest.name == "system calls" {
                raise(ran, 14);
            }
        }),
        ("interrupts", |guest, ran| {
            if guest.name == "interrupts" {
                ran.gpr[3] = 7;
            }
        }),
        ("kernel registers", |guest, ran| {
            // The host does not support UMIP.
            if guest.name == "control register" && guest.rax == 1 << 11 {
                raise(ran, 13);
            }
        }),
        ("UMIP", |guest, ran| {
            if guest.name == "UMIP" && guest.code == [0x0f, 0x00, 0xc8] {
                ran.gpr[15] = END_MARK;
            }
        }),
        ("paging", |guest, ran| {
            if guest.name == "SMAP" {
                ran.gpr[15] = END_MARK;
            }
        }),
        ("paging", |guest, ran| {
            // Without EFER.NXE, bit 63 of a page table entry is reserved, so each access faults.
            if guest.name == "NX" {
                ran.top = 0x9;
            }
        }),
        ("promised instructions", |guest, ran| {
            if guest.name == "promised" && guest.code == [0x0f, 0x01, 0xf9] {
                raise(ran, 6);
            }
        }),
        ("guest counters", |guest, ran| {
            // The counter also counts the exit from ring 3.
            if guest.name == "counters" && guest.ring == Ring::Three {
                ran.counted = Some(3 * guest.rcx + 1);
            }
        }),
        ("guest counters", |guest, ran| {
            // At each exit, the counter also counts a branch of the host.
            if guest.name == "counters at exits" {
                ran.counted = ran.counted.map(|counted| counted + guest.rcx);
            }
        }),
        ("guest counters", |guest, ran| {
            // The counter does not count the branches after its overflow.
            if guest.name == "skid" {
                ran.counted = Some(100_000);
            }
        }),
    ];
    let mut others = Vec::new();
    for (n, (name, leak)) in leaks.into_iter().enumerate() {
        let report = report(Effort::Look, leak);
        if report.unproven != [name] || detail(&report, name).0 != Verdict::Note {
            others.push((n, name, report.unproven));
        }
    }
    assert!(others.is_empty(), "found otherwise: {others:?}");
}

#[test]
fn smsw_may_execute_where_kvm_emulates_umip() {
    let report = report(Effort::Look, |guest, ran| {
        if guest.name == "UMIP" && guest.code == [0x0f, 0x01, 0xe0] {
            ran.gpr[15] = END_MARK;
        }
    });
    assert!(report.unproven.is_empty());
    assert_eq!(detail(&report, "UMIP").1, "hides system registers from ring 3, except SMSW's");
}

#[test]
fn a_host_without_umip_is_told_by_the_register_and_by_the_instructions() {
    let report = report(Effort::Look, |guest, ran| match guest.name {
        "control register" if guest.rax == 1 << 11 => raise(ran, 13),
        "UMIP" => (ran.end, ran.vector) = (End::Other("CR4 cannot be set".to_owned()), None),
        _ => {}
    });
    assert_eq!(report.unproven, ["kernel registers", "UMIP"]);
    assert_eq!(detail(&report, "kernel registers").1, "CR4.UMIP: the guest ended with vector 13");
    assert!(detail(&report, "UMIP").1.starts_with("SGDT in ring 3: CR4 cannot be set"));
}

#[test]
fn a_first_run_that_takes_long_is_no_measurement() {
    let mut runs = 0;
    let report = report(Effort::Look, |_, ran| {
        runs += 1;
        if runs == 1 {
            ran.nanoseconds += 24_000_000;
        }
    });
    assert!(detail(&report, "ring 0 speed").1.starts_with("4000 million"), "{report:?}");
}

#[test]
fn a_host_that_is_slow_is_waited_for_and_one_that_stands_still_is_not() {
    let (sender, receiver) = channel();
    let report = report(Effort::Look, |_, _| {});
    for told in [Told::Progress, Told::Progress, Told::Done(report.clone())] {
        sender.send(told).expect("the receiver exists");
    }
    assert_eq!(wait(&receiver, PATIENCE), Ok(report));
    let stuck = wait(&receiver, Duration::ZERO);
    assert_eq!(stuck, Err("a guest did not end in 0 s".to_owned()));
    drop(sender);
    assert_eq!(wait(&receiver, PATIENCE), Err("the probe thread failed".to_owned()));
}

#[test]
fn a_leak_that_shows_once_in_fifty_runs_passes_a_look_and_no_proof() {
    type Leak = fn(&mut Ran);
    let leaks: [(&str, Leak); 2] =
        [("dirty log", |ran| ran.dirty.clear()), ("CR4.TSD", |ran| ran.gpr[15] = END_MARK)];
    for (name, leak) in leaks {
        let mut runs = 0;
        let mut leak = |guest: &Guest, ran: &mut Ran| {
            if guest.name == name {
                runs += 1;
                if runs % 50 == 0 {
                    leak(ran);
                }
            }
        };
        assert!(report(Effort::Look, &mut leak).unproven.is_empty());
        assert_eq!(report(Effort::Proof, &mut leak).unproven, [name]);
    }
}

#[test]
fn ticks_that_a_slice_crosses_are_no_leak() {
    let mut slices = 0;
    let report = report(Effort::Look, |guest, ran| {
        if guest.name == "TSC held" {
            slices += 1;
            if slices % 4 == 0 {
                (ran.gpr[8], ran.gpr[3], ran.gpr[6]) = (1, 77, 78);
                ran.moved = Some(true);
            }
        }
    });
    assert!(report.unproven.is_empty());
    assert!(detail(&report, "TSC control").1.contains("25 that a tick crossed"));
}

#[test]
fn a_slow_host_gets_shorter_slices() {
    let crossed = |longest: u64| {
        report(Effort::Look, move |guest, ran| {
            if guest.name == "TSC held" && guest.rcx > longest {
                (ran.gpr[8], ran.gpr[3], ran.gpr[6], ran.moved) = (1, HELD_TSC, HELD_TSC + 1, Some(true));
            }
        })
    };
    let report = crossed(100);
    assert!(report.unproven.is_empty());
    assert!(detail(&report, "TSC control").1.contains("slices of 100 reads, except in 0"), "{report:?}");
    let report = crossed(99);
    assert_eq!(report.unproven, ["TSC control"]);
    assert!(detail(&report, "TSC control").1.contains("only 0 of 100 slices"), "{report:?}");
}

#[test]
fn transactions_that_always_abort_are_told_and_make_no_host_inexact() {
    let report = report(Effort::Look, |guest, ran| {
        if let "XBEGIN" | "VMCALL" = guest.name {
            ran.gpr[15] = END_MARK;
        }
    });
    assert_eq!(report.unproven, Vec::<&str>::new());
    assert_eq!(
        detail(&report, "XBEGIN"),
        (Verdict::Ok, "aborts at once in ring 0, aborts at once in ring 3")
    );
    assert_eq!(detail(&report, "hidden instructions"), (Verdict::Note, "VMCALL execute"));
}

#[test]
fn approximations_of_another_make_are_told_and_make_no_host_inexact() {
    let report = report(Effort::Look, |guest, ran| {
        // The code is rcpps xmm1, xmm0.
        if guest.name == approximations::NAME && guest.code.windows(3).any(|code| code == [0x0f, 0x53, 0xc8])
        {
            ran.gpr[13] ^= 1 << 12;
        }
    });
    assert_eq!(report.unproven, Vec::<&str>::new());
    assert_eq!(
        detail(&report, approximations::NAME),
        (Verdict::Note, "RCPPS: other results than the model's")
    );
}

#[test]
fn a_tick_of_which_nobody_knows_is_a_leak() {
    type Leak = fn(&Guest, &mut Ran);
    let leaks: [Leak; 2] = [
        // The TSC has ticked, but the host does not report that it moved.
        |guest, ran| {
            if guest.name == "TSC held" {
                (ran.gpr[8], ran.gpr[6]) = (1, HELD_TSC + 1);
            }
        },
        // The TSC stands still, but not at the requested value.
        |guest, ran| {
            if guest.name == "TSC held" {
                (ran.gpr[3], ran.gpr[6]) = (HELD_TSC + 1, HELD_TSC + 1);
            }
        },
    ];
    for leak in leaks {
        assert_eq!(report(Effort::Look, leak).unproven, ["TSC control"]);
    }
}

#[test]
fn a_software_kvm_is_told() {
    let report = report(Effort::Look, |guest, ran| match guest.name {
        "ring 0 speed" => {
            (ran.end, ran.nanoseconds) = (End::TimedOut, 1_000_000_000);
            ran.gpr[1] = guest.rcx.saturating_sub(850_000);
        }
        "lock cmpxchg16b" | "int3" => ran.end = End::Failed,
        _ => {}
    });
    assert!(detail(&report, "ring 0 speed").1.contains("million instructions a second"));
    assert_eq!(detail(&report, "emulation gaps"), (Verdict::Note, "lock cmpxchg16b, int3"));
    assert!(report.unproven.is_empty(), "neither low speed nor an emulation gap makes KVM inexact");
}

#[test]
fn undefined_flags_of_another_make_are_told_and_make_no_host_inexact() {
    const AF: u64 = 1 << 4;
    let report = report(Effort::Look, |guest, ran| {
        // Shifts by an immediate count set AF, as on AMD processors.
        if guest.name == flags::NAME && guest.code.windows(2).any(|code| code == [0xc1, 0xe0]) {
            ran.gpr[8..14].iter_mut().for_each(|flags| *flags |= AF);
        }
    });
    assert_eq!(report.unproven, Vec::<&str>::new());
    let (verdict, told) = detail(&report, flags::NAME);
    assert_eq!(verdict, Verdict::Note);
    assert!(told.ends_with(" are as in the model; AF set by shl"), "{told}");
    let rows = &report
        .findings
        .iter()
        .find(|finding| finding.name == flags::NAME)
        .expect("the finding exists")
        .undefined;
    let other: Vec<_> = rows.iter().filter(|row| !row.equal).collect();
    assert_eq!(other.len(), 1, "{other:?}");
    let json = serde_json::to_string(other[0]).expect("rows are plain data");
    assert_eq!(json, r#"{"instruction":"shl","flag":"AF","host":"sets","model":"clears","equal":false}"#);
}

#[test]
fn a_host_that_runs_nothing_is_a_report_all_the_same() {
    struct Broken;
    impl Host for Broken {
        fn capability(&mut self, _: u32) -> Result<u32, String> {
            Err("KVM: ask for a capability: the device is gone".to_owned())
        }
        fn run(&mut self, _: &Guest) -> Result<Ran, String> {
            Err("KVM: create a virtual machine: the host is out of memory".to_owned())
        }
    }
    let report = all(&mut Broken, Effort::Proof);
    assert!(report.unproven.len() >= 12);
    assert!(report.findings.iter().all(|finding| !finding.detail.contains('\n')));
}
