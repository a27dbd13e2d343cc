//! Tests of watchpoints that the operator sets: each access to the watched bytes is reported as a hit.

use super::harness::check;
use super::image::*;

/// A hit: (offset of the instruction in its page, offset of the access in the page of data, bytes, store, value).
type Seen = (u64, u64, u8, bool, u64);

#[test]
fn only_completed_instructions_and_deliveries_make_hits() {
    let mut g = Guest::new();
    g.put(DATA + 8, 0x1122_3344_5566_7788);
    g.code(CODE, |a| {
        a.db(&[0xbf])?; // 00: mov edi, DATA
        a.dd(&[DATA as u32])?;
        a.db(&[0xb9, 2, 0, 0, 0])?; // 05: mov ecx, 2
        a.db(&[0x48, 0x8b, 0x47, 0x08])?; // 0a: mov rax, [rdi + 8]
        a.db(&[0xff, 0x47, 0x48])?; // 0e: inc dword [rdi + 48h]
        a.db(&[0x88, 0x47, 0x02])?; // 11: mov [rdi + 2], al: before the watched range
        a.db(&[0x66, 0x89, 0x47, 0x02])?; // 14: mov [rdi + 2], ax: overlaps its first byte
        a.db(&[0xff, 0xc9, 0x75, 0xee])?; // 18: dec ecx; 1a: jnz 0a
        a.db(&[0x48, 0x8d, 0x7f, 0x10])?; // 1c: lea rdi, [rdi + 10h]
        a.db(&[0xb9, 3, 0, 0, 0])?; // 20: mov ecx, 3
        a.db(&[0xf3, 0xaa])?; // 25: rep stosb
        a.db(&[0x48, 0xbe])?; // 27: mov rsi, ...
        a.dq(&[1 << 63])?;
        a.db(&[0xff, 0x77, 0xf8])?; // 31: push [rdi - 8]
        a.db(&[0x48, 0x8b, 0x06]) // 34: mov rax, [rsi], which faults
    });
    let done = check(&g);
    let hits = done.hits.expect("watchpoints were set");
    let of_data = hits.iter().filter(|hit| hit.address & !0xfff == DATA);
    let seen: Vec<Seen> =
        of_data.map(|hit| (hit.rip - CODE, hit.address - DATA, hit.size, hit.store, hit.value)).collect();
    let round = |n: u64| -> [Seen; 4] {
        [
            (0x0a, 8, 8, false, 0x1122_3344_5566_7788),
            (0x0e, 0x48, 4, false, n),
            (0x0e, 0x48, 4, true, n + 1),
            (0x14, 2, 2, true, 0x7788),
        ]
    };
    let mut expected: Vec<Seen> = round(0).into_iter().chain(round(1)).collect();
    expected.extend((0..3).map(|n| (0x25, 0x10 + n, 1, true, 0x88)));
    expected.push((0x31, 0xb, 8, false, 0x8888_8811_2233_4455));
    assert_eq!(seen, expected);
    // The delivery of the fault reads the IDT gate, which is watched, too. The hit names the faulting instruction.
    assert!(hits.iter().any(|hit| hit.rip == CODE + 0x34 && hit.address == IDT + 13 * 16 && !hit.store));
    assert!(hits.iter().all(|hit| hit.cr3 == PML4));
}
