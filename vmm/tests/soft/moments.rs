//! A restored machine, or a new machine that starts from a moment, continues as the original machine did.

use std::path::Path;
use std::sync::Arc;

use everett_assembler::*;
use everett_cpu::CacheConfig;
use everett_snapshot::{Base, BaseFile, PageImage, Pool};
use everett_vmm::machine::{Moment, MomentError, STATE_VERSION};
use everett_vmm::{Machine, MachineConfig, Trail, Until};
use proptest::prelude::*;

use crate::exact::{HORIZON, INTERVAL, busy, reference};
use crate::guest::{DATA, assemble, config, machine, plain};

/// Vtimes of moments: at digests of the trail, between digests, and close together.
const PLACES: [u64; 8] = [1, 1_000_000, 3_333_333, 3_333_334, 7_000_000, 12_345_678, 19_999_999, 20_000_000];

/// Runs to the vtime [`HORIZON`]. Returns, for each vtime in [`PLACES`], the moment there and the trail up to it.
fn taken(pool: &Pool) -> Vec<(Moment, Trail)> {
    let mut machine = plain(&busy());
    let mut trail = Trail::new(INTERVAL);
    let moments = PLACES.map(|at| {
        trail.run(&mut machine, &Until::vtime(at));
        (machine.moment(pool), trail.clone())
    });
    trail.run(&mut machine, &Until::vtime(HORIZON));
    assert_eq!(reference().first_difference(&trail), None, "moments change nothing");
    moments.into()
}

/// Returns the moment with its memory in a mapped file. Everett stores the memory of a booted world in the same way.
fn on_a_file(moment: &Moment, folder: &Path) -> Moment {
    let path = folder.join("base");
    BaseFile::write(&path, moment.memory()).unwrap();
    let base = Arc::new(Base::File(BaseFile::open(&path).unwrap()));
    moment.on(PageImage::on(base))
}

#[test]
fn every_restored_moment_continues_as_before() {
    let pool = Pool::default();
    let moments = taken(&pool);
    let expected = reference();
    let mut worker = plain(&busy());
    let folder = tempfile::tempdir().unwrap();
    // Restores moments in any order, in the machine of the previous step or in a new one.
    for (step, index) in [7, 0, 3, 3, 2, 6, 1, 5, 4, 0, 7].into_iter().enumerate() {
        let (moment, then) = &moments[index];
        if step % 3 == 2 {
            worker = if step % 2 == 0 { from(moment) } else { from(&on_a_file(moment, folder.path())) };
        } else {
            worker.restore(moment).unwrap();
        }
        assert_eq!(worker.vtime(), moment.vtime());
        assert_eq!(worker.icount(), moment.icount());
        assert_eq!(worker.differing_page(moment), None);
        let mut trail = then.clone();
        trail.run(&mut worker, &Until::vtime(HORIZON - 999 * step as u64));
        let reached = trail.points().len();
        assert_eq!(trail.points(), &expected.points()[..reached], "step {step}, moment {index}");
    }
    drop((worker, moments));
    assert_eq!(pool.stats().pages, 0, "no page is left in the pool");
}

#[test]
fn a_moment_after_a_restore_is_the_same_moment() {
    let pool = Pool::default();
    let moments = taken(&pool);
    let mut worker = plain(&busy());
    for (moment, _) in moments.iter().rev() {
        worker.restore(moment).unwrap();
        let digest = worker.digest();
        let again = worker.moment(&pool);
        assert_eq!(again.state(), moment.state());
        let mut other = plain(&busy());
        other.run(&Until::vtime(5_000_000));
        other.restore(&again).unwrap();
        assert_eq!(other.digest(), digest);
        assert_eq!((worker.differing_page(moment), other.differing_page(moment)), (None, None));
    }
}

#[test]
fn decoded_code_survives_a_restore() {
    let mut machine = plain(&busy());
    machine.run(&Until::vtime(10_000_000));
    let moment = machine.moment(&Pool::default());
    machine.run(&Until::vtime(11_000_000));
    let warm = machine.engine_mut().soft_mut().unwrap().blocks_decoded();
    assert!(warm > 0);
    for _ in 0..10 {
        machine.restore(&moment).unwrap();
        machine.run(&Until::vtime(11_000_000));
    }
    assert_eq!(
        machine.engine_mut().soft_mut().unwrap().blocks_decoded(),
        warm,
        "nothing is decoded again in the millisecond after a restore"
    );
}

