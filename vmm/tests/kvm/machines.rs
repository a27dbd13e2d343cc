//! A whole machine on the kvm engine (`/dev/kvm`): devices, the timer and moments work as on any other engine.

use everett_assembler::*;
use everett_snapshot::Pool;
use everett_vmm::engine::kvm::KvmEngine;
use everett_vmm::kvm::Host;
use everett_vmm::machine::{End, Moment};
use everett_vmm::{ClockMode, Digest, Machine, Stop, Until};
use libtest_mimic::Trial;

use crate::lacks::ticking_host;
use crate::lockstep::{Gates, kvm_engine_on};
use crate::small::{DATA, UART, assemble, config, config_in, count_tick, out, timer};
use crate::trials::{Ran, trial};

const TICKS: i32 = 30;

/// A guest that waits for a timer again and again, and prints and records each tick.
fn code() -> Vec<u8> {
    assemble(|a| {
        let handler = a.create_label();
        let again = a.create_label();
        timer(a, 1000, handler)?;
        a.set_label(again)?;
        a.sti()?;
        a.hlt()?;
        a.cli()?;
        out(a, UART, u32::from(b'.'))?;
        a.mov(rbx, DATA + 0x1000)?;
        a.mov(qword_ptr(rbx + r15 * 8), r15)?;
        a.lock().add(qword_ptr(rbx), r15)?;
        a.cmp(r15, TICKS)?;
        a.jb(again)?;
        a.hlt()?;
        a.set_label(handler)?;
        count_tick(a)
    })
}

fn engine(host: &Host, ram: &everett_vmm::ram::Ram) -> KvmEngine {
    kvm_engine_on(host, Gates::Open, ram).expect("a virtual machine")
}
fn kvm(host: &Host) -> Machine {
    let (config, _folder) = config_in(ClockMode::Exit, &code());
    Machine::new(config, |ram| Ok(engine(host, ram))).expect("a machine")
}
fn from_moment(host: &Host, moment: &Moment) -> Machine {
    let (config, _folder) = config_in(ClockMode::Exit, &code());
    Machine::from_moment(config, moment, |ram| Ok(engine(host, ram))).expect("a machine")
}

/// Runs to the end. Returns the number of bytes that the UART printed and the test has not taken yet, and the final
/// digest.
fn finish(machine: &mut Machine) -> (usize, Digest) {
    let stop = machine.run(&Until::vtime(u64::MAX));
    assert_eq!(stop, Stop::End(End::HaltedForever));
    (machine.output().take_console().len(), machine.digest())
}

fn noted(machine: &Machine) -> u64 {
    let mut sum = [0; 8];
    assert_eq!(machine.read_virtual(DATA + 0x1000, &mut sum), 8);
    u64::from_le_bytes(sum)
}

fn a_machine_runs_with_its_timer_and_its_uart() -> Ran {
    let (host, _ticker) = ticking_host(Gates::Open)?;
    let mut machine = kvm(&host);
    let (bytes, digest) = finish(&mut machine);
    assert_eq!((bytes, noted(&machine)), (TICKS as usize, (1..=TICKS as u64).sum()));
    assert!(machine.stats().interrupts >= TICKS as u64);
    let mut again = kvm(&host);
    assert_eq!(finish(&mut again), (bytes, digest), "a second machine must do the same");
    Ok(())
}

fn moments_go_back_and_forth_and_to_other_machines() -> Ran {
    let (host, _ticker) = ticking_host(Gates::Open)?;
    let pool = Pool::default();
    let mut machine = kvm(&host);
    let (_, expected) = finish(&mut kvm(&host));
    let mut moments = Vec::new();
    for part in 1..4 {
        assert_eq!(machine.run(&Until::icount(part * 25)), Stop::Count);
        moments.push(machine.moment(&pool));
    }
    assert_eq!(finish(&mut machine).1, expected, "stops and moments must change nothing");
    for index in [2, 0, 1, 1, 2] {
        machine.restore(&moments[index]).unwrap();
        assert_eq!(finish(&mut machine).1, expected, "from moment {index}, in the machine that made it");
        let mut other = from_moment(&host, &moments[index]);
        assert_eq!(finish(&mut other).1, expected, "from moment {index}, in another machine");
    }
    Ok(())
}

fn a_clock_that_counts_instructions_is_refused() -> Ran {
    let host = crate::host()?;
    let (config, _folder) = config(&code());
    let refused = Machine::new(config, |ram| Ok(engine(&host, ram))).err().expect("no machine");
    let line = refused.to_string();
    assert_eq!(
        line,
        "clock mode \"insn\" needs an engine that counts each instruction; this one counts each exit"
    );
    Ok(())
}

/// The tests of this module.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(a_machine_runs_with_its_timer_and_its_uart),
        trial(moments_go_back_and_forth_and_to_other_machines),
        trial(a_clock_that_counts_instructions_is_refused),
    ]
}
