//! `--watch` and `--edges`: observers that do not change a timeline.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use everett_cpu::Edge;
use everett_input::file::folder_of;
use everett_session::machines::EngineKind;
use everett_session::machines::engines::Engine;
use everett_session::run::edges::Collected;
use everett_session::run::edges::table::{Count, Names};
use everett_session::run::launch::Launcher;
use everett_session::world::watching::{self, Watched};
use everett_world_file::World;
use serde::Serialize;

use crate::ui::{Ui, printable, style};

/// Options for instruments, which observe a timeline without changing it.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Instruments {
    /// Report stores to these bytes of a node (w), loads (r) or both (rw), as in n1:0xffffffff82a12340+8:w
    #[arg(long, value_name = "NODE:ADDRESS+BYTES:rw")]
    pub watch: Vec<Watched>,
    /// New file (JSON lines) that records which branch instructions went where, in all programs and in the kernel
    #[arg(long, value_name = "FILE")]
    pub edges: Option<PathBuf>,
}

/// Number of programs that the printed summary lists.
const PROGRAMS_SHOWN_MAX: usize = 10;

/// Checks that the requested nodes exist and the engine supports the instruments. Commands call this before they
/// build an image.
pub(super) fn check(args: &Instruments, world: &World, engine: &Engine) -> anyhow::Result<()> {
    let asked = [(!args.watch.is_empty(), "--watch"), (args.edges.is_some(), "--edges")];
    if let (EngineKind::Kvm, Some((_, name))) = (engine.kind, asked.into_iter().find(|(asked, _)| *asked)) {
        bail!("{name}: /dev/kvm cannot observe single instructions; use --engine soft");
    }
    watching::by_node(&args.watch, world.nodes.iter()).map(drop)
}

/// Sets the requested instruments in a launcher, which starts timelines.
pub(super) fn attach(args: &Instruments, launcher: &mut Launcher) -> anyhow::Result<()> {
    launcher.options.caches.edges = args.edges.is_some();
    launcher.watch(&args.watch)?;
    Ok(())
}

/// Collector of edges for the file of `--edges`.
pub(super) struct EdgeFile {
    path: PathBuf,
    collected: Collected,
}

/// Record of `--json`.
#[derive(Serialize)]
struct Record<'a> {
    kind: &'static str,
    edges: usize,
    programs: &'a [Count],
}

impl EdgeFile {
    /// Creates a collector if `--edges` names a file, which must not exist yet.
    pub(super) fn new(args: &Instruments) -> anyhow::Result<Option<EdgeFile>> {
        let Some(path) = args.edges.clone() else { return Ok(None) };
        if path.exists() {
            bail!("{}: the file exists; name another one with --edges, or remove it first", path.display());
        }
        let folder = folder_of(&path);
        if !folder.is_dir() {
            bail!("{}: there is no folder {}", path.display(), folder.display());
        }
        Ok(Some(EdgeFile { path, collected: Collected::default() }))
    }

    /// Adds the edges that a node's machine has recorded.
    pub(super) fn add(&mut self, node: usize, edges: &[Edge]) {
        self.collected.add(node, edges);
    }

    /// Writes the file and prints a summary.
    pub(super) fn write(self, ui: &Ui, launcher: &Launcher) -> anyhow::Result<()> {
        let EdgeFile { path, collected } = self;
        let names = Names::of(launcher)?;
        let nodes: Vec<&str> = launcher.nodes().map(|node| node.name.as_str()).collect();
        let at = || path.display().to_string();
        let mut file = BufWriter::new(tempfile::NamedTempFile::new_in(folder_of(&path)).with_context(at)?);
        names.write(&collected, &nodes, &mut file).with_context(at)?;
        file.flush().with_context(at)?;
        let file = file.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(at)?;
        file.persist_noclobber(&path).map_err(|error| error.error).with_context(at)?;
        let counts = names.counts(&collected);
        ui.record(&Record { kind: "edges", edges: collected.len(), programs: &counts })?;
        tell(ui, &path, collected.len(), &counts)
    }
}

fn tell(ui: &Ui, path: &Path, edges: usize, counts: &[Count]) -> anyhow::Result<()> {
    ui.say(format!("{edges} edges of code in {}", style::paint(style::HEAD, path.display())))?;
    for Count { program, edges, places } in counts.iter().take(PROGRAMS_SHOWN_MAX) {
        ui.say(format!("{edges:>8} to {places:>7} places in {}", printable(program)))?;
    }
    if let Some(more) = counts.get(PROGRAMS_SHOWN_MAX..).filter(|more| !more.is_empty()) {
        let edges: u64 = more.iter().map(|count| count.edges).sum();
        ui.say(format!("{edges:>8} in {} other programs", more.len()))?;
    }
    Ok(())
}
