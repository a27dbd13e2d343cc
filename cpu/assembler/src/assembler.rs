//! Collects the instructions of a guest program, and produces its bytes.

use iced_x86::{Encoder, Instruction, Mnemonic, OpKind};

use crate::choose::choose;
use crate::error::Error;
use crate::operand::{Label, Operand};

/// Length of `jmp` and `jcc` with a displacement of 8 bits.
const SHORT_BRANCH_BYTES: u64 = 2;

/// Program under construction. Each instruction has a method that adds it.
#[derive(Default)]
pub struct Assembler {
    /// Instructions and data. An item may have a target, i.e. the address that a branch or an operand relative to `rip`
    /// refers to.
    items: Vec<(Instruction, Option<Target>)>,
    /// For each label, the index of the item that it precedes, or None if the label is not set.
    labels: Vec<Option<usize>>,
    /// Prefixes of the next instruction.
    prefixes: Instruction,
}

/// Address that an instruction refers to.
#[derive(Clone, Copy)]
enum Target {
    Absolute(u64),
    Label(Label),
}

impl Assembler {
    /// Returns an empty program.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a new label. [`Self::set_label`] gives it an address.
    pub fn create_label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Sets the label to the address of the next instruction.
    ///
    /// # Errors
    ///
    /// If the label already has an address.
    pub fn set_label(&mut self, label: Label) -> Result<(), Error> {
        match self.labels[label.0].replace(self.items.len()) {
            None => Ok(()),
            Some(_) => Err(Error(format!("{label:?} is set twice"))),
        }
    }

    /// Adds a `lock` prefix to the next instruction.
    pub fn lock(&mut self) -> &mut Self {
        self.prefixes.set_has_lock_prefix(true);
        self
    }

    /// Adds a `rep` prefix to the next instruction.
    pub fn rep(&mut self) -> &mut Self {
        self.prefixes.set_has_rep_prefix(true);
        self
    }

    /// Adds a `repe` prefix to the next instruction.
    pub fn repe(&mut self) -> &mut Self {
        self.rep()
    }

    /// Adds a `repne` prefix to the next instruction.
    pub fn repne(&mut self) -> &mut Self {
        self.prefixes.set_has_repne_prefix(true);
        self
    }

    /// Adds bytes.
    ///
    /// # Errors
    ///
    /// If a prefix was added just before, because only instructions can have prefixes.
    pub fn db(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.check_no_prefix()?;
        for chunk in bytes.chunks(16) {
            let data = Instruction::with_declare_byte(chunk).map_err(|error| Error(error.to_string()))?;
            self.items.push((data, None));
        }
        Ok(())
    }

    /// Adds values of 32 bits.
    ///
    /// # Errors
    ///
    /// If a prefix was added just before, because only instructions can have prefixes.
    pub fn dd(&mut self, values: &[u32]) -> Result<(), Error> {
        values.iter().try_for_each(|value| self.db(&value.to_le_bytes()))
    }

    /// Adds values of 64 bits.
    ///
    /// # Errors
    ///
    /// If a prefix was added just before, because only instructions can have prefixes.
    pub fn dq(&mut self, values: &[u64]) -> Result<(), Error> {
        values.iter().try_for_each(|value| self.db(&value.to_le_bytes()))
    }

    /// Adds an instruction.
    pub(crate) fn add_instruction(&mut self, mnemonic: Mnemonic, operands: &[Operand]) -> Result<(), Error> {
        let instruction = choose(mnemonic, operands, &std::mem::take(&mut self.prefixes))?;
        let is_branch = instruction.op0_kind() == OpKind::NearBranch64;
        let target = operands.iter().find_map(|operand| match *operand {
            Operand::Wide(address) if is_branch => Some(Target::Absolute(address)),
            Operand::Label(label) => Some(Target::Label(label)),
            Operand::Memory(memory) => memory.label.map(Target::Label),
            _ => None,
        });
        self.items.push((instruction, target));
        Ok(())
    }

    /// Returns the program's bytes. The address of the first byte is `ip`.
    ///
    /// # Errors
    ///
    /// If a label is not set, an address is out of reach, or a prefix is the last item.
    pub fn assemble(&mut self, ip: u64) -> Result<Vec<u8>, Error> {
        self.check_no_prefix()?;
        for (instruction, _) in &mut self.items {
            instruction.set_code(instruction.code().as_near_branch());
        }
        // A branch that becomes short can bring targets of other branches into reach.
        while self.shorten(ip)? {}
        let starts = self.starts(ip)?;
        let mut bytes = Vec::new();
        for ((instruction, target), &start) in self.items.iter().zip(&starts) {
            let address = target.map(|target| target.address(&self.labels, &starts)).transpose()?;
            bytes.extend(encode(instruction, start, address)?);
        }
        Ok(bytes)
    }

    /// Makes branches short if their targets are in reach. Returns true if it changed a branch.
    fn shorten(&mut self, ip: u64) -> Result<bool, Error> {
        let starts = self.starts(ip)?;
        let mut is_changed = false;
        for (at, (instruction, target)) in self.items.iter_mut().enumerate() {
            let short = instruction.code().as_short_branch();
            let Some(target) = target.filter(|_| short != instruction.code()) else { continue };
            let address = target.address(&self.labels, &starts)?;
            // A short branch has fewer bytes, so a target after it moves nearer. Like `iced-x86`, this code ignores the
            // gain. A branch stays long if only the gain would bring its target into reach.
            let displacement = address.wrapping_sub(starts[at] + SHORT_BRANCH_BYTES) as i64;
            if i8::try_from(displacement).is_ok() {
                instruction.set_code(short);
                is_changed = true;
            }
        }
        Ok(is_changed)
    }

    /// Returns the address of each item, and the address after the last item.
    fn starts(&self, ip: u64) -> Result<Vec<u64>, Error> {
        let mut starts = vec![ip];
        let mut end = ip;
        for (instruction, target) in &self.items {
            // The length is the same for every target within reach, so the instruction's own address stands for the
            // target.
            end += encode(instruction, end, target.map(|_| end))?.len() as u64;
            starts.push(end);
        }
        Ok(starts)
    }

    fn check_no_prefix(&self) -> Result<(), Error> {
        if self.prefixes == Instruction::default() {
            Ok(())
        } else {
            Err(Error("a prefix has no instruction".into()))
        }
    }
}

impl Target {
    fn address(self, labels: &[Option<usize>], starts: &[u64]) -> Result<u64, Error> {
        match self {
            Self::Absolute(address) => Ok(address),
            Self::Label(label) => match labels[label.0] {
                Some(at) => Ok(starts[at]),
                None => Err(Error(format!("{label:?} is not set"))),
            },
        }
    }
}

/// Returns the bytes of an instruction at `ip`. `address` is its target, if it has one.
fn encode(instruction: &Instruction, ip: u64, address: Option<u64>) -> Result<Vec<u8>, Error> {
    let mut instruction = *instruction;
    match address {
        Some(address) if instruction.op0_kind() == OpKind::NearBranch64 => {
            instruction.set_near_branch64(address)
        }
        Some(address) => instruction.set_memory_displacement64(address),
        None => {}
    }
    let mut encoder = Encoder::new(64);
    match encoder.encode(&instruction, ip) {
        Ok(_) => Ok(encoder.take_buffer()),
        Err(error) => Err(Error(format!("{:?} at {ip:#x}: {error}", instruction.code()))),
    }
}
