//! `everett debug --gdb`: debugs a process or a kernel at any instant of a branch with gdb, forwards and backwards.

use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::{fs, thread};

use anyhow::{Context as _, bail};
use everett_gdb::{Debuggee, Subject};
use everett_host::interrupt::Interrupt;
use everett_inspect::mapping::Mapping;
use everett_inspect::task::Process;
use everett_inspect::{Guest, Kernel};
use everett_session::debug::cursor::{Aim, Cursor, Unless};
use everett_session::inside::debug_files::DebugFolders;
use everett_session::inside::machine::MachineRam;
use everett_session::inside::mapped_files::MappedFiles;

use super::super::super::{Outcome, resources};
use super::super::instant::Instant;
use super::super::{for_shell, guests, sysroot};
use super::Args;
use crate::ui::{Ui, printable};

/// Content that gdb reads from files.
struct Files {
    /// Folder with programs and libraries by their paths in the guest.
    root: PathBuf,
    /// The program, or the kernel's symbols.
    program: Option<PathBuf>,
    /// Folders in which gdb looks for debug files by build ID.
    debug: Vec<PathBuf>,
}

/// Starts gdb at the instant, or waits for a debugger.
pub(super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    if args.process.is_none() && !args.kernel {
        bail!("--process: gdb needs a process; name one with --process, or choose the kernel with --kernel");
    }
    args.debug_files.folders()?;
    let interrupt = Interrupt::install()?;
    let instant = Instant::open(ui, &args.instant, &interrupt)?;
    let kernel = guests::kernel(&instant.setting)?;
    let mut cursor = instant.cursor(resources::default_memory())?;
    cursor.seek(Aim::Vtime(instant.at_ns), &mut Unless(&|| interrupt.wanted()))?;
    instant.warn_of_engine(ui)?;
    let temporary = tempfile::tempdir().context("a temporary folder")?;
    let root = args.output.clone().unwrap_or_else(|| temporary.path().to_owned());
    let (node, subject, files, program) = match &args.process {
        None => {
            let node = the_only_node(&instant, args)?;
            let file = root.join("kernel.symbols");
            fs::create_dir_all(&root)
                .and_then(|()| fs::write(&file, kernel.symbol_file()))
                .with_context(|| file.display().to_string())?;
            (node, Subject::Kernel, None, Some(file))
        }
        Some(wanted) => {
            let (node, process) = find(&instant, &cursor, &kernel, args, wanted)?;
            let launcher = &instant.setting.launcher;
            let files = MappedFiles::of_node(
                &launcher.files,
                &launcher.world,
                &instant.nodes()[node],
                DebugFolders::default(),
            )?;
            let program = unpack(&files, &cursor, &kernel, node, &process, &root)?;
            (node, Subject::Process(process.pid), Some(files), program)
        }
    };
    let debug =
        args.debug_files.debug_files.iter().flat_map(|folder| [folder.clone(), folder.join("usr/lib/debug")]);
    let mapped = files.as_ref().map(|files| files as &dyn everett_inspect::program_stack::Files);
    let files = Files { root, program, debug: debug.filter(|folder| folder.is_dir()).collect() };

    let listener = TcpListener::bind(args.listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0))))
        .with_context(|| format!("--listen: {:?}", args.listen))?;
    let address = listener.local_addr()?;
    let mut debuggee = Debuggee::new(&mut cursor, &kernel, mapped, node, subject)?;
    if args.gdb {
        // gdb handles Ctrl-C itself.
        let _held = interrupt.hold();
        return with_gdb(args, &files, &listener, &mut debuggee);
    }
    ui.say(printable(&command_line(&files, address)))?;
    let (connection, _) = listener.accept()?;
    everett_gdb::serve(&mut debuggee, connection)?;
    Ok(Outcome::Fine)
}

/// Returns the number of the node that `--node` names, or of the only node.
fn the_only_node(instant: &Instant, args: &Args) -> anyhow::Result<usize> {
    let nodes = instant.nodes();
    match &args.instant.node {
        Some(name) => nodes.iter().position(|node| node == name).context("the node is one of the world's"),
        None if nodes.len() == 1 => Ok(0),
        None => bail!("--kernel: name its node with --node; the nodes are {}", nodes.join(", ")),
    }
}

