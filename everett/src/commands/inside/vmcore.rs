//! `everett vmcore`: writes a machine's RAM as a core file of its kernel, which drgn and crash open.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use serde::Serialize;

use super::super::Outcome;
use super::super::exploration::Run;
use super::for_shell;
use super::guests::{self, Inside};
use super::instant::InstantArgs;
use crate::ui::{Ui, printable};

/// `everett vmcore`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The instant
    #[command(flatten)]
    pub instant: InstantArgs,
    /// The file. It must not exist
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    node: &'a str,
    vmcore: String,
    bytes: u64,
    release: Option<&'a str>,
}

pub(in super::super) fn run(ui: &Ui, args: &Args) -> anyhow::Result<Outcome> {
    if args.instant.node.is_none() {
        let run = Run::open(&args.instant.run)?;
        let nodes = &run.reading.header().nodes;
        if nodes.len() > 1 {
            bail!("--node: this world has several nodes, and one is needed: {}", nodes.join(", "));
        }
    }
    let here = || format!("--output: {}", args.output.display());
    let file = File::create_new(&args.output).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => anyhow!("{}: it exists already", here()),
        _ => anyhow::Error::new(error).context(here()),
    })?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut is_written = false;
    let all = guests::each_guest(ui, &args.instant, |inside| {
        is_written = dump(ui, inside, args, &mut out)?;
        Ok(())
    });
    if !is_written || all.is_err() {
        let _ = fs::remove_file(&args.output);
    }
    all?;
    if !is_written {
        bail!("the machine cannot be read at this instant");
    }
    Ok(Outcome::Fine)
}

/// Writes the file. Returns false if the kernel cannot be read.
fn dump(ui: &Ui, inside: &Inside<'_>, args: &Args, out: &mut BufWriter<File>) -> anyhow::Result<bool> {
    let core = match inside.guest.vmcore(&inside.cpu, inside.ram_bytes) {
        Ok(core) => core,
        Err(error) => {
            guests::unreadable(ui, inside.node, None, None, &error)?;
            return Ok(false);
        }
    };
    core.write(out, || inside.go_on().map_err(io::Error::other))
        .with_context(|| args.output.display().to_string())?;
    inside.go_on()?;
    let vmcore = args.output.display().to_string();
    ui.record(&Line {
        kind: "vmcore",
        node: inside.node,
        vmcore: vmcore.clone(),
        bytes: core.bytes(),
        release: core.release(),
    })?;
    let vmcore = for_shell(&vmcore);
    // Debian's package linux-image-RELEASE-dbg puts the kernel's debug file there.
    let debug = for_shell(&format!("/usr/lib/debug/boot/vmlinux-{}", core.release().unwrap_or("RELEASE")));
    ui.say(printable(&format!("    drgn -c {vmcore} -s {debug}")))?;
    ui.say(printable(&format!("    crash {debug} {vmcore}")))?;
    Ok(true)
}
