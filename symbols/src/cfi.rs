//! Call frame information: the unwind tables of programs (`.eh_frame`).
//!
//! A table can compute a place with an expression of DWARF (version 5, 2.5). Expressions can jump, so an expression of a
//! hostile program can loop for ever. Compilers write no jumps in unwind tables. [`has_jumps`] finds tables with jumps.

use std::collections::BTreeSet;

use gimli::{
    BaseAddresses, CallFrameInstruction, CallFrameInstructionIter, CieOrFde, EhFrame, Encoding, EndianSlice,
    LittleEndian, Operation, UnwindExpression, UnwindSection as _,
};

type Bytes<'p> = EndianSlice<'p, LittleEndian>;

/// Returns true if an expression in an `.eh_frame` jumps.
///
/// Reads the entries in their order, as the unwinder does, and ends at the first damaged entry.
pub(crate) fn has_jumps(eh_frame: &[u8], bases: &BaseAddresses) -> bool {
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
                if jumps(&tables, fde.instructions(&tables, bases), cie.encoding()) {
                    return true;
                }
                cie
            }
        };
        if seen.insert(cie.offset()) && jumps(&tables, cie.instructions(&tables, bases), cie.encoding()) {
            return true;
        }
    }
    false
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

    /// Returns an `.eh_frame` with one function, whose frame is computed by an expression.
    fn tables(of_all: &[u8], of_function: &[u8]) -> Vec<u8> {
        const DEFINE_EXPRESSION: u8 = 0x0f;
        let define = |expression: &[u8]| [&[DEFINE_EXPRESSION, expression.len() as u8], expression].concat();
        // CIE: its mark, version 1, no augmentation, alignments 1 and -8, return address in register 16.
        let cie = entry(&[&[0, 0, 0, 0, 1, 0, 1, 0x78, 16][..], &define(of_all)].concat());
        let to_cie = (cie.len() as u32 + 4).to_le_bytes();
        let fde = [&to_cie[..], &0x1000u64.to_le_bytes(), &0x100u64.to_le_bytes(), &define(of_function)];
        [cie, entry(&fde.concat()), vec![0; 4]].concat()
    }

    #[test]
    fn jumps_are_found_in_all_entries() {
        let has_jumps = |tables: &[u8]| has_jumps(tables, &BaseAddresses::default());
        // `DW_OP_breg7` with offset 8, `DW_OP_skip` to itself, and `DW_OP_bra` behind a constant.
        let (plain, skip, branch) = (&[0x77, 8][..], &[0x2f, 0xfd, 0xff][..], &[0x31, 0x28, 0xfc, 0xff][..]);
        assert!(!has_jumps(&tables(plain, plain)));
        for jump in [skip, branch] {
            assert!(has_jumps(&tables(jump, plain)) && has_jumps(&tables(plain, jump)));
        }
        assert!(!has_jumps(&[]) && !has_jumps(&tables(plain, skip)[..30]), "cut off");
    }
}
