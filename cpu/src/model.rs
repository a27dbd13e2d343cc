//! CPU models: the sets of instructions that a guest's CPU can have. `v2` is x86-64-v2 with RDTSCP and SMAP. `v3` adds
//! the rest of x86-64-v3. Each model can have the extras AES-NI with PCLMULQDQ, and SHA.
//!
//! Encodings of PREFETCHW and CET execute as NOPs on all models, as on a CPU that lacks these features.

use std::fmt;
use std::str::FromStr;

use iced_x86::{Code, CpuidFeature, DecoderOptions, Instruction};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Maximum length of a model's name in bytes. Parsing rejects longer texts unread.
pub const NAME_MAX: usize = 16;

/// Instructions and CPUID features of a guest's CPU. As text and serialised it is a level and its extras, e.g. `v3+aes+sha`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CpuModel {
    v3: bool,
    aes: bool,
    sha: bool,
}

/// Text that names no CPU model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownModel;

impl fmt::Display for UnknownModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a CPU model is v2 or v3, and may add +aes and +sha, e.g. v3+aes+sha")
    }
}

impl std::error::Error for UnknownModel {}

/// Instruction that a program executed although its CPU's model lacks it. As text it is e.g. `VPADDB (AVX2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingInstruction(Code);

impl MissingInstruction {
    /// Returns the instruction's encoding if a model lacks it and a larger model has it.
    pub(crate) fn in_model(i: &Instruction, model: CpuModel) -> Option<MissingInstruction> {
        (!model.has(i) && CpuModel::LARGEST.has(i)).then(|| MissingInstruction(i.code()))
    }
    /// Returns the instruction with the number that [`MissingInstruction::number`] returned.
    pub(crate) fn of_number(number: u64) -> Option<MissingInstruction> {
        usize::try_from(number).ok().and_then(|number| Code::try_from(number).ok()).map(MissingInstruction)
    }
    /// Returns a number for the instruction.
    pub(crate) fn number(self) -> u64 {
        self.0 as u64
    }
    /// Returns the smallest model that has the instruction and all instructions of `model`.
    pub fn model_for(self, model: CpuModel) -> CpuModel {
        let mut wanted = model;
        for feature in self.0.cpuid_features() {
            match feature {
                CpuidFeature::AES | CpuidFeature::PCLMULQDQ => wanted.aes = true,
                CpuidFeature::SHA => wanted.sha = true,
                _ => wanted.v3 |= !model.has_feature(*feature),
            }
        }
        wanted
    }
}

impl fmt::Display for MissingInstruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.cpuid_features().iter().map(|feature| format!("{feature:?}"));
        let names: Vec<String> = names.collect();
        write!(f, "{} ({})", format!("{:?}", self.0.mnemonic()).to_uppercase(), names.join(" and "))
    }
}

impl CpuModel {
    /// x86-64-v2, RDTSCP and SMAP: the default.
    pub const V2: CpuModel = CpuModel { v3: false, aes: false, sha: false };
    /// The model `v2` and the rest of x86-64-v3: AVX, AVX2, BMI1, BMI2, F16C, FMA, LZCNT, MOVBE and XSAVE.
    pub const V3: CpuModel = CpuModel { v3: true, aes: false, sha: false };
    /// The model `v3` with all extras.
    pub const LARGEST: CpuModel = CpuModel { v3: true, aes: true, sha: true };

