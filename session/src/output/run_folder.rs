//! Output folder of `everett run -o DIR`.
//!
//! - `events.jsonl`: events, one [`Event`] per line
//! - `wire.jsonl`: fates of frames (DELIVER, DUPLICATE, DROP or TIMEOUT), one per line
//! - `wire.pcapng`: frames for Wireshark; their times are the date at which the world starts, plus the vtime
//! - `trail.jsonl`: digests, one `{"vtime_ns":…,"digest":"…"}` per line
//! - `console.log`: bytes of the serial console; in a world of several nodes, one `console-NODE.log` per node
//! - `run.json`: the run and its result
//!
//! Everett writes `run.json` last and renames it into place. If it exists, the other files are complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use everett_vmm::wire::PortConfig;
use everett_vmm::wire::log::FrameStep;
use everett_vmm::wire::pcapng::{Outcomes, PcapNg};
use everett_vmm::world::Captured;
use everett_world_file::World;
use serde::Serialize;

use super::wire_line::WireLine;
use crate::world::event::Event;

/// Version of the folder's layout and of its file formats.
pub const SCHEMA_VERSION: u32 = 1;

/// A run folder cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder is not empty.
    #[error("{}: the folder is not empty; name another one with -o, or remove it first", .0.display())]
    NotEmpty(PathBuf),
    /// A file or folder cannot be read or written.
    #[error("{}", path.display())]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Cause of the failure.
        source: io::Error,
    },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { path, source }
}

/// A run folder to which a run writes.
pub struct RunFolder {
    folder: PathBuf,
    events: Lines,
    trail: Lines,
    /// Serial consoles, one per node.
    consoles: Vec<Lines>,
    wire: Lines,
    capture: PcapNg<BufWriter<File>>,
    capture_path: PathBuf,
}

#[derive(Debug)]
struct Lines {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Lines {
    fn create(path: PathBuf) -> Result<Lines, Error> {
        let file = File::create_new(&path).map_err(at(&path))?;
        Ok(Lines { path, file: BufWriter::new(file) })
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(at(&self.path))
    }

    fn record(&mut self, record: &impl Serialize) -> Result<(), Error> {
        let mut line = serde_json::to_vec(record).map_err(io::Error::other).map_err(at(&self.path))?;
        line.push(b'\n');
        self.bytes(&line)
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.file.flush().and_then(|()| self.file.get_ref().sync_all()).map_err(at(&self.path))
    }
}

#[derive(Serialize)]
struct TrailLine<'a> {
    vtime_ns: u64,
    digest: &'a str,
}

