//! Tests that the CPU records edges, i.e. executed branches with their targets.

use everett_cpu::page_name;

use super::harness::{check, edges_of_two, once};
use super::image::*;
use everett_assembler::*;

const OTHER: u64 = CODE + 0x1000;

#[test]
fn branches_make_edges_unless_interrupted() {
    let mut g = Guest::in_ring_0(|a| {
        a.db(&[0xb9, 3, 0, 0, 0])?; // 00: mov ecx, 3
        a.db(&[0xff, 0xc9, 0x75, 0xfc])?; // 05: dec ecx; 07: jnz 05
        a.db(&[0xe8, 0xf2, 0x0f, 0, 0])?; // 09: call OTHER
        a.db(&[0xeb, 0, 0xeb, 0])?; // 0e: jmp 10; 10: jmp 12
        a.db(&[0x48, 0xc7, 0xc0, 0, 0, 0x50, 0])?; // 12: mov rax, 0x500000, where nothing is
        a.db(&[0xff, 0xe0]) // 19: jmp rax
    });
    g.code(OTHER, |a| a.ret());
    g.state.rflags |= IF;
    // The test delivers an interrupt directly after the jump at 0e, so this jump makes no edge.
    g.interrupts.push((10, 0x40));
    let done = check(&g);
    assert_eq!(done.log().iter().map(|record| record.vector).collect::<Vec<_>>(), [0x40, 14]);
    let page = |at: u64| page_name(&done.ram[at as usize..at as usize + 4096]);
    let (code, other) = (page(CODE), page(OTHER));
    let edges = done.edges.expect("edges are recorded");
    let here =
        edges.iter().filter(|edge| [edge.from, edge.to].iter().any(|p| [code, other].contains(&p.page())));
    let here: Vec<_> = here
        .map(|e| ((e.from.page(), e.from.offset()), (e.to.page(), e.to.offset()), e.address, e.user))
        .collect();
    assert_eq!(
        here,
        [
            ((code, 7), (code, 5), CODE + 5, false),
            ((code, 7), (code, 9), CODE + 9, false),
            ((code, 9), (other, 0), OTHER, false),
            ((other, 0), (code, 0xe), CODE + 0xe, false),
            ((code, 0x10), (code, 0x12), CODE + 0x12, false),
        ]
    );
}

/// Translated code is shared, but what it knows of recorded edges belongs to one CPU, until the edges are forgotten.
#[test]
fn cpus_that_share_code_record_all_edges_each_time() {
    let mut g = Guest::in_ring_0(|a| {
        let (again, even, back) = (a.create_label(), a.create_label(), a.create_label());
        a.mov(ecx, 3000)?;
        a.mov(rbx, OTHER)?;
        a.set_label(again)?;
        a.test(ecx, 1)?;
        a.jz(even)?;
        a.add(eax, ecx)?;
        a.set_label(back)?;
        a.call(OTHER)?;
        a.call(rbx)?;
        a.dec(ecx)?;
        a.jnz(again)?;
        a.hlt()?;
        a.set_label(even)?;
        // A block that is reached for the first time when the traces around it exist already.
        a.cmp(ecx, 100)?;
        a.ja(back)?;
        a.sub(eax, 7)?;
        a.jmp(back)
    });
    g.code(OTHER, |a| {
        let odd = a.create_label();
        a.test(al, 1)?;
        a.jnz(odd)?;
        a.ret()?;
        a.set_label(odd)?;
        a.add(eax, 3)?;
        a.ret()
    });
    let expected = once(&g).edges.expect("edges are recorded");
    assert!(expected.len() > 10);
    for edges in edges_of_two(&g) {
        assert_eq!(edges, expected);
    }
}
