//! `everett run --profile`: a profile of all guests by retired instructions.
//!
//! - this file: samples of a running timeline, and the files of the profile
//! - `tables`: the profile as text

mod tables;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use everett_inspect::{Error, Kernel};
use everett_session::inside::debug_files::DebugFolders;
use everett_session::inside::kernel_types;
use everett_session::inside::mapped_files::MappedFiles;
use everett_session::inside::profile::{Profile, Tables};
use everett_session::inside::sampler::{Kind, Known, Sampler};
use everett_session::machines::engines::Engine;
use everett_session::run::launch::Launcher;
use everett_session::world::identity::MACHINE_VERSION;
use everett_session::world::timeline::Timeline;
use everett_vmm::world::Node;
use everett_world_file::Clock;
use serde::Serialize;

use super::super::profile_args::ProfileArgs;
use super::flame_graph::{draw, folded};
use crate::ui::{Ui, printable, style};

/// Version of `profile.json`.
const SCHEMA_VERSION: u32 = 1;
/// Maximum number of rows of a table on the terminal.
const ROWS_SHOWN_MAX: usize = 10;
/// Maximum number of rows of a table in `profile.txt`.
const ROWS_WRITTEN_MAX: usize = 200;

/// Profile that was asked for.
#[derive(Debug)]
pub(in super::super) struct Asked {
    folder: PathBuf,
    every: u64,
}

/// Profile of a running timeline.
pub(in super::super) struct Profiler {
    folder: PathBuf,
    kernel: Kernel,
    nodes: Vec<Profiled>,
    profile: Profile,
}

/// A node of which samples are taken.
struct Profiled {
    files: MappedFiles,
    known: Known,
    /// Distance of the machine's own count from [`Node::retired`]. Another one means that the node has started again.
    life: u64,
    /// Value of [`Node::retired`] at the start of the profile.
    first: u64,
    /// Value of [`Node::retired`] at the next sample.
    next: u64,
}

/// `profile.json`, and the record of `--json`.
#[derive(Serialize)]
struct Document<'a> {
    kind: &'static str,
    schema_version: u32,
    machine_version: &'static str,
    path: &'a str,
    vtime_ns: u64,
    executed: Vec<Executed<'a>>,
    #[serde(flatten)]
    tables: &'a Tables,
}

/// Number of instructions that a node retired while the profile was made.
#[derive(Serialize)]
struct Executed<'a> {
    node: &'a str,
    instructions: u64,
}

impl Asked {
    /// Returns the profile that the options ask for, if they do. The folder must be new or empty, and the engine must count
    /// instructions.
    pub(in super::super) fn new(args: &ProfileArgs, engine: &Engine) -> anyhow::Result<Option<Asked>> {
        let Some(folder) = args.profile.clone() else { return Ok(None) };
        if engine.clock != Clock::Insn {
            bail!(
                "--profile: needs a clock that counts instructions, at which every engine stops exactly; set clock = \"insn\" \
                 in the world file"
            );
        }
        check_free(&folder)?;
        Ok(Some(Asked { folder, every: args.profile_every }))
    }
}

/// Returns an error unless the folder does not exist or is empty.
fn check_free(folder: &Path) -> anyhow::Result<()> {
    match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => bail!(
            "--profile: {}: the folder is not empty; name another one, or remove it first",
            folder.display()
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("--profile: {}", folder.display())),
    }
}

impl Profiler {
    /// Creates the folder, and makes each node stop at its first sample.
    pub(in super::super) fn begin(
        asked: Asked,
        launcher: &Launcher,
        timeline: &mut Timeline,
    ) -> anyhow::Result<Profiler> {
        let Asked { folder, every } = asked;
        fs::create_dir_all(&folder).with_context(|| format!("--profile: {}", folder.display()))?;
        let kernel = kernel_types::kernel(&launcher.files)?;
        let names: Vec<String> = launcher.nodes().map(|node| node.name.clone()).collect();
        let mut nodes = Vec::new();
        for (n, name) in names.iter().enumerate() {
            let files =
                MappedFiles::of_node(&launcher.files, &launcher.world, name, DebugFolders::default())?;
            let node = timeline.world_mut().node_mut(n);
            let first = node.retired();
            let next = first.saturating_add(every);
            node.stop_at(next);
            nodes.push(Profiled { files, known: Known::default(), life: life(node), first, next });
        }
        Ok(Profiler { folder, kernel, nodes, profile: Profile::new(every, names) })
    }

