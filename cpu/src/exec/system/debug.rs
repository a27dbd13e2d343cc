//! Debug registers, breakpoints and single-stepping (SDM vol. 3B, chapter 18).

use super::ring0;
use crate::core::{Core, cr4};
use crate::op::operand::gpr;
use crate::op::{Kind, Op};
use crate::stop::{Flow, Stop, vector};
use iced_x86::{Code, Instruction, Register};

/// DR6.BD: an instruction accessed a debug register while DR7.GD was set.
const DR6_BD: u64 = 1 << 13;
/// DR6.BS: a single step raised #DB.
const DR6_BS: u64 = 1 << 14;
/// Bits of DR6 that always read as set.
const DR6_FIXED: u64 = 0xffff_0ff0;
/// Bits of DR6 that software can write.
const DR6_KNOWN: u64 = 0xf | DR6_BD | DR6_BS | 1 << 15;
/// Bits of DR6 for the four breakpoints.
const DR6_HITS: u64 = 0xf;
/// DR7.GD: an access to a debug register raises #DB.
pub(crate) const GENERAL_DETECT: u64 = 1 << 13;
/// Bit of DR7 that always reads as set.
const DR7_FIXED: u64 = 1 << 10;
/// Bits of DR7 that software can write.
const DR7_KNOWN: u64 = 0xffff_0000 | GENERAL_DETECT | 0x3ff;

pub(super) fn lower(i: &Instruction, op: &mut Op) -> Option<Kind> {
    let number = |r: Register| match r {
        Register::DR0 => Some(0),
        Register::DR1 => Some(1),
        Register::DR2 => Some(2),
        Register::DR3 => Some(3),
        Register::DR4 => Some(4),
        Register::DR5 => Some(5),
        Register::DR6 => Some(6),
        Register::DR7 => Some(7),
        _ => None,
    };
    match i.code() {
        Code::Mov_r64_dr => {
            op.dst = gpr(i.op0_register());
            op.src = number(i.op1_register())?;
            op.run = read;
            Some(Kind::Straight)
        }
        Code::Mov_dr_r64 => {
            op.dst = number(i.op0_register())?;
            op.src = gpr(i.op1_register());
            op.run = write;
            Some(Kind::Ends)
        }
        _ => None,
    }
}

/// Makes the checks that reads and writes share, and returns the number of the register. Unless CR4.DE is set, DR4 and
/// DR5 are aliases of DR6 and DR7.
fn register(core: &mut Core, number: u8) -> Result<u8, Stop> {
    if matches!(number, 4 | 5) && core.cr4 & cr4::DE != 0 {
        return Err(core.ud());
    }
    ring0(core)?;
    if core.dr7 & GENERAL_DETECT != 0 {
        core.dr6 |= DR6_BD;
        return Err(core.raise(vector::DB));
    }
    Ok(if matches!(number, 4 | 5) { number + 2 } else { number })
}

fn read(core: &mut Core, op: &Op) -> Flow {
    let v = match register(core, op.src)? {
        6 => core.dr6,
        7 => core.dr7,
        n => core.dr[usize::from(n & 3)],
    };
    core.regs[(op.dst & 15) as usize] = v;
    Ok(())
}

fn write(core: &mut Core, op: &Op) -> Flow {
    let number = register(core, op.dst)?;
    let v = core.regs[(op.src & 15) as usize];
    if number >= 6 && v >> 32 != 0 {
        return Err(core.gp());
    }
    match number {
        6 => core.dr6 = v & DR6_KNOWN | DR6_FIXED,
        7 => core.dr7 = v & DR7_KNOWN | DR7_FIXED,
        n => core.dr[usize::from(n & 3)] = v,
    }
    core.update_watch();
    Err(Stop::Leave)
}

impl Core {
    /// If an enabled instruction breakpoint is at RIP, delivers #DB and returns true. The run loop calls this before an
    /// instruction if RFLAGS.RF is clear.
    #[cold]
    pub(crate) fn instruction_breakpoint(&mut self) -> bool {
        let mut hits = 0;
        for n in 0..4 {
            let enabled = self.dr7 >> (2 * n) & 3 != 0;
            // For an instruction breakpoint, R/W and LEN are both zero.
            let executes = self.dr7 >> (16 + 4 * n) & 0xf == 0;
            if enabled && executes && self.dr[n] == self.rip {
                hits |= 1 << n;
            }
        }
        if hits == 0 {
            return false;
        }
        self.dr6 = self.dr6 & !DR6_HITS | hits;
        self.deliver_debug();
        true
    }
    /// Delivers #DB after an instruction that hit data breakpoints (`hits`), or that began with RFLAGS.TF set
    /// (`stepping`). There is no single-step trap after INT n, INT3, INT1 or SYSCALL if the instruction cleared TF.
    /// After MOV SS, the single-step trap happens one instruction later.
    pub(crate) fn debug_trap(&mut self, stepping: bool, hits: u64) {
        let entered = std::mem::take(&mut self.no_trap);
        let step = stepping && !entered && !self.shadow;
        if !step && hits == 0 {
            return;
        }
        if hits != 0 {
            self.dr6 = self.dr6 & !DR6_HITS | hits;
        }
        if step {
            self.dr6 |= DR6_BS;
        }
        self.deliver_debug();
    }
}
