//! Code that is executed repeatedly, and then moves or changes: its mapping, the root of the page tables, or the page's
//! content changes. The next branch must reach the new code. This also holds for a return from a call that was made
//! before the change.

use super::harness::check;
use super::image::*;
use everett_assembler::*;

/// Linear address of a second mapping of all RAM, in the upper half.
const KERNEL: u64 = 0xffff_ffff_8000_0000;
/// Linear address of the page that does not change.
const STAYS: u64 = CODE + 0x1000;
const STAYS_FOR_RING_3: u64 = USER + 0x1000;
/// Page with the code before the change. The changing address is mapped to this page or to [`AFTER`], which has the
/// code after the change.
const BEFORE: u64 = DATA;
const AFTER: u64 = DATA + 0x1000;
/// Distance from the unchanged page to the changing one, except for [`Whose::Mixed`]. A direct call can reach this far.
const DISTANCE: u64 = 0x1000_0000;
/// Linear address at which ring 3 accesses the page table.
const TABLE_FOR_RING_3: u64 = USER + 0x10_0000;
const PAGE_FOR_RING_3: u64 = USER + 0x10_1000;
/// Number that a guest adds and subtracts again. It is so large that the immediate operand of ADD takes four bytes,
/// which a store of a doubleword can replace ([`Change::Content`]).
const LONG: i32 = 0x1_0000;
/// Vector of the gate through which ring 3 changes the root of the page tables.
const GATE: u8 = 0x80;

/// Ring that executes the code, and location of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// Ring 0, with both pages in the lower half.
    Low,
    /// Ring 0, with both pages in the upper half.
    High,
    /// Ring 0, with the unchanged page in the upper half and the changing page in the lower half.
    Mixed,
    /// Ring 3, with both pages in the lower half.
    User,
}

/// Way in which the unchanged page reaches the changing page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By a direct call.
    Direct,
    /// By an indirect call.
    Indirect,
    /// By a jump. Another jump leads back.
    Jump,
    /// By a return. The changing page made the call.
    Return,
    /// By a return that the CPU mispredicts. The CPU keeps the last calls in a ring buffer and predicts that a return
    /// belongs to the newest call. The unchanged page made one more call and dropped its return address.
    LateReturn,
}

/// Kind of the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The lowest paging entry changes.
    Leaf,
    /// A paging entry of a higher level changes.
    Branch,
    /// CR3 changes.
    Root,
    /// The content of the page changes.
    Content,
}