    /// Takes a sample of a node that has stopped at one, and makes the node stop at the next one.
    pub(in super::super) fn counted(&mut self, node: usize, timeline: &mut Timeline) {
        let profiled = &mut self.nodes[node];
        let there = &timeline.world().nodes()[node];
        if life(there) != profiled.life {
            profiled.life = life(there);
            profiled.known = Known::default();
        }
        let mut sampler = Sampler::new(&self.kernel, &profiled.files, std::mem::take(&mut profiled.known));
        match sampler.sample(there.machine()) {
            Ok(sample) => self.profile.add(node, sample),
            Err(Error::OtherKernel) => self.profile.add_unread(node, Kind::Boot),
            Err(_) => self.profile.add_unread(node, Kind::Unreadable),
        }
        profiled.known = sampler.into_known();
        profiled.next = profiled.next.saturating_add(self.profile.every());
        timeline.world_mut().node_mut(node).stop_at(profiled.next);
    }

    /// Ends the profile, writes its files and prints its tables.
    pub(in super::super) fn write(
        mut self,
        ui: &Ui,
        timeline: &mut Timeline,
        path: &str,
    ) -> anyhow::Result<()> {
        for node in 0..self.nodes.len() {
            // The run can end exactly where the next sample is due.
            if timeline.world().nodes()[node].retired() >= self.nodes[node].next {
                self.counted(node, timeline);
            }
            timeline.world_mut().node_mut(node).stop_at(u64::MAX);
        }
        let tables = self.profile.tables();
        let executed = self.nodes.iter().zip(timeline.world().nodes());
        let executed = executed.map(|(profiled, node)| Executed {
            node: node.machine().name(),
            instructions: node.retired().saturating_sub(profiled.first),
        });
        let document = Document {
            kind: "profile",
            schema_version: SCHEMA_VERSION,
            machine_version: MACHINE_VERSION,
            path,
            vtime_ns: timeline.vtime(),
            executed: executed.collect(),
            tables: &tables,
        };
        let title = format!("{path}: {}", tables::summary(&tables));
        self.file("profile.folded", |file| {
            for (stack, instructions) in self.profile.stacks() {
                writeln!(file, "{}", folded(&stack, instructions))?;
            }
            Ok(())
        })?;
        // There is nothing to draw without samples.
        if tables.samples > 0 {
            self.file("flame.svg", |file| draw(&self.profile, &title, file))?;
        }
        self.file("profile.txt", |file| {
            writeln!(file, "{title}")?;
            for line in tables::lines(&tables, ROWS_WRITTEN_MAX) {
                writeln!(file, "{}", line.text)?;
            }
            Ok(())
        })?;
        self.file("profile.json", |file| {
            serde_json::to_writer_pretty(&mut *file, &document)?;
            Ok(writeln!(file)?)
        })?;
        ui.record(&document)?;
        ui.say(format!(
            "profile in {}: {}",
            style::paint(style::HEAD, printable(&self.folder.display().to_string())),
            tables::summary(&tables)
        ))?;
        for line in tables::lines(&tables, ROWS_SHOWN_MAX) {
            let text = if line.is_heading { style::paint(style::HEAD, line.text) } else { line.text };
            ui.say(text)?;
        }
        Ok(())
    }

    /// Writes a file of the folder.
    fn file(
        &self,
        name: &str,
        write: impl FnOnce(&mut BufWriter<File>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let path = self.folder.join(name);
        let whole = || -> anyhow::Result<()> {
            let mut file = BufWriter::new(File::create_new(&path)?);
            write(&mut file)?;
            Ok(file.flush()?)
        };
        whole().with_context(|| path.display().to_string())
    }
}

fn life(node: &Node) -> u64 {
    node.retired().wrapping_sub(node.machine().icount())
}
