//! Which host register holds which guest register.
//!
//! Half of the guest's registers are *fixed*: in all translated code one host register holds each of them, RSP's is [`STACK`] and the
//! others' are their namesakes, which instructions name without saying so. Blocks hand them on to each other, and routines store them
//! before anything else than translated code looks.
//!
//! The other half, R8 to R15, is held by few host registers within one block: loaded where first needed, stored at the
//! block's end or where somebody else has to see it.

use super::asm::{Asm, Host, R15};
use super::frame::slot;
use super::vectors::Vectors;

/// Where the guest's RSP is; RSP is the host's own.
pub(super) const STACK: Host = Host(8);
/// The host registers of the guest's first ones.
pub(super) const FIXED: [Host; 8] = [Host(0), Host(1), Host(2), Host(3), STACK, Host(5), Host(6), Host(7)];
/// Hosts for all other guest registers. Between two instructions at a block's end they hold nothing.
pub(super) const POOL: [Host; 3] = [Host(9), Host(12), Host(14)];

/// The state of all registers at one place in a block.
#[derive(Debug, Default)]
pub(super) struct Registers {
    /// Of those that are not fixed.
    host_of: [Option<Host>; 16],
    /// Guest registers that are not fixed and whose value is in their host register only.
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
        // An instruction needs three registers at most, besides those that it names without saying so: which are fixed.
        let victim = oldest.expect("an instruction needs no more registers than there are");
        let host = self.host_of[usize::from(victim)].take().unwrap_or(POOL[0]);
        if self.dirty & 1 << victim != 0 {
            asm.store(R15, slot(victim), host);
            self.dirty &= !(1 << victim);
        }
        host
    }
    /// A guest register was changed in its host register.
    pub(super) fn wrote(&mut self, guest: u8) {
        if usize::from(guest) >= FIXED.len() {
            debug_assert!(self.host_of[usize::from(guest)].is_some());
            self.dirty |= 1 << guest;
        }
    }
    /// The instruction is over.
    pub(super) fn unpin(&mut self) {
        self.pinned = 0;
    }
    /// What has to be stored for others to see everything that is not fixed: guest registers and where they are.
    pub(super) fn unsaved(&self) -> impl Iterator<Item = (u8, Host)> + '_ {
        (0..16).filter(|g| self.dirty & 1 << g != 0).filter_map(|g| Some((g, self.host_of[usize::from(g)]?)))
    }
    /// Store all that was changed and is not fixed. No flags are changed.
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