    /// True if the model has the instructions of x86-64-v3.
    pub fn is_v3(self) -> bool {
        self.v3
    }
    /// True if the model has AES-NI and PCLMULQDQ.
    pub fn has_aes(self) -> bool {
        self.aes
    }
    /// True if the model has the SHA instructions.
    pub fn has_sha(self) -> bool {
        self.sha
    }
    /// Returns the options with which the decoder finds this model's instructions. No model has WBNOINVD, so its
    /// encoding is that of WBINVD. Without BMI1 and LZCNT, the encodings of TZCNT and LZCNT are those of BSF and BSR.
    pub const fn decoder_options(self) -> u32 {
        let scans = if self.v3 { 0 } else { DecoderOptions::NO_MPFX_0FBC | DecoderOptions::NO_MPFX_0FBD };
        scans | DecoderOptions::NO_WBNOINVD
    }
    /// True if the model has every CPU feature that the instruction needs.
    pub fn has(self, i: &Instruction) -> bool {
        i.cpuid_features().iter().all(|&feature| self.has_feature(feature))
    }
    fn has_feature(self, feature: CpuidFeature) -> bool {
        use CpuidFeature::*;
        match feature {
            INTEL8086 | INTEL8086_ONLY | INTEL186 | INTEL286 | INTEL386 | INTEL486 | X64 | CPUID | CMOV
            | FPU | FPU287 | FPU387 | FXSR | MMX | MSR | TSC | RDTSCP | RDPMC | PAUSE | MULTIBYTENOP
            | SEP | SYSCALL | SSE | SSE2 | SSE3 | SSSE3 | SSE4_1 | SSE4_2 | POPCNT | CX8 | CMPXCHG16B
            | CLFSH | PREFETCHW | SMAP | CET_IBT | CET_SS => true,
            AES | PCLMULQDQ => self.aes,
            SHA => self.sha,
            BMI1 | BMI2 | LZCNT | MOVBE | AVX | AVX2 | F16C | FMA | XSAVE | XSAVEC | XSAVEOPT => self.v3,
            _ => false,
        }
    }
}

impl fmt::Display for CpuModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.v3 { "v3" } else { "v2" })?;
        f.write_str(if self.aes { "+aes" } else { "" })?;
        f.write_str(if self.sha { "+sha" } else { "" })
    }
}

impl Serialize for CpuModel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuModel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CpuModel, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl FromStr for CpuModel {
    type Err = UnknownModel;
    /// Parses a level and extras in any order, each extra at most once.
    fn from_str(text: &str) -> Result<CpuModel, UnknownModel> {
        if text.len() > NAME_MAX {
            return Err(UnknownModel);
        }
        let mut parts = text.split('+');
        let mut model = match parts.next() {
            Some("v2") => CpuModel::V2,
            Some("v3") => CpuModel::V3,
            _ => return Err(UnknownModel),
        };
        for extra in parts {
            let has = match extra {
                "aes" => &mut model.aes,
                "sha" => &mut model.sha,
                _ => return Err(UnknownModel),
            };
            if std::mem::replace(has, true) {
                return Err(UnknownModel);
            }
        }
        Ok(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_its_text() {
        for text in ["v2", "v3", "v2+aes", "v3+sha", "v2+aes+sha", "v3+aes+sha"] {
            assert_eq!(text.parse::<CpuModel>().expect(text).to_string(), text);
        }
        assert_eq!("v3+sha+aes".parse(), Ok(CpuModel::LARGEST));
        assert_eq!("v2".parse(), Ok(CpuModel::default()));
    }

    #[test]
    fn a_lacking_instruction_names_the_model_that_has_it() {
        let lacking = |code: Code, model| {
            let mut i = Instruction::default();
            i.set_code(code);
            let found = MissingInstruction::in_model(&i, model)?;
            assert_eq!(MissingInstruction::of_number(found.number()), Some(found));
            Some((found.to_string(), found.model_for(model).to_string()))
        };
        let v2 = CpuModel::V2;
        let some = |text: &str, model: &str| Some((text.to_owned(), model.to_owned()));
        assert_eq!(lacking(Code::VEX_Vpaddb_ymm_ymm_ymmm256, v2), some("VPADDB (AVX2)", "v3"));
        assert_eq!(lacking(Code::Aesenc_xmm_xmmm128, v2), some("AESENC (AES)", "v2+aes"));
        assert_eq!(lacking(Code::VEX_Vaesenc_xmm_xmm_xmmm128, v2), some("VAESENC (AES and AVX)", "v3+aes"));
        assert_eq!(lacking(Code::Sha1msg1_xmm_xmmm128, CpuModel::V3), some("SHA1MSG1 (SHA)", "v3+sha"));
        assert_eq!(lacking(Code::Paddb_xmm_xmmm128, v2), None);
        assert_eq!(lacking(Code::EVEX_Vpaddb_zmm_k1z_zmm_zmmm512, v2), None);
        assert_eq!(MissingInstruction::of_number(u64::MAX), None);
    }

    #[test]
    fn other_texts_are_no_model() {
        let long = format!("v3{}", "+".repeat(NAME_MAX));
        for text in ["", "v1", "V3", "v3+", "v3+avx", "v3+aes+aes", "+aes", "v3 ", &long] {
            assert_eq!(text.parse::<CpuModel>(), Err(UnknownModel), "{text:?}");
        }
    }
}
