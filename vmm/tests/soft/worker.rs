//! Guests that first execute a script of stores. Afterwards the `player` sleeps, the `quitter` powers off, and the
//! `worker` computes, and sends and receives frames through its network card as a correct driver does.

use everett_assembler::*;
use virtio_bindings::virtio_mmio as reg;

use crate::card::{CARD, ENTRY_BYTES, HEADER, JUMP, RECEIVE, SCRIPT, SIZE, TRANSMIT, buffer, rings};
use crate::guest::{assemble, count_tick, out, store, timer};

/// Emits code that executes the script to its end. Uses RAX, RBX, RCX and RSI.
fn play(a: &mut Assembler) -> Result<(), Error> {
    let (next, spin, jump, done) = (a.create_label(), a.create_label(), a.create_label(), a.create_label());
    a.mov(rsi, SCRIPT)?;
    a.set_label(next)?;
    a.mov(rbx, qword_ptr(rsi))?;
    a.mov(eax, dword_ptr(rsi + 8))?;
    a.mov(ecx, dword_ptr(rsi + 12))?;
    a.add(rsi, ENTRY_BYTES as i32)?;
    a.cmp(rbx, JUMP as i32)?;
    a.jb(done)?;
    a.je(jump)?;
    a.mov(dword_ptr(rbx), eax)?;
    a.test(ecx, ecx)?;
    a.jz(next)?;
    a.set_label(spin)?;
    a.dec(ecx)?;
    a.jnz(spin)?;
    a.jmp(next)?;
    a.set_label(jump)?;
    a.mov(esi, eax)?;
    a.jmp(next)?;
    a.set_label(done)?;
    a.nop()
}

/// Returns a guest that executes its script and then sleeps forever.
pub(crate) fn player() -> Vec<u8> {
    assemble(|a| {
        play(a)?;
        let forever = a.create_label();
        a.sti()?;
        a.set_label(forever)?;
        a.hlt()?;
        a.jmp(forever)
    })
}

/// Returns a guest that executes its script and then powers off.
pub(crate) fn quitter() -> Vec<u8> {
    assemble(|a| {
        play(a)?;
        out(a, 0x600, 0x34)
    })
}

/// Register in which a worker counts the frames that it has sent.
pub(crate) const SENT: usize = 13;
/// Register in which a worker counts the frames that it has received.
pub(crate) const GOT: usize = 14;
/// Register in which a worker counts the ticks of its timer.
pub(crate) const TICKS: usize = 15;
/// Register that holds the longest time between two rounds of a worker's work, in TSC ticks.
pub(crate) const LONGEST: usize = 12;

/// Returns a guest that executes [`Script::driver`]'s script and then works in rounds: it computes, returns used
/// receive buffers to its network card, and sends a frame with its numbers of sent and received frames. A timer
/// interrupts it. If `sleeps` is true, it halts after each round until the next interrupt.
pub(crate) fn worker(sleeps: bool) -> Vec<u8> {
    assemble(|a| {
        let (handler, round, inner) = (a.create_label(), a.create_label(), a.create_label());
        play(a)?;
        timer(a, 17_001, handler)?;
        note_time(a)?;
        a.xor(r12d, r12d)?;
        a.sti()?;
        a.set_label(round)?;
        a.mov(ecx, 2_000)?;
        a.set_label(inner)?;
        a.imul_3(r8, r8, 0x41c6_4e6d)?;
        a.add(r8, 12_345)?;
        a.dec(ecx)?;
        a.jnz(inner)?;
        note_time(a)?;
        receive(a)?;
        transmit(a)?;
        if sleeps {
            a.hlt()?;
        }
        a.jmp(round)?;
        a.set_label(handler)?;
        count_tick(a)
    })
}

/// Emits code that sets R11 to the current time, and R12 to the longest time between two executions of this code so
/// far.
fn note_time(a: &mut Assembler) -> Result<(), Error> {
    a.rdtsc()?;
    a.shl(rdx, 32)?;
    a.or(rax, rdx)?;
    a.mov(rcx, rax)?;
    a.sub(rcx, r11)?;
    a.mov(r11, rax)?;
    a.cmp(rcx, r12)?;
    a.cmova(r12, rcx)
}

/// Emits code that makes as many receive buffers available as the card has used. The card uses buffers in order.
fn receive(a: &mut Assembler) -> Result<(), Error> {
    let [_, available, used] = rings(RECEIVE);
    a.mov(rbx, used)?;
    a.movzx(eax, word_ptr(rbx + 2))?;
    a.sub(ax, r14w)?;
    a.movzx(eax, ax)?;
    a.add(r14, rax)?;
    a.mov(eax, r14d)?;
    a.add(eax, i32::from(SIZE))?;
    a.mov(rbx, available)?;
    a.mov(word_ptr(rbx + 2), ax)?;
    store(a, CARD + u64::from(reg::VIRTIO_MMIO_QUEUE_NOTIFY), RECEIVE)?;
    a.mov(rbx, CARD)?;
    a.mov(eax, dword_ptr(rbx + reg::VIRTIO_MMIO_INTERRUPT_STATUS as i32))?;
    a.mov(dword_ptr(rbx + reg::VIRTIO_MMIO_INTERRUPT_ACK as i32), eax)
}

fn transmit(a: &mut Assembler) -> Result<(), Error> {
    a.inc(r13)?;
    a.mov(rbx, buffer(TRANSMIT, 0) + u64::from(HEADER) + 14)?;
    a.mov(qword_ptr(rbx), r13)?;
    a.mov(qword_ptr(rbx + 8), r14)?;
    a.mov(rbx, rings(TRANSMIT)[1])?;
    a.mov(word_ptr(rbx + 2), r13w)?;
    store(a, CARD + u64::from(reg::VIRTIO_MMIO_QUEUE_NOTIFY), TRANSMIT)
}
