//! Machines with other CPU models than `v2`: the registers of XSAVE and AVX are part of moments and digests.

use everett_assembler::*;
use everett_cpu::{CacheConfig, Code, CpuModel, CpuState};
use everett_snapshot::Pool;
use everett_vmm::engine::Engine as _;
use everett_vmm::engine::soft::SoftEngine;
use everett_vmm::machine::{MachineError, Moment, MomentError, STATE_VERSION};
use everett_vmm::{Machine, Until};

use crate::guest::{assemble, config, machine, plain};

/// Bit of CR4 that switches XSAVE on.
const OSXSAVE: i32 = 1 << 18;

/// Code that counts in a byte of each half of YMM1.
fn counting() -> Vec<u8> {
    assemble(|a| {
        let again = a.create_label();
        a.mov(rax, cr4)?;
        a.or(rax, OSXSAVE)?;
        a.mov(cr4, rax)?;
        a.xor(ecx, ecx)?;
        a.xor(edx, edx)?;
        a.mov(eax, 7)?;
        // XSETBV, VPCMPEQB YMM2, YMM2, YMM2, and in the loop VPSUBB YMM1, YMM1, YMM2.
        a.db(&[0x0f, 0x01, 0xd1])?;
        a.db(&[0xc5, 0xed, 0x74, 0xd2])?;
        a.set_label(again)?;
        a.db(&[0xc5, 0xf5, 0xf8, 0xca])?;
        a.jmp(again)
    })
}

fn counting_machine() -> Machine {
    machine(&counting(), CacheConfig::default(), |config| config.cpu = CpuModel::V3)
}

#[test]
fn moments_and_digests_have_the_upper_halves() {
    let pool = Pool::default();
    let mut first = counting_machine();
    first.run(&Until::vtime(1_000));
    let (moment, then) = (first.moment(&pool), first.breakdown());
    first.run(&Until::vtime(1_002));
    let extended = |machine: &mut Machine| machine.cpu().extended;
    let later = extended(&mut first);
    assert_ne!(later.ymm[1], 0);
    first.run(&Until::vtime(2_000));
    let end = first.digest();

    let mut second = counting_machine();
    second.restore(&moment).unwrap();
    assert_eq!(second.breakdown(), then);
    assert_eq!(second.moment(&pool).state(), moment.state());
    second.run(&Until::vtime(1_002));
    assert_eq!(extended(&mut second), later);
    second.run(&Until::vtime(2_000));
    assert_eq!(second.digest(), end);

    // The digest covers the upper halves alone, too.
    let mut state = second.cpu();
    state.extended.ymm[9] ^= 1;
    second.engine_mut().soft_mut().unwrap().set_state(&state);
    assert_ne!(second.digest(), end);
}

#[test]
fn a_moment_belongs_to_its_model() {
    let pool = Pool::default();
    let moment = counting_machine().moment(&pool);
    let error = plain(&counting()).restore(&moment).unwrap_err();
    assert_eq!(error.to_string(), "it was taken on another kind of machine: CPU model: v3 there, v2 here");
    let error = counting_machine().restore(&plain(&counting()).moment(&pool)).unwrap_err();
    assert_eq!(error.to_string(), "it was taken on another kind of machine: CPU model: v2 there, v3 here");
}

#[test]
fn damaged_moments_of_a_model_are_refused() {
    let pool = Pool::default();
    let moment = counting_machine().moment(&pool);
    let with = |state: Vec<u8>| {
        Moment::from_parts(STATE_VERSION, state.into(), moment.memory().clone(), &[]).map(drop)
    };
    let state = moment.state();
    assert_eq!(with(state.to_vec()), Ok(()));
    let plain = plain(&counting()).moment(&pool).state().len();
    // Each cut within the registers of the model, and a byte too many.
    for len in plain + 1..state.len() {
        assert!(matches!(with(state[..len].to_vec()), Err(MomentError::Damaged(_))), "{len}");
    }
    assert!(matches!(with([state, &[0]].concat()), Err(MomentError::Damaged(_))));
    // The name of the model follows its length.
    assert_eq!(state[plain..plain + 3], *b"\x02v3");
    for name in [b"\x02v2", b"\x02v4"] {
        let mut state = state.to_vec();
        state[plain..plain + 3].copy_from_slice(name);
        assert!(matches!(with(state), Err(MomentError::Damaged(_))));
    }
}

#[test]
fn moments_with_registers_that_no_cpu_of_the_model_has_are_refused() {
    let pool = Pool::default();
    let refused = |mut machine: Machine, change: fn(&mut CpuState)| {
        let mut state = machine.cpu();
        change(&mut state);
        machine.engine_mut().set_state(&state);
        let moment = machine.moment(&pool);
        machine.restore(&moment).is_err()
    };
    assert!(!refused(counting_machine(), |s| s.extended.xcr0 = 7));
    // XSETBV refuses this value, and engines load what they are given.
    assert!(refused(counting_machine(), |s| s.extended.xcr0 = 5));
    assert!(!refused(plain(&counting()), |_| ()));
    assert!(refused(plain(&counting()), |s| s.cr4 |= OSXSAVE as u64));
}

#[test]
fn an_engine_of_another_model_is_refused() {
    let (mut config, _folder) = config(&counting());
    config.cpu = CpuModel::V3;
    let code = Code::new(CacheConfig::default());
    let error =
        Machine::new(config, |ram| Ok(SoftEngine::sharing(ram.shared(), &code))).map(drop).unwrap_err();
    assert!(matches!(error, MachineError::Cpu { cpu: CpuModel::V3, engine: CpuModel::V2 }), "{error}");
}