impl RunFolder {
    /// Checks that `folder` does not exist yet or is empty. Does not create it.
    ///
    /// # Errors
    /// Returns an error if the folder has files or cannot be read.
    pub fn check_free(folder: &Path) -> Result<(), Error> {
        match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(at(folder)(error)),
            Ok(mut entries) => match entries.next() {
                None => Ok(()),
                Some(_) => Err(Error::NotEmpty(folder.to_owned())),
            },
        }
    }

    /// Creates the folder and its files. If the folder exists, it must be empty.
    ///
    /// # Errors
    /// Returns an error if the folder has files, or if a file cannot be written.
    pub fn create(folder: &Path, world: &World, ports: &[PortConfig]) -> Result<RunFolder, Error> {
        RunFolder::check_free(folder)?;
        fs::create_dir_all(folder).map_err(at(folder))?;
        let consoles = world.nodes.iter().map(|node| {
            let file = if world.nodes.len() == 1 {
                "console.log".to_owned()
            } else {
                format!("console-{}.log", node.name)
            };
            Lines::create(folder.join(file))
        });
        let capture_path = folder.join("wire.pcapng");
        let file = BufWriter::new(File::create_new(&capture_path).map_err(at(&capture_path))?);
        let capture = PcapNg::new(file, ports, world.epoch_unix_s).map_err(at(&capture_path))?;
        Ok(RunFolder {
            folder: folder.to_owned(),
            events: Lines::create(folder.join("events.jsonl"))?,
            trail: Lines::create(folder.join("trail.jsonl"))?,
            consoles: consoles.collect::<Result<_, _>>()?,
            wire: Lines::create(folder.join("wire.jsonl"))?,
            capture,
            capture_path,
        })
    }

    /// Appends an event.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn event(&mut self, event: &Event) -> Result<(), Error> {
        self.events.record(event)
    }

    /// Appends bytes to the console of the node with this index.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn console(&mut self, node: usize, bytes: &[u8]) -> Result<(), Error> {
        self.consoles.get_mut(node).map_or(Ok(()), |console| console.bytes(bytes))
    }

    /// Appends the fates of frames, and the frames. `nodes` lists the names of the nodes.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub fn wire(&mut self, nodes: &[String], steps: &[FrameStep], frames: &[Captured]) -> Result<(), Error> {
        let name = |port: u8| nodes.get(usize::from(port)).map_or("?", |name| &**name);
        for step in steps {
            self.wire.record(&WireLine::new(step, &name))?;
        }
        let outcomes = Outcomes::new(steps);
        for frame in frames {
            let written = match frame {
                Captured::Sent { port, at, frame, bytes } => {
                    self.capture.sent(*port, *at, *frame, bytes, &outcomes)
                }
                Captured::Delivered(delivery) => self.capture.delivered(delivery, &outcomes),
            };
            written.map_err(at(&self.capture_path))?;
        }
        Ok(())
    }

    /// Appends a point of the trail. `digest` is in hexadecimal.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn trail_point(&mut self, vtime_ns: u64, digest: &str) -> Result<(), Error> {
        self.trail.record(&TrailLine { vtime_ns, digest })
    }

    /// Syncs all files and writes `run.json` with `summary`.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub fn finish(mut self, summary: &impl Serialize) -> Result<(), Error> {
        #[derive(Serialize)]
        struct Run<'a, S> {
            schema_version: u32,
            #[serde(flatten)]
            summary: &'a S,
        }
        for lines in [&mut self.events, &mut self.trail, &mut self.wire].into_iter().chain(&mut self.consoles)
        {
            lines.sync()?;
        }
        let finished = self.capture.finish().and_then(|mut capture| {
            capture.flush()?;
            capture.get_ref().sync_all()
        });
        finished.map_err(at(&self.capture_path))?;
        let temporary = self.folder.join("run.json.new");
        let mut lines = Lines::create(temporary.clone())?;
        lines.record(&Run { schema_version: SCHEMA_VERSION, summary })?;
        lines.sync()?;
        let path = self.folder.join("run.json");
        fs::rename(&temporary, &path).map_err(at(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::event::What;

    #[test]
    fn a_folder_with_run_json_is_complete() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("new");
        let world = everett_world_file::parse("[[node]]\nname = \"a\"\n", Path::new("w.toml")).unwrap();
        let mut run = RunFolder::create(&folder, &world, &[]).unwrap();
        run.event(&Event { vtime_ns: 5, node: "a".to_owned(), what: What::Ready }).unwrap();
        run.console(0, b"\x00\xff").unwrap();
        run.trail_point(5, "abc").unwrap();
        assert!(!folder.join("run.json").exists());
        run.finish(&serde_json::json!({ "seed": 1 })).unwrap();
        let read = |name: &str| fs::read(folder.join(name)).unwrap();
        assert_eq!(read("events.jsonl"), b"{\"vtime_ns\":5,\"node\":\"a\",\"kind\":\"ready\"}\n");
        assert_eq!(read("trail.jsonl"), b"{\"vtime_ns\":5,\"digest\":\"abc\"}\n");
        assert_eq!(read("console.log"), b"\x00\xff");
        assert_eq!(read("run.json"), b"{\"schema_version\":1,\"seed\":1}\n");
        let Err(error) = RunFolder::create(&folder, &world, &[]) else { panic!("the folder exists already") };
        let here = folder.display();
        assert_eq!(
            error.to_string(),
            format!("{here}: the folder is not empty; name another one with -o, or remove it first")
        );
    }
}
