//! `everett core`: writes processes as core files, which gdb opens, with the programs and libraries that they have mapped.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use everett_inspect::task::Process;
use everett_session::inside::debug_files::DebugFolders;
use everett_session::inside::mapped_files::MappedFiles;
use serde::Serialize;

use super::super::Outcome;
use super::guests::{self, Inside};
use super::instant::InstantArgs;
use super::{for_shell, sysroot};
use crate::ui::{Ui, printable};

/// `everett core`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The instant
    #[command(flatten)]
    pub instant: InstantArgs,
    /// The process with this ID, or the processes whose first thread has this name
    #[arg(long, value_name = "PID|NAME")]
    pub process: String,
    /// Folder for the files. It must not exist
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
}

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    node: &'a str,
    pid: u32,
    threads: usize,
    core: String,
    bytes: u64,
    files: String,
    program: Option<String>,
}

pub(in super::super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    let here = || format!("--output: {}", args.output.display());
    fs::create_dir(&args.output).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => anyhow!("{}: it exists already, and a new folder is needed", here()),
        _ => anyhow::Error::new(error).context(here()),
    })?;
    let mut found = false;
    let written = guests::each_guest(ui, &args.instant, |inside| {
        let files = MappedFiles::of_node(
            &inside.launcher.files,
            &inside.launcher.world,
            inside.node,
            DebugFolders::default(),
        )?;
        for process in inside.processes.iter().filter(|process| guests::is_named(process, &args.process)) {
            inside.go_on()?;
            found |= dump(ui, inside, &files, process, &args.output)?;
        }
        Ok(())
    });
    if !found {
        // Nothing is in the folder but what was half written.
        let _ = fs::remove_dir_all(&args.output);
    }
    let all_read = written?;
    if !found {
        let machine = if all_read { "no machine" } else { "no machine that can be read" };
        bail!("--process: {machine} has a program {} at this instant", args.process);
    }
    Ok(Outcome::Fine)
}

/// Writes a process. Returns false if it is a thread of the kernel or a zombie, or if it cannot be read.
fn dump(
    ui: &Ui,
    inside: &Inside<'_>,
    files: &MappedFiles,
    process: &Process,
    output: &Path,
) -> anyhow::Result<bool> {
    let node = inside.node;
    let core = match inside.guest.core_file(process, &inside.cpu) {
        Ok(Some(core)) => core,
        Ok(None) => return Ok(false),
        Err(error) => {
            guests::unreadable(ui, node, Some(process.pid), None, &error)?;
            return Ok(false);
        }
    };
    let name = output.join(format!("{node}-{}.core", process.pid));
    let write = || -> anyhow::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create_new(&name)?);
        core.write(&mut out)?;
        Ok(out.flush()?)
    };
    write().with_context(|| name.display().to_string())?;

    let root = output.join(node);
    inside.go_on()?;
    let program = sysroot::unpack(&root, &inside.guest, process, core.mappings(), files)?;
    ui.record(&Line {
        kind: "core",
        node,
        pid: process.pid,
        threads: process.threads.len(),
        core: name.display().to_string(),
        bytes: core.bytes(),
        files: root.display().to_string(),
        program: program.as_ref().map(|path| path.display().to_string()),
    })?;
    let program = program.map(|path| for_shell(&path.display().to_string()) + " ").unwrap_or_default();
    let sysroot = for_shell(&format!("set sysroot {}", root.display()));
    let name = for_shell(&name.display().to_string());
    ui.say(printable(&format!("    gdb -ex {sysroot} {program}{name}")))?;
    Ok(true)
}
