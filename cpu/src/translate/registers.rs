//! Assignment of guest registers to host registers.
//!
//! Half of the guest's registers are *fixed*: each is held in the same host register in all translated code. [`STACK`]
//! holds RSP; each of the others is in its namesake, because some instructions name it implicitly. Blocks leave fixed
//! registers in place for the next block, and routines store them before any code outside of translations can read
//! them.
//!
//! The other half, R8 to R15, shares the few host registers of [`POOL`]. Each is loaded at its first use, and stored at
//! the block's end or before other code must see it.

use super::asm::{Asm, Host, R15};
use super::frame::slot;
use super::xmm::Vectors;

/// Number of RSP among the guest's registers.
pub(super) const GUEST_RSP: u8 = 4;
/// Host register of the guest's RSP. The host needs its own RSP.
pub(super) const STACK: Host = Host(8);
/// Host registers of the fixed guest registers, RAX to RDI.
pub(super) const FIXED: [Host; 8] = [Host(0), Host(1), Host(2), Host(3), STACK, Host(5), Host(6), Host(7)];
/// Host registers for all other guest registers. At the end of a block, once registers are saved, they are free.
pub(super) const POOL: [Host; 3] = [Host(9), Host(12), Host(14)];

/// State of all registers at one position in a block.
#[derive(Debug, Default)]
pub(super) struct Registers {
    /// Host register of each guest register that is not fixed.
    host_of: [Option<Host>; 16],
    /// Guest registers that are not fixed and whose value is only in their host register.
    dirty: u16,
    /// Guest registers that the current instruction uses.
    pinned: u16,
    used_at: [u32; 16],
    now: u32,
    pub vectors: Vectors,
}

impl Registers {
    pub(super) fn clear(&mut self) {
        *self = Registers::default();
    }
    /// Returns the host register of a guest register. With `load` it holds the guest's value; otherwise the caller
    /// must write all of it. Changes no flags.
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
        // An instruction uses at most three registers besides implicit ones, and those are fixed.
        let victim = oldest.expect("an instruction needs no more registers than there are");
        let host = self.host_of[usize::from(victim)].take().unwrap_or(POOL[0]);
        if self.dirty & 1 << victim != 0 {
            asm.store(R15, slot(victim), host);
            self.dirty &= !(1 << victim);
        }
        host
    }
    /// Notes that a guest register was changed in its host register.
    pub(super) fn wrote(&mut self, guest: u8) {
        if usize::from(guest) >= FIXED.len() {
            debug_assert!(self.host_of[usize::from(guest)].is_some());
            self.dirty |= 1 << guest;
        }
    }
    /// Releases the registers of the current instruction at its end.
    pub(super) fn unpin(&mut self) {
        self.pinned = 0;
    }
    /// Returns the guest registers that are not fixed and must be stored before other code can see them, with their
    /// host registers.
    pub(super) fn unsaved(&self) -> impl Iterator<Item = (u8, Host)> + '_ {
        (0..16).filter(|g| self.dirty & 1 << g != 0).filter_map(|g| Some((g, self.host_of[usize::from(g)]?)))
    }
    /// Emits the stores of all changed registers that are not fixed. Changes no flags.
    pub(super) fn save(&mut self, asm: &mut Asm) {
        for (guest, host) in self.unsaved() {
            asm.store(R15, slot(guest), host);
        }
        self.dirty = 0;
        self.vectors.save(asm);
    }
    /// Forgets all assignments, because other code used the host's registers. All changes must have been stored.
    pub(super) fn forget(&mut self) {
        debug_assert_eq!(self.dirty, 0);
        self.host_of = [None; 16];
        self.vectors.forget();
    }
}
