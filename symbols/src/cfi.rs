//! Call frame information: the unwind tables of programs (`.eh_frame`).
//!
//! A table can compute a place with an expression of DWARF (version 5, 2.5). Expressions can jump, so an expression of a
//! hostile program can loop for ever. Compilers write no jumps in unwind tables. [`is_unbounded`] finds tables with jumps.

use std::collections::BTreeSet;

use gimli::{
    BaseAddresses, CallFrameInstruction, CallFrameInstructionIter, CfaRule, CieOrFde, EhFrame, Encoding,
    EndianSlice, LittleEndian, Operation, UnwindContext, UnwindExpression, UnwindSection as _,
};

type Bytes<'p> = EndianSlice<'p, LittleEndian>;

/// Returns the addresses from which entries count, as the unwinder sets them: those of sections that the file does not
/// have are 0.
pub(crate) fn bases(eh_frame: u64, text: Option<u64>, got: Option<u64>) -> BaseAddresses {
    BaseAddresses::default()
        .set_eh_frame(eh_frame)
        .set_eh_frame_hdr(0)
        .set_text(text.unwrap_or(0))
        .set_got(got.unwrap_or(0))
}

/// Maximum length of a common entry, in bytes. Compilers write some tens of bytes.
const CIE_BYTES_MAX: usize = 4_096;

/// Returns true if an expression in an `.eh_frame` jumps, or if a common entry is longer than [`CIE_BYTES_MAX`].
///
/// Reads the entries in their order, as the unwinder does, and ends at the first damaged entry.
pub(crate) fn is_unbounded(eh_frame: &[u8], bases: &BaseAddresses) -> bool {
    let mut tables = EhFrame::new(eh_frame, LittleEndian);
    tables.set_address_size(8);
    let mut seen = BTreeSet::new();
    let mut entries = tables.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let cie = match entry {
            CieOrFde::Cie(cie) => cie,
            CieOrFde::Fde(partial) => {
                let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else { return false };
                let cie = fde.cie().clone();
                if cie.entry_len() > CIE_BYTES_MAX
                    || jumps(&tables, fde.instructions(&tables, bases), cie.encoding())
                {
                    return true;
                }
                cie
            }
        };
        if cie.entry_len() > CIE_BYTES_MAX {
            return true;
        }
        if seen.insert(cie.offset()) && jumps(&tables, cie.instructions(&tables, bases), cie.encoding()) {
            return true;
        }
    }
    false
}

/// Rule for the canonical frame address (CFA): a register and the distance from its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRule {
    /// Number of the register in DWARF.
    pub register: u16,
    /// Distance in bytes.
    pub offset: i64,
}

/// Returns the rule for the CFA at an address. `None` if an `.eh_frame` does not describe the address, or with an
/// expression.
pub(crate) fn frame_rule(eh_frame: &[u8], bases: &BaseAddresses, address: u64) -> Option<FrameRule> {
    let mut tables = EhFrame::new(eh_frame, LittleEndian);
    tables.set_address_size(8);
    let mut entries = tables.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(EhFrame::cie_from_offset).ok()?;
        if fde.cie().entry_len() > CIE_BYTES_MAX {
            return None;
        }
        if !fde.contains(address) {
            continue;
        }
        let mut context = UnwindContext::new();
        let row = fde.unwind_info_for_address(&tables, bases, &mut context, address).ok()?;
        return match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                Some(FrameRule { register: register.0, offset: *offset })
            }
            CfaRule::Expression(_) => None,
        };
    }
    None
}

/// Returns first address and length of each function that an `.eh_frame` describes, at most `most`.
///
/// Ends at the first damaged entry, or after a common entry that is longer than [`CIE_BYTES_MAX`], because each entry of
/// a function reads its common entry again.
pub(crate) fn functions(eh_frame: &[u8], bases: &BaseAddresses, most: usize) -> Vec<(u64, u64)> {
    let mut tables = EhFrame::new(eh_frame, LittleEndian);
    tables.set_address_size(8);
    let mut found = Vec::new();
    let mut entries = tables.entries(bases);
    while found.len() < most
        && let Ok(Some(entry)) = entries.next()
    {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else { break };
        if fde.cie().entry_len() > CIE_BYTES_MAX {
            break;
        }
        found.push((fde.initial_address(), fde.len()));
    }
    found
}

