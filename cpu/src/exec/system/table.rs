//! Table registers: LGDT, LIDT, LLDT, LTR, SGDT, SIDT, SLDT, STR (SDM vol. 3A, 2.4; UMIP: 2.5).

use super::descriptor::{Descriptor, is_null, null_segment, selector_error};
use super::{ring0, single_operand, source16, store16};
use crate::core::{Core, cr4};
use crate::mem::{Mode, canonical};
use crate::op::{Handler, Kind, Op};
use crate::state::{Segment, TableRegister};
use crate::stop::{Flow, Stop, vector};
use iced_x86::{Instruction, Mnemonic};

/// Type of an LDT descriptor.
const LDT: u8 = 2;
/// Type of an available 64-bit TSS descriptor. A busy TSS has bit 1 set, too.
const TSS_AVAILABLE: u8 = 9;

pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let run: Handler = match i.mnemonic() {
        Mnemonic::Lgdt => lgdt,
        Mnemonic::Lidt => lidt,
        Mnemonic::Sgdt => sgdt,
        Mnemonic::Sidt => sidt,
        Mnemonic::Lldt => lldt,
        Mnemonic::Ltr => ltr,
        Mnemonic::Sldt => sldt,
        Mnemonic::Str => str,
        _ => return None,
    };
    op.run = run;
    if matches!(i.mnemonic(), Mnemonic::Lldt | Mnemonic::Ltr | Mnemonic::Sldt | Mnemonic::Str) {
        single_operand(i, 0, op);
    }
    Some(Kind::Straight)
}

/// Raises #GP(0) if CR4.UMIP forbids stores of system registers at this CPL.
pub(super) fn umip(core: &mut Core) -> Flow {
    if core.cpl != 0 && core.cr4 & cr4::UMIP != 0 { Err(core.gp()) } else { Ok(()) }
}

fn load_register(core: &mut Core, op: &Op) -> Result<TableRegister, Stop> {
    ring0(core)?;
    let va = op.ea(core);
    let limit = core.mem.load::<u16>(va)?;
    let base = core.mem.load::<u64>(va.wrapping_add(2))?;
    if !canonical(base) {
        return Err(core.gp());
    }
    Ok(TableRegister { base, limit })
}

fn lgdt(core: &mut Core, op: &Op) -> Flow {
    core.gdtr = load_register(core, op)?;
    Ok(())
}

fn lidt(core: &mut Core, op: &Op) -> Flow {
    core.idtr = load_register(core, op)?;
    Ok(())
}

fn store_register(core: &mut Core, op: &Op, table: TableRegister) -> Flow {
    umip(core)?;
    let va = op.ea(core);
    core.mem.probe_write(va, 10)?;
    core.mem.store(va, table.limit)?;
    core.mem.store(va.wrapping_add(2), table.base)
}

fn sgdt(core: &mut Core, op: &Op) -> Flow {
    store_register(core, op, core.gdtr)
}

fn sidt(core: &mut Core, op: &Op) -> Flow {
    store_register(core, op, core.idtr)
}

/// Reads a system descriptor of sixteen bytes from the GDT. It must be present and of type `kind`. Returns the segment
/// and the address of the descriptor.
fn system_segment(core: &mut Core, selector: u16, kind: u8) -> Result<(Segment, u64), Stop> {
    let error = selector_error(selector);
    let address = if selector & 4 == 0 { core.descriptor_address(selector, 16) } else { None };
    let Some(at) = address else {
        return Err(core.raise_with(vector::GP, error));
    };
    let low = Descriptor(core.load_table(at)?);
    let high = core.load_table(at.wrapping_add(8))?;
    let base = low.base() | high << 32;
    if low.is_segment() || low.kind() != kind || high & 0x1f00_0000_0000 != 0 || !canonical(base) {
        return Err(core.raise_with(vector::GP, error));
    }
    if !low.present() {
        return Err(core.raise_with(vector::NP, error));
    }
    Ok((Segment { base, ..low.loaded(selector) }, at))
}

fn lldt(core: &mut Core, op: &Op) -> Flow {
    ring0(core)?;
    let selector = source16(core, op)?;
    core.ldtr = if is_null(selector) {
        // The segment is not present, but the type field in the hidden part of LDTR still says LDT.
        Segment { access: u16::from(LDT), ..null_segment(selector) }
    } else {
        system_segment(core, selector, LDT)?.0
    };
    Ok(())
}

fn ltr(core: &mut Core, op: &Op) -> Flow {
    ring0(core)?;
    let selector = source16(core, op)?;
    if is_null(selector) {
        return Err(core.gp());
    }
    let (mut segment, at) = system_segment(core, selector, TSS_AVAILABLE)?;
    segment.access |= 2;
    let busy = segment.access as u8;
    core.with_mode(Mode::Kernel, |mem| mem.store(at.wrapping_add(5), busy))?;
    core.tr = segment;
    Ok(())
}

fn sldt(core: &mut Core, op: &Op) -> Flow {
    umip(core)?;
    let selector = core.ldtr.selector;
    store16(core, op, u64::from(selector))
}

fn str(core: &mut Core, op: &Op) -> Flow {
    umip(core)?;
    let selector = core.tr.selector;
    store16(core, op, u64::from(selector))
}
