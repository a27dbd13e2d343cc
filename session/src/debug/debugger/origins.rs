//! The command that asks who wrote bytes.

use everett_input::causes::with_causes;
use everett_inspect::Guest;

use super::answer::{Answer, OriginStep};
use super::command::Asked;
use super::error::Refused;
use super::{Debugger, looks};
use crate::debug::cursor::Unless;
use crate::debug::origin::limits::BYTES_MAX;
use crate::debug::origin::step::{Happened, Step};
use crate::debug::origin::{Extent, Memory, Search, Source};
use crate::inside::machine::MachineRam;
use crate::inside::mapped_files::MappedFiles;

/// Number of computations on the way back to which a search goes on, and of instructions before a store that it executes again.
/// They are the defaults of `everett who`.
const EXTENT: Extent = Extent { depth: 2, instructions: 4096 };

impl Debugger<'_> {
    /// Finds who wrote bytes, and where that program had them from. The timeline stands where it stood.
    pub(super) fn who(&mut self, asked: &Asked) -> anyhow::Result<Answer> {
        if self.code.is_none() {
            return Err(looks::no_breakpoints());
        }
        let node = self.node;
        let source = match asked.clone() {
            Asked::Object(expression) => {
                let object = self.look(|code, view| code.object(view, &expression))?;
                let (address, bytes) = object.map_err(|error| Refused::because(with_causes(&error)))?;
                let bytes = bytes.min(BYTES_MAX);
                Source::Memory(Memory { node, root: self.root()?, address, bytes })
            }
            Asked::File(file) => Source::File(node, file),
            Asked::Message(message) => Source::Message(None, message),
        };
        let origin = self.origin();
        let files = self.programs()?;
        let mut listener = Unless(self.interrupted);
        let steps =
            Search::new(&mut self.cursor, self.kernel, &files, EXTENT, &mut listener).origins(source)?;
        self.clear_stops();
        self.return_to(origin)?;
        let name = |node: usize| self.nodes.get(node).cloned().unwrap_or_default();
        let told = |step: Step| {
            let sender = match &step.what {
                Happened::Message { from, .. } => Some(name(*from)),
                _ => None,
            };
            OriginStep { node: name(step.node), sender, step }
        };
        Ok(Answer::Origins { steps: steps.into_iter().map(told).collect() })
    }

    /// Returns the guest-physical address of the root page table of the process or kernel in focus.
    fn root(&mut self) -> anyhow::Result<u64> {
        let focused = self.thread()?;
        let ram = MachineRam(self.cursor.timeline().machine(self.node));
        let read = || {
            let guest = Guest::new(self.kernel, &ram)?;
            match &focused {
                Some((process, _)) => guest.memory_of_process(process),
                None => Ok(Some(guest.memory())),
            }
        };
        let memory = read().map_err(|error| Refused::because(with_causes(&error)))?;
        Ok(memory.ok_or_else(looks::no_process)?.root())
    }

    /// Returns the programs of all nodes.
    fn programs(&self) -> anyhow::Result<Vec<MappedFiles>> {
        let launcher = &self.setting.launcher;
        let of_node =
            |node: &String| MappedFiles::of_node(&launcher.files, &launcher.world, node, self.debug.clone());
        Ok(self.nodes.iter().map(of_node).collect::<Result<_, _>>()?)
    }
}