/// Finds the process with a name or ID on the nodes that `--node` allows.
fn find(
    instant: &Instant,
    cursor: &Cursor<'_>,
    kernel: &Kernel,
    args: &Args,
    wanted: &str,
) -> anyhow::Result<(usize, Process)> {
    let mut found = Vec::new();
    for (node, name) in instant.nodes().iter().enumerate() {
        if args.instant.node.as_ref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        let ram = MachineRam(cursor.timeline().machine(node));
        let Ok(processes) = Guest::new(kernel, &ram).and_then(|guest| guest.processes()) else { continue };
        let named = processes.into_iter().filter(|process| process.mm.is_some());
        found
            .extend(named.filter(|process| guests::is_named(process, wanted)).map(|process| (node, process)));
    }
    match found.len() {
        0 => bail!("--process: no machine that can be read has a program {wanted} at this instant"),
        1 => Ok(found.swap_remove(0)),
        _ => {
            let name =
                |(node, process): &(usize, Process)| format!("{} on {}", process.pid, instant.nodes()[*node]);
            let all: Vec<String> = found.iter().map(name).collect();
            bail!(
                "--process: several processes are named {wanted}: {}; choose with --node and an ID",
                all.join(", ")
            )
        }
    }
}

/// Writes the programs and libraries of a process below `root`. Returns the path of its program.
fn unpack(
    files: &MappedFiles,
    cursor: &Cursor<'_>,
    kernel: &Kernel,
    node: usize,
    process: &Process,
    root: &Path,
) -> anyhow::Result<Option<PathBuf>> {
    let ram = MachineRam(cursor.timeline().machine(node));
    let guest = Guest::new(kernel, &ram)?;
    let mappings: Vec<Mapping> = guest.mappings(process)?;
    sysroot::unpack(root, &guest, process, &mappings, files)
}

/// Returns the settings and the program with which gdb starts.
fn settings(files: &Files) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    let mut set = |text: String| all.extend(["-iex".into(), text.into()]);
    set(format!("set sysroot {}", files.root.display()));
    if !files.debug.is_empty() {
        let folders: Vec<String> = files.debug.iter().map(|folder| folder.display().to_string()).collect();
        set(format!("set debug-file-directory {}", folders.join(":")));
    }
    all.extend(files.program.iter().map(|program| program.clone().into()));
    all
}

fn connect(address: SocketAddr) -> [OsString; 2] {
    ["-ex".into(), format!("target remote {address}").into()]
}

/// Returns the command that opens the session in gdb.
fn command_line(files: &Files, address: SocketAddr) -> String {
    let words = settings(files).into_iter().chain(connect(address));
    let words: Vec<String> = words.map(|word| for_shell(&word.to_string_lossy())).collect();
    format!("gdb {}", words.join(" "))
}

/// Starts gdb and answers it until it ends.
fn with_gdb(
    args: &Args,
    files: &Files,
    listener: &TcpListener,
    debuggee: &mut Debuggee<'_, '_>,
) -> anyhow::Result<Outcome> {
    let address = listener.local_addr()?;
    let mut command = Command::new(&args.gdb_program);
    command.arg("-q").args(settings(files)).args(connect(address)).args(&args.arguments);
    let mut gdb: Child = command.spawn().with_context(|| format!("--gdb: {}", args.gdb_program.display()))?;
    let waiter = thread::spawn(move || {
        let status = gdb.wait();
        // If gdb ended before it connected, this ends the wait for it.
        let _ = TcpStream::connect(address);
        status
    });
    let (connection, _) = listener.accept()?;
    let served = everett_gdb::serve(debuggee, connection);
    let status = waiter.join().map_err(|_| anyhow::anyhow!("the thread that waits for gdb panicked"))??;
    served?;
    Ok(if status.success() { Outcome::Fine } else { Outcome::Found })
}
