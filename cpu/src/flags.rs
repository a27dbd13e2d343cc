//! Arithmetic flags in lazy form, i.e. computed only when something reads them.
//!
//! Most flags are never read. An arithmetic instruction therefore stores three words instead of the flags. One or two
//! host instructions compute any flag from these words, independent of the operation and its width:
//!
//! - `res`: the result, sign-extended from its width. ZF is set if `res` is zero. SF is the sign of `res`, and PF is
//!   the parity of its low byte.
//! - `carry`: bit 63 is CF, and bit 62 is the carry into the top bit. OF is set if the two bits differ.
//! - `aux`: bit 4 is AF. Bit 63 inverts SF, and bits 8-15 invert the low byte for PF. POPF, SAHF and IRET
//!   can set any combination of flags, e.g. ZF and SF. The inversion bits make every combination possible.

/// RFLAGS bits.
pub(crate) mod bits {
    pub(crate) const CF: u64 = 1 << 0;
    pub(crate) const PF: u64 = 1 << 2;
    pub(crate) const AF: u64 = 1 << 4;
    pub(crate) const ZF: u64 = 1 << 6;
    pub(crate) const SF: u64 = 1 << 7;
    pub(crate) const TF: u64 = 1 << 8;
    pub(crate) const IF: u64 = 1 << 9;
    pub(crate) const DF: u64 = 1 << 10;
    pub(crate) const OF: u64 = 1 << 11;
    pub(crate) const IOPL: u64 = 3 << 12;
    pub(crate) const NT: u64 = 1 << 14;
    pub(crate) const RF: u64 = 1 << 16;
    pub(crate) const AC: u64 = 1 << 18;
    pub(crate) const ID: u64 = 1 << 21;
    /// The six flags that arithmetic writes.
    pub(crate) const ARITH: u64 = CF | PF | AF | ZF | SF | OF;
}

/// The six arithmetic flags in lazy form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flags {
    pub res: u64,
    pub carry: u64,
    pub aux: u64,
}

impl Flags {
    /// Returns the flags after a logical operation: CF, OF and AF are clear.
    #[inline(always)]
    pub(crate) fn logic(res: u64) -> Flags {
        Flags { res, carry: 0, aux: 0 }
    }
    /// Converts the bits of RFLAGS to lazy form.
    pub(crate) fn from_bits(f: u64) -> Flags {
        let cf = f & bits::CF != 0;
        let of = f & bits::OF != 0;
        let zf = f & bits::ZF != 0;
        let sf = f & bits::SF != 0;
        let pf = f & bits::PF != 0;
        // Starts with a result that has the right ZF, a clear sign, and even parity in its low byte. Inversion bits
        // correct SF and PF.
        let res = if zf { 0 } else { 0x3 };
        let mut aux = f & bits::AF;
        if sf {
            aux |= 1 << 63;
        }
        if !pf {
            aux |= 1 << 8;
        }
        Flags { res, carry: ((cf as u64) << 63) | (((cf ^ of) as u64) << 62), aux }
    }
    #[inline(always)]
    pub(crate) fn cf(&self) -> bool {
        (self.carry as i64) < 0
    }
    #[inline(always)]
    pub(crate) fn zf(&self) -> bool {
        self.res == 0
    }
    #[inline(always)]
    pub(crate) fn sf(&self) -> bool {
        ((self.res ^ self.aux) as i64) < 0
    }
    #[inline(always)]
    pub(crate) fn of(&self) -> bool {
        ((self.carry ^ (self.carry << 1)) as i64) < 0
    }
    /// True if SF differs from OF, which means "less" in a signed comparison.
    #[inline(always)]
    pub(crate) fn lt(&self) -> bool {
        ((self.res ^ self.aux ^ self.carry ^ (self.carry << 1)) as i64) < 0
    }
    #[inline(always)]
    pub(crate) fn pf(&self) -> bool {
        ((self.res as u8) ^ ((self.aux >> 8) as u8)).count_ones() & 1 == 0
    }
    /// Returns the flags as bits of RFLAGS.
    #[inline]
    pub(crate) fn to_bits(self) -> u64 {
        (self.cf() as u64)
            | ((self.pf() as u64) << 2)
            | (self.aux & bits::AF)
            | ((self.zf() as u64) << 6)
            | ((self.sf() as u64) << 7)
            | ((self.of() as u64) << 11)
    }
    /// Returns the flags with CF replaced.
    #[inline(always)]
    pub(crate) fn with_cf(self, cf: bool) -> Flags {
        let of = self.of();
        Flags { carry: ((cf as u64) << 63) | (((cf ^ of) as u64) << 62), ..self }
    }
    /// Returns the flags with CF and OF replaced.
    #[inline(always)]
    pub(crate) fn with_cf_of(self, cf: bool, of: bool) -> Flags {
        Flags { carry: ((cf as u64) << 63) | (((cf ^ of) as u64) << 62), ..self }
    }
    /// Returns the flags of a result: SF, ZF and PF derive from `res`, and AF is clear.
    #[inline(always)]
    pub(crate) fn result(res: u64, cf: bool, of: bool) -> Flags {
        Flags { res, carry: ((cf as u64) << 63) | (((cf ^ of) as u64) << 62), aux: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_set_of_flags_survives_the_lazy_form() {
        for n in 0..64u64 {
            let f = (n & 1)
                | ((n >> 1 & 1) << 2)
                | ((n >> 2 & 1) << 4)
                | ((n >> 3 & 1) << 6)
                | ((n >> 4 & 1) << 7)
                | ((n >> 5 & 1) << 11);
            let late = Flags::from_bits(f);
            assert_eq!(late.to_bits(), f);
            assert_eq!(late.lt(), late.sf() != late.of());
            assert_eq!(late.with_cf(true).to_bits(), f | 1);
            assert_eq!(late.with_cf_of(true, false).to_bits(), (f | 1) & !bits::OF);
        }
    }
}