/// Runs a guest that reaches the changing page 200 times, with the change in the middle.
fn run(whose: Whose, way: Way, change: Change) {
    let mut g = Guest::new();
    for at in (0..RAM_BYTES as u64).step_by(4096) {
        g.map(KERNEL + at, at, P | W);
    }
    let user = if whose == Whose::User { U } else { 0 };
    let data = if matches!(whose, Whose::High | Whose::Mixed) { KERNEL } else { 0 };
    let (stays_at, stays) = match whose {
        Whose::User => (STAYS_FOR_RING_3, STAYS_FOR_RING_3),
        _ => (STAYS, data + STAYS),
    };
    let changes = if whose == Whose::Mixed { ELSEWHERE } else { stays + DISTANCE };
    g.map(changes, BEFORE, P | W | user);

    // A page walk sets accessed bits in the current root only. Both roots get their accessed bits in advance, so that
    // no page walk makes their upper halves differ. When CR3 changes, the CPU keeps TLB entries of the upper half only
    // if these halves are equal.
    for at in (0..4096).step_by(8).map(|at| PML4 + at) {
        let entry = g.word(at);
        g.put(at, entry | if entry & P != 0 { A } else { 0 });
    }
    // Another root, whose tables differ only on the path to the changing page.
    let leaf = g.entry(changes, 1);
    let mut other = Vec::new();
    for level in (1..=4).rev() {
        let (from, to) = (g.entry(changes, level), g.table());
        g.ram.copy_within((from & !0xfff) as usize..(from & !0xfff) as usize + 4096, to as usize);
        other.push((to, to + (from & 0xfff)));
    }
    for pair in other.windows(2) {
        g.put(pair[0].1, pair[1].0 | P | W | U | A);
    }
    g.put(other[3].1, AFTER | P | W | user);
    let (root, branch, other_table) = (other[0].0, g.entry(changes, 2), other[3].0);

    let (mut entry, mut content) = (data + leaf, data + BEFORE);
    if whose == Whose::User {
        let table = if change == Change::Branch { branch } else { leaf };
        g.map(TABLE_FOR_RING_3, table & !0xfff, P | W | U);
        g.map(PAGE_FOR_RING_3, BEFORE, P | W | U);
        (entry, content) = (TABLE_FOR_RING_3 + (table & 0xfff), PAGE_FOR_RING_3);
        g.gate(GATE, CODE, 0xee, 0);
        g.code(CODE, |a| {
            a.mov(rdx, root)?;
            a.mov(cr3, rdx)?;
            a.iretq()
        });
    } else if change == Change::Branch {
        entry = data + branch;
    }
    let flip =
        if change == Change::Branch { g.word(branch) ^ (other_table | P | W | U) } else { BEFORE ^ AFTER };
    // Offset of ADD's immediate operand in the changing page: after the opcode of ADD, or after a call of five bytes
    // and this opcode.
    let number = if matches!(way, Way::Direct | Way::Indirect | Way::Jump) { 2 } else { 5 + 2 };
    let event = |a: &mut Assembler| -> Result<(), Error> {
        match change {
            Change::Leaf | Change::Branch => a.xor(qword_ptr(rdi), rsi),
            Change::Root if whose == Whose::User => a.int(i32::from(GATE)),
            Change::Root => a.mov(cr3, rdx),
            Change::Content => a.mov(dword_ptr(r8 + number), LONG + 0x100),
        }
    };
    let halt = |a: &mut Assembler| {
        if whose == Whose::User { exit(a) } else { a.hlt() }
    };
    if number == 2 {
        g.code_for(stays_at, stays, |a| {
            let (again, done, same) = (a.create_label(), a.create_label(), a.create_label());
            a.set_label(again)?;
            match way {
                Way::Direct => a.call(changes)?,
                Way::Indirect => a.call(r9)?,
                _ => {
                    a.lea(r10, ptr(same))?;
                    if whose == Whose::Mixed { a.jmp(r9)? } else { a.jmp(changes)? }
                }
            }
            a.set_label(same)?;
            a.dec(ecx)?;
            a.jz(done)?;
            a.cmp(ecx, 100)?;
            a.jne(again)?;
            event(a)?;
            a.jmp(again)?;
            a.set_label(done)?;
            halt(a)
        });
        for (page, add) in [(BEFORE, 1), (AFTER, 0x100)] {
            g.code_for(page, changes, |a| {
                a.add(ebx, LONG + add)?;
                a.sub(ebx, LONG)?;
                if way == Way::Jump { a.jmp(r10) } else { a.ret() }
            });
        }
    } else {
        for (page, add) in [(BEFORE, 1), (AFTER, 0x100)] {
            g.code_for(page, changes, |a| {
                let again = a.create_label();
                a.set_label(again)?;
                if whose == Whose::Mixed {
                    a.call(r9)?;
                    // Pads the code to the length of a direct call.
                    a.db(&[0x66, 0x90])?;
                } else {
                    a.call(stays)?;
                }
                a.add(ebx, LONG + add)?;
                a.sub(ebx, LONG)?;
                a.dec(ecx)?;
                a.jnz(again)?;
                halt(a)
            });
        }
        g.code_for(stays_at, stays, |a| {
            let (same, elsewhere) = (a.create_label(), a.create_label());
            a.cmp(ecx, 100)?;
            a.jne(same)?;
            event(a)?;
            a.set_label(same)?;
            if way == Way::LateReturn {
                // Makes one more call and drops its return address.
                a.call(elsewhere)?;
                a.set_label(elsewhere)?;
                a.add(rsp, 8)?;
            }
            a.ret()
        });
    }
    let start = if number == 2 { stays } else { changes };
    if whose == Whose::User {
        g.start_in_ring_3(start);
    } else {
        g.state.gpr[4] = data + STACK;
        g.code(CODE, |a| {
            // A reload of CR3 drops the TLB entries of the lower half.
            a.mov(rax, cr3)?;
            a.mov(cr3, rax)?;
            a.mov(rax, start)?;
            a.jmp(rax)
        });
    }
    let gpr = &mut g.state.gpr;
    (gpr[1], gpr[2], gpr[6], gpr[7]) = (200, root, flip, entry);
    (gpr[8], gpr[9]) = (content, if number == 2 { changes } else { stays });
    let done = check(&g);
    let text = format!("{whose:?} {way:?} {change:?}");
    assert_eq!(done.state.gpr[3], 100 + 100 * 0x100, "{text}: {:?}", done.vectors());
}

#[test]
fn code_that_moves_is_reached_at_its_new_place() {
    for whose in [Whose::Low, Whose::High, Whose::Mixed, Whose::User] {
        for way in [Way::Direct, Way::Indirect, Way::Jump, Way::Return, Way::LateReturn] {
            if whose == Whose::Mixed && way == Way::Direct {
                // A direct call cannot reach from the upper half to the lower half.
                continue;
            }
            for change in [Change::Leaf, Change::Branch, Change::Root, Change::Content] {
                run(whose, way, change);
            }
        }
    }
}

/// Ring 3 executes RET to the return address of a call that ring 0 has just made. The fetch at that address must fault.
#[test]
fn one_ring_cannot_return_into_the_code_of_another() {
    let mut g = Guest::new();
    // A direct call takes five bytes.
    let called = CODE + 5;
    g.code(CODE, |a| {
        let on = a.create_label();
        a.call(on)?;
        a.hlt()?;
        a.set_label(on)?;
        a.push(i32::from(USER_SS))?;
        a.push(USER_STACK as i32)?;
        a.push(2)?;
        a.push(i32::from(USER_CS))?;
        a.push(USER as i32)?;
        a.iretq()
    });
    g.code(USER, |a| {
        a.mov(eax, called as u32)?;
        a.push(rax)?;
        a.ret()
    });
    let out = check(&g);
    assert_eq!(out.vectors(), [(14, 0x15)]);
    assert_eq!(out.log()[0].rip, called);
}
