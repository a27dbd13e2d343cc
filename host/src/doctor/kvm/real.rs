//! The actual host, which runs probe guests (a few instructions each that test one property of KVM) on `/dev/kvm`.

use std::sync::Arc;
use std::time::Duration;

use everett_input::causes::with_causes;
use everett_vmm::kvm::state::PASSED_THROUGH;
use everett_vmm::kvm::{HeldTsc, Host as Device, KvmExit, PerfCounter, SlowTsc, Ticker, Vcpu, Vm};
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

use super::guest::{
    DATA, Guest, HELD_TSC, INTERRUPT_VECTOR, PRESENT_WRITABLE_USER, RAM_BYTES, SWAPPED_ENTRY, Tsc, USED_BYTES,
};
use super::host::{End, Host, Ran};
use super::tsc_scaling;
use crate::doctor::perf;
use crate::time::Stopwatch;

/// Interval between two checks whether a guest exceeds its time limit.
const TICK: Duration = Duration::from_millis(5);
const PAGE: u64 = 4096;
/// Index of RSP among the general registers.
const STACK_POINTER: usize = 4;
/// Number of checks after which a guest has exceeded its time limit: about one second.
const TICKS_MAX: u64 = 200;

/// A host that runs guests on `/dev/kvm`.
///
/// Most guests run one after the other on the same virtual machine. A new machine for each guest would take too long:
/// when a machine is destroyed, KVM waits some 20 ms until nothing reads its data, and the most thorough examination
/// of a host (`Effort::Proof`) runs more than ten thousand guests.
#[derive(Debug)]
pub struct Real {
    device: Device,
    /// Machine of the last guest, if the next guest can use it.
    spare: Option<Machine>,
}

/// A virtual machine with one vCPU.
#[derive(Debug)]
struct Machine {
    // This field comes before the memory, so that KVM releases the memory before it is freed.
    vcpu: Vcpu,
    vm: Arc<Vm>,
    memory: Arc<GuestMemoryMmap<()>>,
}

impl Machine {
    fn new(device: &Device, apic_base: u64) -> Result<Machine, String> {
        let memory = GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), RAM_BYTES)]).map_err(text)?;
        let memory = Arc::new(memory);
        let vm = Arc::new(Vm::new(device, Arc::clone(&memory)).map_err(text)?);
        let vcpu = Vcpu::new(&vm, apic_base).map_err(text)?;
        Ok(Machine { vcpu, vm, memory })
    }
}

/// True if the guest changes no state in KVM except registers and memory, both of which the next guest overwrites. The
/// guest must also have the page tables that most guests have: a KVM that shadows page tables does not notice that the
/// next guest has other tables.
fn leaves_nothing(guest: &Guest) -> bool {
    let has_usual_tables = !guest.kernel_pages && !guest.swaps;
    guest.tsc == Tsc::Free
        && guest.event.is_none()
        && !guest.filter_msrs
        && !guest.interrupt
        && has_usual_tables
}

impl Real {
    /// Creates a host that runs guests on this device.
    #[must_use]
    pub fn new(device: Device) -> Real {
        Real { device, spare: None }
    }
}

fn text(error: impl std::error::Error + 'static) -> String {
    with_causes(&error)
}

impl Host for Real {
    fn capability(&mut self, number: u32) -> Result<u32, String> {
        self.device.capability(number).map_err(text)
    }

    fn tsc_control_lacks(&mut self) -> Option<String> {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").ok()?;
        let parameter = std::fs::read_to_string("/sys/module/kvm_amd/parameters/tsc_scaling").ok();
        tsc_scaling::lacking(&cpuinfo, parameter.as_deref())
    }

