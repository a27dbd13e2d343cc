//! Probes of timelines, with everything that their observers share.

use anyhow::Context as _;
use everett_guest_image::kernel::KERNEL_BYTES_MAX;
use everett_inspect::Kernel;

use super::probe::{KERNEL, Place, Probe};
use super::programs::Programs;
use super::wanted::Wanted;
use crate::inside::debug_files::DebugFolders;
use crate::run::launch::Launcher;

/// Function that the kernel calls when a process has loaded a program, before the program's first instruction.
pub(super) const EXEC: &str = "finalize_exec";

/// Probes of timelines.
pub(crate) struct Probing {
    pub(crate) probes: Vec<Wanted>,
    pub(super) kernel: Kernel,
    /// Address of [`EXEC`], if a probe is in a program.
    pub(super) exec: Option<u64>,
    /// Addresses of the probes in the kernel, by the numbers of the probes.
    pub(super) in_kernel: Vec<(usize, u64)>,
    pub(super) programs: Programs,
}

impl Probing {
    /// Finds the kernel and the programs of the world's nodes.
    ///
    /// # Errors
    /// Returns an error if the kernel cannot be read, or if a probe has no place in it.
    pub(crate) fn new(
        launcher: &Launcher,
        probes: Vec<Wanted>,
        debug: &DebugFolders,
    ) -> anyhow::Result<Probing> {
        let file = &launcher.files.kernel;
        let kernel = everett_input::file::read(file, KERNEL_BYTES_MAX)?;
        let kernel = Kernel::new(&kernel).with_context(|| file.display().to_string())?;
        let (kernels, others): (Vec<_>, Vec<_>) =
            probes.iter().enumerate().partition(|(_, wanted)| wanted.probe.program == KERNEL);
        let in_kernel = kernels
            .into_iter()
            .map(|(n, wanted)| Ok((n, in_kernel(&kernel, &wanted.probe, &wanted.declared_as)?)));
        let in_kernel = in_kernel.collect::<anyhow::Result<_>>()?;
        let exec = match others.is_empty() {
            true => None,
            false => {
                Some(kernel.address_of(EXEC).with_context(|| format!("the kernel has no function {EXEC}"))?)
            }
        };
        let programs = Programs::of_launcher(launcher, debug)?;
        Ok(Probing { probes, kernel, exec, in_kernel, programs })
    }

    /// True if a probe is on this node.
    pub(super) fn is_on(&self, node: usize) -> bool {
        self.probes.iter().any(|wanted| wanted.is_on(node))
    }
}

/// Returns the address of a probe in the kernel. An error names the probe after `declared_as`.
pub(super) fn in_kernel(kernel: &Kernel, probe: &Probe, declared_as: &str) -> anyhow::Result<u64> {
    let address = match &probe.place {
        Place::Address(address) => Some(*address),
        Place::Function(name, offset) => {
            kernel.address_of(name).map(|start| start.wrapping_add(offset.unwrap_or(0)))
        }
        Place::Line(..) => None,
    };
    address.with_context(|| format!("{declared_as}{}: the kernel has no such function", probe.name))
}
