//! `everett ask RUN ID flame`: a flame graph by executed instructions, or the stacks for one.

use std::io::BufWriter;
use std::path::Path;

use anyhow::bail;
use everett_host::interrupt::Interrupt;
use everett_inspect::program_stack::Files;
use everett_report::exploration::figures::counted;
use everett_session::debug::cursor::Cursor;
use everett_session::debug::questions::follow::Span;
use everett_session::debug::questions::samples::Samples;
use everett_session::explore::path_runner::Interrupted;
use everett_session::inside::debug_files::DebugFolders;
use everett_session::inside::mapped_files::MappedFiles;
use everett_session::inside::profile::Profile;
use everett_session::inside::sampler::Sample;
use serde::Serialize;

use super::super::flame_graph::{draw, folded};
use super::super::instant::Instant;
use super::super::new_file::NewFile;
use crate::ui::{Ui, printable};

/// Default number of instructions between two samples of a node.
pub(super) const EVERY: u64 = 100_000;

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    stack: &'a [String],
    instructions: u64,
}

/// Last line of `--json`.
#[derive(Serialize)]
struct Sum {
    kind: &'static str,
    samples: u64,
    every: u64,
    stacks: usize,
    /// Number of samples whose stack is one of those that share a row.
    left_out: u64,
    unreadable: u64,
}

/// Takes samples and writes a picture to `output`, or prints the stacks with their numbers of instructions.
pub(super) fn run(
    ui: &Ui,
    instant: &Instant,
    cursor: &mut Cursor<'_>,
    span: &Span<'_>,
    process: Option<&str>,
    (output, every, debug): (Option<&Path>, u64, &DebugFolders),
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let launcher = &instant.setting.launcher;
    let nodes = instant.nodes();
    let files =
        nodes.iter().map(|node| MappedFiles::of_node(&launcher.files, &launcher.world, node, debug.clone()));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let files: Vec<&dyn Files> = files.iter().map(|files| files as &dyn Files).collect();
    let file = output.map(NewFile::create).transpose()?;
    let mut profile = Profile::new(every, nodes.iter().cloned());
    let mut found = |node: usize, sample: Sample| {
        let is_wanted =
            process.is_none_or(|wanted| wanted == sample.pid.to_string() || wanted == sample.process);
        if is_wanted {
            profile.add(node, sample);
        }
        Ok(())
    };
    let goes_on = || !interrupt.wanted();
    let unreadable =
        Samples { every, files: &files, goes_on: &goes_on, found: &mut found }.take(cursor, span)?;
    if interrupt.wanted() {
        return Err(Interrupted.into());
    }
    let tables = profile.tables();
    let samples = tables.samples;
    if samples == 0 {
        let whose =
            process.map_or_else(|| "the machines".to_owned(), |process| format!("a process {process}"));
        bail!(
            "no sample: in this span, {whose} did not execute at a multiple of {every} instructions; see --every"
        );
    }
    match &file {
        Some(file) => {
            let title = format!("{samples} samples, one every {every} instructions of a node");
            draw(&profile, &title, BufWriter::new(file.file()))?;
        }
        None => {
            for (stack, instructions) in profile.stacks() {
                ui.record(&Line { kind: "stack", stack: &stack, instructions })?;
                ui.say(folded(&stack, instructions))?;
            }
        }
    }
    let (stacks, left_out) = (tables.stacks, tables.cut.stack_samples);
    ui.record(&Sum { kind: "flame", samples, every, stacks, left_out, unreadable })?;
    if let (Some(file), Some(path)) = (file, output) {
        file.keep()?;
        ui.say(printable(&format!(
            "{}: {}, {}",
            path.display(),
            counted(samples, "sample", "samples"),
            counted(stacks as u64, "stack", "stacks")
        )))?;
    }
    if unreadable > 0 {
        ui.say(format!("{} could not be read", counted(unreadable, "stack", "stacks")))?;
    }
    tables.cut.lines().into_iter().try_for_each(|line| Ok(ui.say(line)?))
}
