//! `everett ask RUN ID flame`: a flame graph by executed instructions, or the stacks for one.

use std::collections::BTreeMap;
use std::io::BufWriter;
use std::path::Path;

use anyhow::bail;
use everett_host::interrupt::Interrupt;
use everett_inspect::program_stack::Files;
use everett_report::exploration::figures::counted;
use everett_session::debug::cursor::Cursor;
use everett_session::debug::questions::follow::Span;
use everett_session::debug::questions::samples::{Sample, Samples};
use everett_session::explore::path_runner::Interrupted;
use everett_session::inside::debug_files::DebugFolders;
use everett_session::inside::mapped_files::MappedFiles;
use serde::Serialize;

use super::super::instant::Instant;
use super::super::new_file::NewFile;
use crate::ui::{Ui, printable};

/// Default number of instructions between two samples of a node.
pub(super) const EVERY: u64 = 100_000;
/// Maximum length of the names in all different stacks, in bytes. More stacks are counted, and left out.
const STACK_BYTES_MAX: usize = 256 << 20;

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    stack: &'a [&'a str],
    instructions: u64,
}

/// Last line of `--json`.
#[derive(Serialize)]
struct Sum {
    kind: &'static str,
    samples: u64,
    every: u64,
    stacks: usize,
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
    let mut stacks: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    let (mut samples, mut left_out, mut bytes) = (0, 0, 0);
    let mut found = |sample: Sample| {
        let is_wanted =
            process.is_none_or(|wanted| wanted == sample.pid.to_string() || wanted == sample.process);
        if !is_wanted {
            return Ok(());
        }
        samples += 1;
        let node = nodes.get(sample.node).filter(|_| nodes.len() > 1).cloned();
        let stack: Vec<String> = node.into_iter().chain([sample.process]).chain(sample.functions).collect();
        if let Some(instructions) = stacks.get_mut(&stack) {
            *instructions += every;
            return Ok(());
        }
        let more: usize = stack.iter().map(|name| name.len() + size_of::<String>()).sum();
        if bytes + more > STACK_BYTES_MAX {
            left_out += 1;
            return Ok(());
        }
        bytes += more;
        stacks.insert(stack, every);
        Ok(())
    };
    let goes_on = || !interrupt.wanted();
    let unreadable =
        Samples { every, files: &files, goes_on: &goes_on, found: &mut found }.take(cursor, span)?;
    if interrupt.wanted() {
        return Err(Interrupted.into());
    }
    if samples == 0 {
        let whose =
            process.map_or_else(|| "the machines".to_owned(), |process| format!("a process {process}"));
        bail!(
            "no sample: in this span, {whose} did not execute at a multiple of {every} instructions; see --every"
        );
    }
    match &file {
        Some(file) => {
            let title = format!("{} samples, one every {every} instructions of a node", samples);
            draw(&stacks, &title, file)?;
        }
        None => {
            for (stack, instructions) in &stacks {
                let words: Vec<&str> = stack.iter().map(String::as_str).collect();
                ui.record(&Line { kind: "stack", stack: &words, instructions: *instructions })?;
                ui.say(folded(stack, *instructions))?;
            }
        }
    }
    ui.record(&Sum { kind: "flame", samples, every, stacks: stacks.len(), left_out, unreadable })?;
    if let (Some(file), Some(path)) = (file, output) {
        file.keep()?;
        ui.say(printable(&format!(
            "{}: {}, {}",
            path.display(),
            counted(samples, "sample", "samples"),
            counted(stacks.len() as u64, "stack", "stacks")
        )))?;
    }
    if unreadable > 0 {
        ui.say(format!("{} could not be read", counted(unreadable, "stack", "stacks")))?;
    }
    if left_out > 0 {
        ui.say(format!("{} with further stacks are left out", counted(left_out, "sample", "samples")))?;
    }
    Ok(())
}

/// Returns a stack as a line of the form that tools for flame graphs read.
fn folded(stack: &[String], instructions: u64) -> String {
    // A semicolon separates functions, and the last space the number.
    let names: Vec<String> = stack.iter().map(|name| printable(name).replace(';', ":")).collect();
    format!("{} {instructions}", names.join(";"))
}

fn draw(stacks: &BTreeMap<Vec<String>, u64>, title: &str, file: &NewFile) -> anyhow::Result<()> {
    use inferno::flamegraph::{Options, from_lines};
    let lines: Vec<String> = stacks.iter().map(|(stack, count)| folded(stack, *count)).collect();
    let mut options = Options::default();
    title.clone_into(&mut options.title);
    "instructions".clone_into(&mut options.count_name);
    // The default would draw random colours.
    options.hash = true;
    let lines = lines.iter().map(String::as_str);
    from_lines(&mut options, lines, BufWriter::new(file.file())).map_err(|error| anyhow::anyhow!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_cannot_change_the_form_of_a_line() {
        let stack = ["a b", "f(x; y)", "g\n1"].map(str::to_owned);
        assert_eq!(folded(&stack, 7), "a b;f(x: y);g\\n1 7");
    }
}