fn jumps<'p>(
    tables: &EhFrame<Bytes<'p>>,
    mut instructions: CallFrameInstructionIter<'_, Bytes<'p>>,
    encoding: Encoding,
) -> bool {
    let expression_jumps = |expression: UnwindExpression<usize>| {
        let Ok(expression) = expression.get(tables) else { return false };
        let mut operations = expression.operations(encoding);
        while let Ok(Some(operation)) = operations.next() {
            if matches!(operation, Operation::Skip { .. } | Operation::Bra { .. }) {
                return true;
            }
        }
        false
    };
    while let Ok(Some(instruction)) = instructions.next() {
        let expression = match instruction {
            CallFrameInstruction::DefCfaExpression { expression }
            | CallFrameInstruction::Expression { expression, .. }
            | CallFrameInstruction::ValExpression { expression, .. } => expression,
            _ => continue,
        };
        if expression_jumps(expression) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an entry: its length, then its content, padded with instructions that do nothing.
    fn entry(content: &[u8]) -> Vec<u8> {
        let mut entry = content.to_vec();
        entry.resize(content.len().next_multiple_of(8) + 4, 0);
        [(entry.len() as u32).to_le_bytes().to_vec(), entry].concat()
    }

    /// Returns an `.eh_frame` with one function, whose frame is computed by an expression. `augmentation` is that of the
    /// common entry: its text with a zero byte at the end, and its data.
    fn tables_with((text, data): (&[u8], &[u8]), of_all: &[u8], of_function: &[u8]) -> Vec<u8> {
        const DEFINE_EXPRESSION: u8 = 0x0f;
        let define = |expression: &[u8]| [&[DEFINE_EXPRESSION, expression.len() as u8], expression].concat();
        // CIE: its mark, version 1, augmentation, alignments 1 and -8, return address in register 16.
        let start = [&[0, 0, 0, 0, 1], text, &[1, 0x78, 16], data].concat();
        let cie = entry(&[start, define(of_all)].concat());
        let to_cie = (cie.len() as u32 + 4).to_le_bytes();
        let fde = match data {
            [] => [&to_cie[..], &0x1000u64.to_le_bytes(), &0x100u64.to_le_bytes(), &define(of_function)]
                .concat(),
            // An augmentation has addresses of 4 bytes here, and each function has augmentation data of no bytes.
            _ => [&to_cie[..], &0x1000u32.to_le_bytes(), &0x100u32.to_le_bytes(), &[0], &define(of_function)]
                .concat(),
        };
        [cie, entry(&fde), vec![0; 4]].concat()
    }

    fn tables(of_all: &[u8], of_function: &[u8]) -> Vec<u8> {
        tables_with((&[0], &[]), of_all, of_function)
    }

    fn is_unbounded(tables: &[u8]) -> bool {
        super::is_unbounded(tables, &bases(0x2000, None, None))
    }

    /// `DW_OP_breg7` with offset 8, `DW_OP_skip` to itself, and `DW_OP_bra` behind a constant.
    const PLAIN: &[u8] = &[0x77, 8];
    const SKIP: &[u8] = &[0x2f, 0xfd, 0xff];
    const BRANCH: &[u8] = &[0x31, 0x28, 0xfc, 0xff];

    #[test]
    fn jumps_are_found_in_all_entries() {
        assert!(!is_unbounded(&tables(PLAIN, PLAIN)));
        for jump in [SKIP, BRANCH] {
            assert!(is_unbounded(&tables(jump, PLAIN)) && is_unbounded(&tables(PLAIN, jump)));
        }
        assert!(!is_unbounded(&[]) && !is_unbounded(&tables(PLAIN, SKIP)[..30]), "cut off");
    }

    #[test]
    fn functions_are_listed_up_to_the_first_damaged_entry() {
        let functions = |tables: &[u8], most| super::functions(tables, &bases(0x2000, None, None), most);
        let one = tables(PLAIN, PLAIN);
        assert_eq!(functions(&one, 9), [(0x1000, 0x100)]);
        assert_eq!(functions(&one, 0), []);
        assert_eq!(functions(&one[..30], 9), [], "cut off");
        let text = [b"z".to_vec(), vec![b'S'; CIE_BYTES_MAX], vec![0]].concat();
        assert_eq!(functions(&tables_with((&text, &[0]), PLAIN, PLAIN), 9), [], "long common entry");
    }

    /// Addresses can count from `.text` or from `.got`, which a hostile program need not have.
    #[test]
    fn jumps_are_found_if_sections_are_missing() {
        for encoding in [0x2b, 0x3b] {
            let augmentation = (&b"zR\0"[..], &[1, encoding][..]);
            assert!(!is_unbounded(&tables_with(augmentation, PLAIN, PLAIN)), "{encoding:#x}");
            assert!(is_unbounded(&tables_with(augmentation, PLAIN, SKIP)), "{encoding:#x}");
        }
    }

    #[test]
    fn long_common_entries_are_found() {
        for (bytes, expected) in [(CIE_BYTES_MAX / 2, false), (CIE_BYTES_MAX, true)] {
            let text = [b"z".to_vec(), vec![b'S'; bytes], vec![0]].concat();
            let found = is_unbounded(&tables_with((&text, &[0]), PLAIN, PLAIN));
            assert_eq!(found, expected, "{bytes}");
        }
    }
}
