//! x87, SSE and AVX registers of a thread, and the areas in which XSAVE stores them (SDM volume 1, chapter 13).

/// Length of the area that FXSAVE64 stores, which is also the first part of each XSAVE area, in bytes.
pub const LEGACY_BYTES: usize = 512;
/// Length of an XSAVE area without the AVX component, in bytes: the first part and the header.
pub(crate) const XSAVE_SSE_BYTES: usize = 576;
/// Length of an XSAVE area with the AVX component, in bytes.
pub(crate) const XSAVE_AVX_BYTES: usize = AVX_AT + 16 * 16;

/// Offset of the AVX component. It is the first component behind the header, so it has the same place in both formats of the
/// area.
const AVX_AT: usize = 576;
/// Offset of MXCSR.
const MXCSR_AT: usize = 24;
/// Offset of ST0. Each x87 register has 16 bytes.
const STACK_AT: usize = 32;
/// Offset of XMM0. Each register has 16 bytes.
const XMM_AT: usize = 160;
/// End of XMM15.
const XMM_END: usize = 416;
/// Offset at which Linux tells debuggers the components of an area: `sw_reserved` of `struct fxregs_state`.
const COMPONENTS_AT: usize = 464;

/// State components, as bits of XCR0 (SDM volume 1, 13.1).
mod component {
    pub(super) const X87: u64 = 1;
    pub(super) const SSE: u64 = 1 << 1;
    pub(super) const AVX: u64 = 1 << 2;
}

/// x87, SSE and AVX registers of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatingRegisters {
    /// The x87 and SSE registers: the area of the instruction FXSAVE64 (SDM volume 1, 10.5.1), which is also `struct
    /// user_fpregs_struct`.
    pub legacy: [u8; LEGACY_BYTES],
    /// Upper halves of YMM0 to YMM15. `None` if the kernel does not let programs use AVX.
    pub upper: Option<[u128; 16]>,
}

/// True if programs can use AVX: XCR0 has the component.
#[must_use]
pub fn has_avx(xcr0: u64) -> bool {
    xcr0 & component::AVX != 0
}

impl FloatingRegisters {
    /// Returns the registers that XRSTOR loads from an area that XSAVE or XSAVEC stored. `None` if XRSTOR refuses the area's
    /// header (SDM volume 1, 13.8). Without the component AVX in `xcr0`, the area's last part is not looked at.
    pub(crate) fn of_xsave(area: &[u8; XSAVE_AVX_BYTES], xcr0: u64) -> Option<FloatingRegisters> {
        let (first, rest) = area.split_first_chunk::<LEGACY_BYTES>()?;
        let header = Header::new(rest.first_chunk()?, xcr0)?;
        let mut legacy = *first;
        header.fill_unsaved(&mut legacy);
        let (halves, _) = area[AVX_AT..].as_chunks();
        let upper = has_avx(xcr0).then(|| {
            let mut upper = [0; 16];
            if header.saved & component::AVX != 0 {
                upper.iter_mut().zip(halves).for_each(|(to, half)| *to = u128::from_le_bytes(*half));
            }
            upper
        });
        Some(FloatingRegisters { legacy, upper })
    }

    /// Returns the registers as an XSAVE area in the standard format, in the form in which Linux gives it to debuggers. `None`
    /// without AVX: the x87 and SSE registers then say all.
    pub(crate) fn xsave(&self) -> Option<[u8; XSAVE_AVX_BYTES]> {
        let upper = self.upper.as_ref()?;
        let components = (component::X87 | component::SSE | component::AVX).to_le_bytes();
        let mut area = [0; XSAVE_AVX_BYTES];
        let mut put = |at: usize, bytes: &[u8]| area[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.legacy);
        put(COMPONENTS_AT, &components);
        put(LEGACY_BYTES, &components);
        for (n, half) in upper.iter().enumerate() {
            put(AVX_AT + 16 * n, &half.to_le_bytes());
        }
        Some(area)
    }
}

/// Header of an XSAVE area (SDM volume 1, 13.4.2).
struct Header {
    /// Components that the area has (XSTATE_BV). The others have their initial values.
    saved: u64,
    /// True if XSAVEC stored the area.
    is_compacted: bool,
}

impl Header {
    /// Reads a header. `None` if XRSTOR refuses it.
    fn new(bytes: &[u8; XSAVE_SSE_BYTES - LEGACY_BYTES], xcr0: u64) -> Option<Header> {
        /// Bit of XCOMP_BV: the area has the compacted format.
        const COMPACTED: u64 = 1 << 63;
        let (words, _) = bytes.as_chunks();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let (saved, layout) = (words.next()?, words.next()?);
        let is_compacted = layout & COMPACTED != 0;
        let (components, reserved) = if is_compacted { (layout & !COMPACTED, 6) } else { (xcr0, 1) };
        let is_valid = saved & !components == 0
            && components & !xcr0 == 0
            && (is_compacted || layout == 0)
            && words.take(reserved).all(|word| word == 0);
        is_valid.then_some(Header { saved, is_compacted })
    }