/// Code that rewrites one of its own instructions again and again, and sums the results.
fn rewriting() -> Vec<u8> {
    assemble(|a| {
        let (top, place) = (a.create_label(), a.create_label());
        a.set_label(top)?;
        a.inc(rcx)?;
        a.lea(rbx, qword_ptr(place))?;
        a.mov(dword_ptr(rbx + 1), ecx)?;
        a.set_label(place)?;
        a.mov(eax, 0x1234_5678)?;
        a.add(rdx, rax)?;
        a.mov(rdi, DATA)?;
        a.mov(qword_ptr(rdi), rdx)?;
        a.jmp(top)
    })
}

#[test]
fn a_restore_brings_back_code_that_was_rewritten() {
    let digests = |machine: &mut Machine, from: u64| {
        (0..20)
            .map(|i| {
                machine.run(&Until::icount(from + 97 * i));
                machine.digest()
            })
            .collect::<Vec<_>>()
    };
    let mut machine = plain(&rewriting());
    machine.run(&Until::icount(1_003));
    let moment = machine.moment(&Pool::default());
    let expected = digests(&mut machine, 1_003);
    for _ in 0..3 {
        machine.restore(&moment).unwrap();
        assert_eq!(digests(&mut machine, 1_003), expected);
    }
    assert_eq!(digests(&mut from_code(&rewriting(), &moment), 1_003), expected);
}

fn from(moment: &Moment) -> Machine {
    from_code(&busy(), moment)
}

fn from_code(code: &[u8], moment: &Moment) -> Machine {
    start(code, moment, |_| {}).unwrap()
}

fn start(
    code: &[u8],
    moment: &Moment,
    change: impl FnOnce(&mut MachineConfig),
) -> Result<Machine, everett_vmm::MachineError> {
    let (mut config, _folder) = config(code);
    change(&mut config);
    Machine::soft_from_moment(config, moment, CacheConfig::default())
}

#[test]
fn moments_of_other_machines_are_refused() {
    let moment = plain(&busy()).moment(&Pool::default());
    let message = |change: fn(&mut MachineConfig)| start(&busy(), &moment, change).err().unwrap().to_string();
    assert!(message(|c| c.memory_bytes = 64 << 20).contains("pages of memory: 8192 there, 16384 here"));
    assert!(message(|c| c.cpu_hz = 5_000_000).contains("instructions a second"));
    let mut other = machine(&busy(), CacheConfig::default(), |c| {
        c.cards.push(everett_vmm::machine::CardConfig {
            mac: [2; 6],
            wire: everett_vmm::virtio::net::Wire::Unplugged,
        });
    });
    let before = other.digest();
    assert!(matches!(other.restore(&moment), Err(MomentError::Other { what: "devices", .. })));
    assert_eq!(other.digest(), before, "nothing has changed");
}

#[test]
fn other_versions_are_refused_by_name() {
    let moment = plain(&busy()).moment(&Pool::default());
    let parts = |version| Moment::from_parts(version, moment.state().into(), moment.memory().clone(), &[]);
    let again = parts(STATE_VERSION).unwrap();
    assert_eq!((again.vtime(), again.icount()), (moment.vtime(), moment.icount()));
    let error = parts(STATE_VERSION + 1).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("its state has version {}, this program reads version {STATE_VERSION}", STATE_VERSION + 1)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// A machine either rejects a manipulated stored state or runs from it. In the second case, the machine stops at
    /// the requested instruction count or before it. A moment that is then taken of the machine can be restored.
    #[test]
    fn hostile_state_is_harmless(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut machine = plain(&busy());
        machine.run(&Until::vtime(100_000));
        let moment = machine.moment(&Pool::default());
        let mut state = moment.state().to_vec();
        for (index, value) in changes {
            let index = index.index(state.len());
            state[index] = value;
        }
        let made = Moment::from_parts(STATE_VERSION, Arc::from(state), moment.memory().clone(), &[]);
        if let Ok(made) = made && machine.restore(&made).is_ok() {
            let (icount, vtime) = (machine.icount(), machine.vtime());
            let icount = icount.saturating_add(20_000);
            machine.run(&Until { vtime: vtime.saturating_add(1_000_000), ..Until::icount(icount) });
            prop_assert!(machine.icount() <= icount);
            let (digest, again) = (machine.digest(), machine.moment(&Pool::default()));
            prop_assert!(machine.restore(&again).is_ok());
            prop_assert_eq!(machine.digest(), digest);
        }
    }
}
