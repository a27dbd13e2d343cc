//! A stock kernel in clock mode `exit`, on the soft CPU (Everett's own CPU) and on another processor, compared at each
//! exit. The other processor is this host's, or a soft CPU that leaves AMD's values in undefined status flags. In the
//! second case, the test shows whether the kernel copies undefined flags to a place where they change digests.
//!
//!     EVERETT_KERNEL=vmlinux EVERETT_INITRAMFS=initramfs EVERETT_EXITS=20000 \
//!         cargo test --release -p everett-vmm --test kvm -- a_stock_kernel
//!
//! Both files are in Everett's cache. The tests take minutes, so they are ignored if `EVERETT_KERNEL` or
//! `EVERETT_INITRAMFS` is not set. On a host whose KVM cannot control the TSC (`KVM_CAP_TSC_CONTROL`) the two runs
//! differ, because a stock kernel takes random numbers from the TSC.

use std::path::PathBuf;

use everett_vmm::ClockMode;
use everett_vmm::boot::{DEFAULT_CMDLINE, EXIT_CMDLINE};
use everett_vmm::digest::registers::compared;
use everett_vmm::engine::any::AnyEngine;
use everett_vmm::engine::kvm::{KvmEngine, Proved};
use everett_vmm::kvm::KvmError;
use everett_vmm::kvm::host::KVM_CAP_TSC_CONTROL;
use everett_vmm::machine::{Machine, MachineConfig, MachineError, Stop, Until};
use everett_vmm::ram::Ram;
use libtest_mimic::Trial;

use crate::lacks::ticking_host;
use crate::lockstep::{Gates, difference};
use crate::makes::Make;
use crate::scripted::Shared;
use crate::small::plain_in;
use crate::trials::{Lacking, Ran, trial};

/// Number of exits that the test compares, if the environment variable `EVERETT_EXITS` is not set.
const EXITS: u64 = 20_000;
/// Maximum number of differences that the test prints one by one.
const TOLD_MAX: u64 = 20;

/// Files to boot.
struct Files {
    kernel: PathBuf,
    initramfs: PathBuf,
}

impl Files {
    /// Returns the files that the environment variables name.
    fn named() -> Result<Files, Lacking> {
        let file = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .ok_or_else(|| Lacking::new(format!("{name} names no file")))
        };
        Ok(Files { kernel: file("EVERETT_KERNEL")?, initramfs: file("EVERETT_INITRAMFS")? })
    }
}

fn machine(files: &Files, engine: impl Fn(&Ram) -> Result<AnyEngine, MachineError>) -> Machine {
    let mut config = MachineConfig::new(&files.kernel);
    config.initramfs = Some(files.initramfs.clone());
    config.cmdline = format!("{DEFAULT_CMDLINE} {EXIT_CMDLINE}");
    config.clock = ClockMode::Exit;
    Machine::new(config, |ram| engine(ram)).expect("a machine")
}

/// Runs the kernel on the soft CPU and on `other` side by side. `name` is the name of the other processor.
fn compare(name: &str, other: impl Fn(&Ram) -> Result<KvmEngine, KvmError>) -> Ran {
    let files = Files::named()?;
    let exits = crate::number_or("EVERETT_EXITS", EXITS);
    let mut other = machine(&files, |ram| Ok(other(ram)?.into()));
    let mut plain = machine(&files, |ram| Ok(plain_in(ClockMode::Exit, ram)));
    let (mut places, mut parted, mut digests) = (0, 0, 0);
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
        if let Some(difference) = difference(&a, &b) {
            parted += 1;
            if parted <= TOLD_MAX {
                eprintln!("exit {places} at {:#x}: {difference}", a.rip);
            }
        }
        digests += u64::from(plain.digest() != other.digest());
        if places >= exits || stop != Stop::Count {
            break;
        }
    }
    eprintln!("{name}: {places} exits; registers differ at {parted}, digests at {digests}");
    assert_eq!(digests, 0, "{name}: {digests} of {places} digests differ");
    Ok(())
}

fn a_stock_kernel_on_a_processor_as_amds_has_the_same_digests() -> Ran {
    let shared = Shared::sound(1);
    compare("a scripted AMD", |ram| shared.exits_of(ram, Make::Amd, 1))?;
    eprintln!("{} flags were replaced", shared.script().replaced);
    Ok(())
}

fn a_stock_kernel_on_this_hosts_kvm_has_the_same_digests() -> Ran {
    let (host, _ticker) = ticking_host(Gates::Open)?;
    let tsc = host.capability(KVM_CAP_TSC_CONTROL).expect("an answer") > 0;
    let proved = Proved { tsc, system_calls: true, ..Proved::default() };
    compare("/dev/kvm", |ram| KvmEngine::new(&host, ram.shared(), proved))
}

/// The tests of this module.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(a_stock_kernel_on_a_processor_as_amds_has_the_same_digests),
        trial(a_stock_kernel_on_this_hosts_kvm_has_the_same_digests),
    ]
}
