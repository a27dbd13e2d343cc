//! `everett core`: writes processes as core files, which gdb opens, with the programs and libraries that they have mapped.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use everett_inspect::mapping::Mapping;
use everett_inspect::program_stack::Files as _;
use everett_inspect::task::Process;
use everett_session::inside::debug_files::DebugFolders;
use everett_session::inside::mapped_files::MappedFiles;
use serde::Serialize;

use super::super::Outcome;
use super::guests::{self, Inside};
use super::instant::InstantArgs;
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
        let files = MappedFiles::of_node(inside.files, inside.node, DebugFolders::default())?;
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
    let core = inside.guest.core_file(process, &inside.cpu);
    let (core, program) = match core.and_then(|core| Ok((core, inside.guest.program_path(process)?))) {
        Ok((Some(core), program)) => (core, program),
        Ok((None, _)) => return Ok(false),
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
    let mut seen = BTreeSet::new();
    for mapping in core.mappings().iter().filter(|mapping| mapping.file.is_some()) {
        if seen.insert(&mapping.name)
            && let Some(path) = below(&root, &mapping.name)
            && let Some(program) = files.program(mapping)
        {
            inside.go_on()?;
            put(&path, program.file()).with_context(|| path.display().to_string())?;
        }
    }
    // gdb looks for libraries by the names that the dynamic linker gave them.
    for library in inside.guest.libraries(process).unwrap_or_default() {
        let holds = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&library.dynamic);
        let file = core.mappings().iter().find(holds).and_then(|mapping| below(&root, &mapping.name));
        if let (Some(file), Some(name)) = (file.filter(|file| file.is_file()), below(&root, &library.name))
            && !name.exists()
        {
            make_folder_of(&name)
                .and_then(|()| fs::hard_link(&file, &name))
                .with_context(|| name.display().to_string())?;
        }
    }
    let program = program.and_then(|path| below(&root, &path)).filter(|path| path.is_file());
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

/// Returns the path of a guest's file below a folder of the host. `None` if the path could leave the folder.
fn below(root: &Path, path: &str) -> Option<PathBuf> {
    let path = Path::new(path.strip_prefix('/')?);
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    (is_plain && path.components().next().is_some()).then(|| root.join(path))
}

/// Returns a word as a shell reads it.
fn for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Writes a file, and the folders above it. Several processes can have mapped the same file.
fn put(path: &Path, content: &[u8]) -> io::Result<()> {
    make_folder_of(path)?;
    if path.exists() { Ok(()) } else { fs::write(path, content) }
}

fn make_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_guests_stay_in_the_folder() {
        let root = Path::new("out/n1");
        assert_eq!(below(root, "/usr/bin/redis-server"), Some(root.join("usr/bin/redis-server")));
        for path in ["/../x", "/usr/../../x", "/", "", "usr/bin/x", "//etc/x", "[heap]"] {
            assert_eq!(below(root, path), None, "{path}");
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(for_shell("out/n1-85.core"), "out/n1-85.core");
        assert_eq!(for_shell("set sysroot a"), "'set sysroot a'");
        assert_eq!(for_shell("it's"), r"'it'\''s'");
        assert_eq!(for_shell("$(x)"), "'$(x)'");
    }
}
