//! Which host register holds which guest register, within one block.
//!
//! A guest register is loaded when it is first needed and stored at the block's end, or where somebody else has to see it.
//! RAX, RCX and RDX are only ever held by their namesakes, because instructions name them without saying so.

use super::asm::{Asm, Host, R15};
use super::frame::slot;
use super::vectors::Vectors;

/// Hosts for the guest registers that are not bound to one. RSP is the host's own; 10 to 15 have other uses.
const POOL: [u8; 6] = [3, 5, 6, 7, 8, 9];
/// Guest registers below are bound to their namesakes.
pub(super) const BOUND: u8 = 3;

/// The state of all registers at one place in a block.
#[derive(Debug, Default)]
pub(super) struct Registers {
    host_of: [Option<Host>; 16],
    /// Guest registers whose value is in their host register only.
    dirty: u16,
    /// Guest registers that the current instruction needs.
    pinned: u16,
    used_at: [u32; 16],
    now: u32,
    pub vectors: Vectors,
}

impl Registers {
    pub(super) fn clear(&mut self) {
        *self = Registers::default();
    }
    /// The host register of a guest's, with its value unless it is about to be written whole. No flags are changed.
    pub(super) fn get(&mut self, asm: &mut Asm, guest: u8, load: bool) -> Host {
        self.now += 1;
        self.used_at[usize::from(guest)] = self.now;
        self.pinned |= 1 << guest;
        if let Some(host) = self.host_of[usize::from(guest)] {
            return host;
        }
        let host = self.free(asm, guest);
        if load {
            asm.load(host, R15, slot(guest));
        }
        self.host_of[usize::from(guest)] = Some(host);
        host
    }
    fn free(&mut self, asm: &mut Asm, guest: u8) -> Host {
        if guest < BOUND {
            return Host(guest);
        }
        let taken = |host: u8| self.host_of.contains(&Some(Host(host)));
        // Its namesake first: then it is the same code for every guest register.
        if POOL.contains(&guest) && !taken(guest) {
            return Host(guest);
        }
        if let Some(&host) = POOL.iter().find(|&&host| !taken(host)) {
            return Host(host);
        }
        let oldest = (BOUND..16)
            .filter(|&g| self.host_of[usize::from(g)].is_some() && self.pinned & 1 << g == 0)
            .min_by_key(|&g| self.used_at[usize::from(g)]);
        // An instruction needs four registers at most, and there are six.
        let victim = oldest.unwrap_or(BOUND);
        let host = self.host_of[usize::from(victim)].take().unwrap_or(Host(POOL[0]));
        if self.dirty & 1 << victim != 0 {
            asm.store(R15, slot(victim), host);
            self.dirty &= !(1 << victim);
        }
        host
    }
    /// A guest register was changed in its host register.
    pub(super) fn wrote(&mut self, guest: u8) {
        debug_assert!(self.host_of[usize::from(guest)].is_some());
        self.dirty |= 1 << guest;
    }
    /// The instruction is over.
    pub(super) fn unpin(&mut self) {
        self.pinned = 0;
    }
    /// What has to be stored for others to see everything: guest registers and where they are.
    pub(super) fn unsaved(&self) -> impl Iterator<Item = (u8, Host)> + '_ {
        (0..16).filter(|g| self.dirty & 1 << g != 0).filter_map(|g| Some((g, self.host_of[usize::from(g)]?)))
    }
    /// Store all that was changed. No flags are changed.
    pub(super) fn save(&mut self, asm: &mut Asm) {
        for (guest, host) in self.unsaved() {
            asm.store(R15, slot(guest), host);
        }
        self.dirty = 0;
        self.vectors.save(asm);
    }
    /// Somebody else used the host's registers. What was changed has been stored.
    pub(super) fn forget(&mut self) {
        debug_assert_eq!(self.dirty, 0);
        self.host_of = [None; 16];
        self.vectors.forget();
    }
}
