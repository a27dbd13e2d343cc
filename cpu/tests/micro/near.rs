//! Code that is gone to again and again, and then lies elsewhere, or is other code: by a change of its mapping, of the root of the page
//! tables, or of what its page holds. Whoever goes there next finds what is there now, also by a return to a call that was
//! made before.

use super::harness::check;
use super::image::*;
use iced_x86::IcedError;
use iced_x86::code_asm::*;

/// All of RAM is mapped from here on, too, above the middle.
const KERNEL: u64 = 0xffff_ffff_8000_0000;
/// The page that stays.
const STAYS: u64 = CODE + 0x1000;
const STAYS_FOR_RING_3: u64 = USER + 0x1000;
/// The pages of which one is mapped where code changes.
const BEFORE: u64 = DATA;
const AFTER: u64 = DATA + 0x1000;
/// From the page that stays to the one that changes: not too far for a direct call.
const DISTANCE: u64 = 0x1000_0000;
/// Where ring 3 finds the page table, and the page whose content changes.
const TABLE_FOR_RING_3: u64 = USER + 0x10_0000;
const PAGE_FOR_RING_3: u64 = USER + 0x10_1000;
/// Added and taken away again, so that a number takes four bytes.
const LONG: i32 = 0x1_0000;
/// The gate by which ring 3 changes the root.
const GATE: u8 = 0x80;

/// Who executes it, where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// Ring 0, both pages below the middle.
    Low,
    /// Ring 0, both above.
    High,
    /// Ring 0 above, and the page that changes below: a kernel without SMEP may.
    Mixed,
    /// Ring 3.
    User,
}

/// How the page that changes is gone to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By a direct call.
    Direct,
    /// By an indirect one.
    Indirect,
    /// By a jump, and back by another.
    Jump,
    /// By a return: the call was made there.
    Return,
    /// By a return, where the page that stays was left by a jump that nobody expects.
    LateReturn,
}

/// What changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The lowest paging entry.
    Leaf,
    /// One above it.
    Branch,
    /// CR3.
    Root,
    /// What the page holds.
    Content,
}

/// 200 times there, and the change in the middle.
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

    // As if everything was accessed before, so that equal halves of roots are equal in all.
    for at in (0..4096).step_by(8).map(|at| PML4 + at) {
        let entry = g.word(at);
        g.put(at, entry | if entry & P != 0 { A } else { 0 });
    }
    // Another root, and on the way to the page only what another one has.
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
    // In both pages ADD has its number in the same place.
    let number = if matches!(way, Way::Direct | Way::Indirect | Way::Jump) { 2 } else { 5 + 2 };
    let event = |a: &mut CodeAssembler| -> Result<(), IcedError> {
        match change {
            Change::Leaf | Change::Branch => a.xor(qword_ptr(rdi), rsi),
            Change::Root if whose == Whose::User => a.int(i32::from(GATE)),
            Change::Root => a.mov(cr3, rdx),
            Change::Content => a.mov(dword_ptr(r8 + number), LONG + 0x100),
        }
    };
    let halt = |a: &mut CodeAssembler| {
        if whose == Whose::User { a.int(i32::from(EXIT_VECTOR)) } else { a.hlt() }
    };
    if number == 2 {
        g.code_for(stays_at, stays, |a| {
            let (mut again, mut done, mut same) = (a.create_label(), a.create_label(), a.create_label());
            a.set_label(&mut again)?;
            match way {
                Way::Direct => a.call(changes)?,
                Way::Indirect => a.call(r9)?,
                _ => {
                    a.lea(r10, ptr(same))?;
                    if whose == Whose::Mixed { a.jmp(r9)? } else { a.jmp(changes)? }
                }
            }
            a.set_label(&mut same)?;
            a.dec(ecx)?;
            a.jz(done)?;
            a.cmp(ecx, 100)?;
            a.jne(again)?;
            event(a)?;
            a.jmp(again)?;
            a.set_label(&mut done)?;
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
                let mut again = a.create_label();
                a.set_label(&mut again)?;
                if whose == Whose::Mixed {
                    a.call(r9)?;
                    // As long as a direct one.
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
            let (mut same, mut elsewhere) = (a.create_label(), a.create_label());
            a.cmp(ecx, 100)?;
            a.jne(same)?;
            event(a)?;
            a.set_label(&mut same)?;
            if way == Way::LateReturn {
                // One more call, whose return address goes.
                a.call(elsewhere)?;
                a.set_label(&mut elsewhere)?;
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
            // What was seen below is forgotten with this.
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
fn code_that_moves_is_found_where_it_is() {
    for whose in [Whose::Low, Whose::High, Whose::Mixed, Whose::User] {
        for way in [Way::Direct, Way::Indirect, Way::Jump, Way::Return, Way::LateReturn] {
            if whose == Whose::Mixed && way == Way::Direct {
                // That is too far.
                continue;
            }
            for change in [Change::Leaf, Change::Branch, Change::Root, Change::Content] {
                run(whose, way, change);
            }
        }
    }
}

/// Ring 3 returns to where ring 0 has just made a call, and may not execute it.
#[test]
fn what_one_ring_called_is_not_there_for_another() {
    let mut g = Guest::new();
    // A direct call is five bytes.
    let called = CODE + 5;
    g.code(CODE, |a| {
        let mut on = a.create_label();
        a.call(on)?;
        a.hlt()?;
        a.set_label(&mut on)?;
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