    /// Fills in the x87 and SSE registers that the area lacks because they had their initial values.
    fn fill_unsaved(&self, legacy: &mut [u8; LEGACY_BYTES]) {
        if self.saved & component::X87 == 0 {
            legacy[..MXCSR_AT].fill(0);
            legacy[..2].copy_from_slice(&0x37f_u16.to_le_bytes());
            legacy[STACK_AT..XMM_AT].fill(0);
        }
        if self.saved & component::SSE == 0 {
            legacy[XMM_AT..XMM_END].fill(0);
            // In the compacted format, MXCSR belongs to the SSE component.
            if self.is_compacted {
                legacy[MXCSR_AT..MXCSR_AT + 4].copy_from_slice(&0x1f80_u32.to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPACTED: u64 = 1 << 63;
    const OLD: u128 = 0xaaaa_aaaa_aaaa_aaaa_aaaa_aaaa_aaaa_aaaa;

    /// Returns the registers of an area whose parts all have the byte 0xaa, except for the words of its header.
    fn registers(header: &[u64], xcr0: u64) -> Option<FloatingRegisters> {
        let mut area = [0xaa; XSAVE_AVX_BYTES];
        area[LEGACY_BYTES..AVX_AT].fill(0);
        for (n, word) in header.iter().enumerate() {
            area[LEGACY_BYTES + 8 * n..LEGACY_BYTES + 8 * n + 8].copy_from_slice(&word.to_le_bytes());
        }
        FloatingRegisters::of_xsave(&area, xcr0)
    }

    #[test]
    fn registers_that_xsave_left_out_have_their_initial_values() {
        const SHORT: u32 = OLD as u32;
        let filled = |saved, layout| {
            let FloatingRegisters { legacy, upper } = registers(&[saved, layout], 7).unwrap();
            let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|n| legacy[at + n]));
            let upper = upper.unwrap();
            assert_eq!(upper, [upper[0]; 16]);
            ([number(0), number(8), number(24), number(32), number(160), number(412)], upper[0])
        };
        let compacted = COMPACTED | 7;
        assert_eq!(filled(7, compacted), ([SHORT; 6], OLD));
        assert_eq!(filled(7, 0), ([SHORT; 6], OLD));
        assert_eq!(filled(2, 0), ([0x37f, 0, SHORT, 0, SHORT, SHORT], 0));
        assert_eq!(filled(1, 0), ([SHORT, SHORT, SHORT, SHORT, 0, 0], 0));
        assert_eq!(filled(5, compacted), ([SHORT, SHORT, 0x1f80, SHORT, 0, 0], OLD));
        assert_eq!(filled(0, COMPACTED), ([0x37f, 0, 0x1f80, 0, 0, 0], 0));
        // The area has no place for the AVX component, which therefore has its initial value.
        assert_eq!(filled(3, COMPACTED | 3), ([SHORT; 6], 0));
    }

    #[test]
    fn headers_that_the_processor_refuses_say_nothing() {
        for (header, xcr0) in [
            // Components that the kernel does not use, or for which the area has no place.
            (&[8][..], 7),
            (&[1 << 63], 7),
            (&[u64::MAX], 7),
            (&[7], 3),
            (&[7, COMPACTED | 3], 7),
            (&[1, COMPACTED], 7),
            (&[7, COMPACTED | 15], 7),
            (&[3, COMPACTED | 7], 3),
            (&[3, u64::MAX], 7),
            // The standard format has no layout, and both have reserved words.
            (&[7, 7], 7),
            (&[7, 1 << 62], 7),
            (&[7, 0, 1], 7),
            (&[7, COMPACTED | 7, 1], 7),
            (&[7, COMPACTED | 7, 0, 0, 0, 0, 0, 1 << 40], 7),
        ] {
            assert_eq!(registers(header, xcr0), None, "{header:x?} {xcr0}");
        }
        // The processor does not look at the last words in the standard format.
        assert!(registers(&[7, 0, 0, 1, 0, 0, 0, 1], 7).is_some());
        assert_eq!(registers(&[3, COMPACTED | 3], 3).unwrap().upper, None);
    }

    #[test]
    fn areas_for_debuggers_have_all_registers() {
        let mut legacy = [0x55; LEGACY_BYTES];
        legacy[COMPONENTS_AT..].fill(0);
        let upper = std::array::from_fn(|n| OLD + n as u128);
        let floating = FloatingRegisters { legacy, upper: Some(upper) };
        let area = floating.xsave().unwrap();
        assert_eq!((&area[..464], &area[464..472]), (&legacy[..464], &7_u64.to_le_bytes()[..]));
        assert_eq!((&area[512..520], &area[520..576]), (&7_u64.to_le_bytes()[..], &[0; 56][..]));
        assert_eq!(area[816..], upper[15].to_le_bytes());
        let same = FloatingRegisters::of_xsave(&area, 7).unwrap();
        assert_eq!((&same.legacy[..464], same.upper), (&legacy[..464], Some(upper)));
        assert_eq!(FloatingRegisters { legacy, upper: None }.xsave(), None);
    }
}
