//! A stock kernel in clock mode `exit` on a processor of another make, beside the same kernel on the soft CPU. The test
//! shows whether undefined status flags that the kernel copies reach the registers that digests cover.
//!
//!     EVERETT_KERNEL=vmlinux EVERETT_INITRAMFS=initramfs EVERETT_EXITS=20000 \
//!         cargo test --release -p everett-vmm --test kvm -- a_stock_kernel
//!
//! The files are in Everett's cache. The test takes minutes, so it is ignored unless the first two variables are set.

use std::collections::BTreeMap;
use std::path::PathBuf;

use everett_cpu::{CacheConfig, CpuState};
use everett_vmm::ClockMode;
use everett_vmm::boot::{DEFAULT_CMDLINE, EXIT_CMDLINE};
use everett_vmm::digest::registers::compared;
use everett_vmm::engine::any::AnyEngine;
use everett_vmm::engine::counting::CountingEngine;
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::machine::{Machine, MachineConfig, MachineError, Stop, Until};
use everett_vmm::ram::Ram;
use libtest_mimic::Trial;

use crate::makes::Make;
use crate::scripted::Shared;
use crate::trials::{Lacking, Ran, trial};

/// Number of exits, if `EVERETT_EXITS` is not set.
const EXITS: u64 = 20_000;
/// Maximum number of differences that are printed individually.
const TOLD_MAX: u64 = 20;

/// Files to boot.
struct Files {
    kernel: PathBuf,
    initramfs: PathBuf,
}

impl Files {
    /// Returns the files that the environment names.
    fn named() -> Result<Files, Lacking> {
        let file = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .ok_or_else(|| Lacking::new(format!("{name} names no file")))
        };
        Ok(Files { kernel: file("EVERETT_KERNEL")?, initramfs: file("EVERETT_INITRAMFS")? })
    }
}

fn machine(files: &Files, engine: impl Fn(&Ram) -> Result<AnyEngine, MachineError>) -> Machine<AnyEngine> {
    let mut config = MachineConfig::new(&files.kernel);
    config.initramfs = Some(files.initramfs.clone());
    config.cmdline = format!("{DEFAULT_CMDLINE} {EXIT_CMDLINE}");
    config.clock = ClockMode::Exit;
    Machine::new(config, |ram| engine(ram)).expect("a machine")
}

/// Returns the numbers of the general registers that differ.
fn differing(plain: &CpuState, other: &CpuState) -> Vec<usize> {
    (0..16).filter(|&n| plain.gpr[n] != other.gpr[n]).collect()
}

fn compare(make: Make) -> Ran {
    let files = Files::named()?;
    let exits = std::env::var("EVERETT_EXITS").ok().and_then(|n| n.parse().ok()).unwrap_or(EXITS);
    let shared = Shared::sound(1);
    let mut other = machine(&files, |ram| Ok(AnyEngine::Kvm(Box::new(shared.exits_of(ram, make, 1)?))));
    let mut plain = machine(&files, |ram| {
        let soft = SoftEngine::new(ram.shared(), CacheConfig::default());
        Ok(AnyEngine::Counting(Box::new(CountingEngine::exits(soft))))
    });
    let (mut places, mut parted): (u64, BTreeMap<usize, u64>) = (0, BTreeMap::new());
    let (mut told, mut digests) = (0, 0);
    loop {
        let until = Until::icount(plain.icount() + 1);
        let stop = plain.run(&until);
        assert_eq!(other.run(&until), stop);
        places += 1;
        let (a, b) = (compared(ClockMode::Exit, plain.cpu()), compared(ClockMode::Exit, other.cpu()));
        assert_eq!(
            (a.rip, plain.vtime()),
            (b.rip, other.vtime()),
            "at exit {places} the machines are at different places"
        );
        for n in differing(&a, &b) {
            *parted.entry(n).or_default() += 1;
            told += 1;
            if told <= TOLD_MAX {
                eprintln!("exit {places} at {:#x}: register {n} is {:#x} / {:#x}", a.rip, a.gpr[n], b.gpr[n]);
            }
        }
        digests += u64::from(plain.digest() != other.digest());
        if places >= exits || stop != Stop::Count {
            eprintln!(
                "{make:?}: {places} exits to {stop:?}, {} flags replaced, {digests} digests differ, by register: {parted:?}",
                shared.script().replaced
            );
            break;
        }
    }
    assert_eq!(digests, 0, "{make:?}: undefined flags show in {digests} of {places} digests");
    Ok(())
}

fn a_stock_kernel_on_a_processor_as_amds_has_the_same_digests() -> Ran {
    compare(Make::Amd)
}

/// The tests of this module.
pub(crate) fn trials() -> Vec<Trial> {
    vec![trial(a_stock_kernel_on_a_processor_as_amds_has_the_same_digests)]
}