    fn run(&mut self, guest: &Guest) -> Result<Ran, String> {
        let registers = guest.registers();
        let plain = leaves_nothing(guest);
        let machine = match self.spare.take_if(|_| plain) {
            Some(machine) => machine,
            None => Machine::new(&self.device, registers.msrs.apic_base)?,
        };
        let Machine { mut vcpu, vm, memory } = machine;
        memory.write_slice(&guest.memory()[..USED_BYTES], GuestAddress(0)).map_err(text)?;
        if guest.filter_msrs && !vm.filter_msrs(&PASSED_THROUGH).map_err(text)? {
            return Err("this kernel has no MSR filter".to_owned());
        }
        // The kvm engine also slows the guest's TSC down, to keep it at a chosen value while the guest runs.
        let mut tsc = match guest.tsc {
            Tsc::Slow => Some(SlowTsc::new(&vcpu).map_err(text)?),
            Tsc::Free => None,
        };
        vcpu.load(&registers).map_err(text)?;
        vm.take_dirty_pages().map_err(text)?;
        let counting = |error: std::io::Error| perf::explain(&error);
        let mut counter = match guest.event {
            Some((event, after)) => {
                let mut counter = PerfCounter::open(event).map_err(counting)?;
                counter.start(after.unwrap_or(u64::MAX)).map_err(counting)?;
                Some(counter)
            }
            None => None,
        };
        let mut seen =
            Seen { overflows: guest.event.is_some_and(|(_, after)| after.is_some()), ..Seen::default() };
        let ticker = Ticker::start(TICK).map_err(text)?;
        let watch = Stopwatch::start();
        if let Some(tsc) = &mut tsc {
            tsc.hold(HELD_TSC).map_err(text)?;
        }
        let swapped = guest.swaps.then_some(&*memory);
        let end = drive(&mut vcpu, guest, &ticker, &mut seen, swapped)?;
        let moved = tsc.as_mut().map(SlowTsc::has_moved).transpose().map_err(text)?;
        let nanoseconds = u64::try_from(watch.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let counted = match &mut counter {
            Some(counter) => Some(counter.counted().map_err(counting)?.ok_or("all counters are taken")?),
            None => None,
        };
        drop(ticker);
        let gpr = vcpu.save().map_err(text)?.state.gpr;
        let mut image = vec![0; USED_BYTES];
        memory.read_slice(&mut image, GuestAddress(0)).map_err(text)?;
        let dirty = vm.take_dirty_pages().map_err(text)?;
        if plain && end == End::Halted {
            self.spare = Some(Machine { vcpu, vm, memory });
        }
        Ok(Ran {
            end,
            vector: Guest::vector(&image),
            gpr,
            top: Guest::top(&image, gpr[STACK_POINTER]),
            exits: seen.exits,
            msr_exits: seen.msr_exits,
            stale: seen.stale,
            nanoseconds,
            dirty,
            counted,
            moved,
        })
    }
}

#[derive(Default)]
struct Seen {
    exits: u64,
    msr_exits: u64,
    /// Number of times that the host replaced the page that is mapped at the guest-virtual address `SWAPPED`. The first
    /// byte of the mapped page is this number.
    swaps: u64,
    stale: u64,
    /// True if the guest's performance counter is set to overflow. A signal that interrupts the guest may then come
    /// from the counter or from the ticker, which sends a signal every [`TICK`].
    overflows: bool,
}

fn drive(
    vcpu: &mut Vcpu,
    guest: &Guest,
    ticker: &Ticker,
    seen: &mut Seen,
    swapped: Option<&GuestMemoryMmap<()>>,
) -> Result<End, String> {
    let mut interrupt = guest.interrupt;
    loop {
        vcpu.request_window(interrupt);
        let exit = vcpu.run().map_err(text)?;
        seen.exits += 1;
        match exit {
            KvmExit::Halt => return Ok(End::Halted),
            KvmExit::Shutdown => return Ok(End::Shutdown),
            KvmExit::Failure(_) => return Ok(End::Failed),
            KvmExit::Interrupted => {
                seen.exits -= 1;
                if seen.overflows && PerfCounter::has_overflowed() {
                    return Ok(End::Overflow);
                }
            }
            KvmExit::Window => {
                if std::mem::take(&mut interrupt) {
                    vcpu.interrupt(INTERRUPT_VECTOR).map_err(text)?;
                }
            }
            KvmExit::MmioRead { .. } => vcpu.answer_mmio(0),
            KvmExit::MsrRead { .. } | KvmExit::MsrWrite { .. } => {
                seen.msr_exits += 1;
                vcpu.answer_msr(Some(0));
            }
            KvmExit::PioRead { size, count, .. } => vcpu.port_data(size, count).fill(0),
            KvmExit::MmioWrite { value, .. } => {
                if let Some(memory) = swapped {
                    seen.stale += u64::from(value != seen.swaps);
                    seen.swaps += 1;
                    vcpu.finish().map_err(text)?;
                    swap(memory, seen.swaps)?;
                    vcpu.flush_translations().map_err(text)?;
                }
            }
            KvmExit::PioWrite { .. } | KvmExit::Priority => {}
            KvmExit::Debug => return Ok(End::Other(format!("{exit:?}"))),
        }
        if ticker.ticks() > TICKS_MAX {
            return Ok(End::TimedOut);
        }
    }
}

/// Stores `number` to the next of four pages, and maps this page at the guest-virtual address `SWAPPED`.
fn swap(memory: &GuestMemoryMmap<()>, number: u64) -> Result<(), String> {
    let page = DATA + number % 4 * PAGE;
    memory.write_obj(number as u8, GuestAddress(page)).map_err(text)?;
    memory.write_obj(page | PRESENT_WRITABLE_USER, GuestAddress(SWAPPED_ENTRY)).map_err(text)
}
