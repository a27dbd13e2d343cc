//! Assignment of guest registers to host registers.
//!
//! RAX to RDI are *fixed*: each is in the same host register in all translated code. RSP is in [`STACK`]. The others
//! are in their namesakes, because some instructions use them implicitly. Blocks leave fixed registers in place for the
//! next block. Code that all translations share (`routines`) stores the fixed registers in the CPU's register
//! array before untranslated code can read them.
//!
//! R8 to R15 share the few host registers of [`POOL`]. A block loads each of these registers at its first use, and
//! stores it in the register array at the end of the block, or earlier if untranslated code must see it.

use super::asm::{Asm, Host, R15};
use super::frame::slot;
use super::xmm::Vectors;

/// Number of RSP as a guest register.
pub(super) const GUEST_RSP: u8 = 4;
/// Host register of the guest's RSP. The host needs its own RSP.
pub(super) const STACK: Host = Host(8);
/// Host registers of the fixed guest registers, RAX to RDI.
pub(super) const FIXED: [Host; 8] = [Host(0), Host(1), Host(2), Host(3), STACK, Host(5), Host(6), Host(7)];
/// Host registers for all other guest registers. At the end of a block, once guest registers are saved, emitted code
/// may use these registers freely.
pub(super) const POOL: [Host; 3] = [Host(9), Host(12), Host(14)];

/// Assignment of registers at one position in a block.
#[derive(Debug, Default)]
pub(super) struct Registers {
    /// Host register of each guest register that is not fixed.
    host_of: [Option<Host>; 16],
    /// Guest registers, other than fixed ones, whose value is only in their host register.
    dirty: u16,
    /// Guest registers that the current instruction uses, and whose host register must not be reassigned.
    pinned: u16,
    used_at: [u32; 16],
    now: u32,
    pub vectors: Vectors,
}

impl Registers {
    pub(super) fn clear(&mut self) {
        *self = Registers::default();
    }
    /// Returns the host register of a guest register. With `load` it contains the guest's value. Without `load` the
    /// caller must write the whole register. Changes no flags.
    pub(super) fn get(&mut self, asm: &mut Asm, guest: u8, load: bool) -> Host {
        if let Some(&host) = FIXED.get(usize::from(guest)) {
            return host;
        }
        self.now += 1;
        self.used_at[usize::from(guest)] = self.now;
        self.pinned |= 1 << guest;
        if let Some(host) = self.host_of[usize::from(guest)] {
            return host;
        }
        let host = self.free(asm);
        if load {
            asm.load(host, R15, slot(guest));
        }
        self.host_of[usize::from(guest)] = Some(host);
        host
    }
    fn free(&mut self, asm: &mut Asm) -> Host {
        if let Some(&host) = POOL.iter().find(|&&host| !self.host_of.contains(&Some(host))) {
            return host;
        }
        let oldest = (0..16)
            .filter(|&g| self.host_of[usize::from(g)].is_some() && self.pinned & 1 << g == 0)
            .min_by_key(|&g| self.used_at[usize::from(g)]);
        // An instruction uses at most three registers that are not fixed, as many as the pool has.
        let victim = oldest.expect("an instruction needs no more registers than there are");
        let host = self.host_of[usize::from(victim)].take().unwrap_or(POOL[0]);
        if self.dirty & 1 << victim != 0 {
            asm.store(R15, slot(victim), host);
            self.dirty &= !(1 << victim);
        }
        host
    }
    /// Records that a guest register was changed in its host register.
    pub(super) fn wrote(&mut self, guest: u8) {
        if usize::from(guest) >= FIXED.len() {
            debug_assert!(self.host_of[usize::from(guest)].is_some());
            self.dirty |= 1 << guest;
        }
    }
    /// Allows all host registers to be reassigned, at the end of an instruction.
    pub(super) fn unpin(&mut self) {
        self.pinned = 0;
    }
    /// Returns the guest registers, other than fixed ones, that must be stored before other code can read them. Each
    /// comes with its host register.
    pub(super) fn unsaved(&self) -> impl Iterator<Item = (u8, Host)> + '_ {
        (0..16).filter(|g| self.dirty & 1 << g != 0).filter_map(|g| Some((g, self.host_of[usize::from(g)]?)))
    }
    /// Emits stores of all changed registers except fixed ones. Changes no flags.
    pub(super) fn save(&mut self, asm: &mut Asm) {
        for (guest, host) in self.unsaved() {
            asm.store(R15, slot(guest), host);
        }
        self.dirty = 0;
        self.vectors.save(asm);
    }
    /// Forgets all assignments, because other code has used the host registers. All changed registers must be saved.
    pub(super) fn forget(&mut self) {
        debug_assert_eq!(self.dirty, 0);
        self.host_of = [None; 16];
        self.vectors.forget();
    }
}
