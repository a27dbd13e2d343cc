//! `everett runs import`: unpacks a finding file into a run directory that also contains the finding's world.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use everett_input::file::folder_of;
use everett_session::finding_file::{self, ImagesTo, Unpacked};
use serde::Serialize;

use crate::commands::history;
use crate::ui::{Ui, printable, style};

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    run_directory: &'a str,
    finding: u32,
    timeline: &'a str,
    property: &'a str,
    text: &'a str,
    world: &'a str,
    with_images: bool,
}

/// Unpacks a finding file. The folder must be empty or must not exist. If unpacking fails, the folder is not created.
pub(super) fn import(ui: &Ui, file: &Path, folder: Option<&Path>) -> anyhow::Result<()> {
    let folder = match folder {
        Some(folder) => folder.to_owned(),
        None => PathBuf::from(file.file_stem().context("the path has no file name")?),
    };
    let here = || folder.display().to_string();
    match fs::read_dir(&folder) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                bail!("{}: the folder is not empty; name another one with -o", folder.display());
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(here),
    }
    let parent = folder_of(&folder);
    let parent = parent.canonicalize().with_context(|| parent.display().to_string())?;
    let place =
        parent.join(folder.file_name().with_context(|| format!("{}: name a folder", folder.display()))?);
    let temporary =
        tempfile::Builder::new().prefix(".everett-import-").tempdir_in(&parent).with_context(here)?;
    let Unpacked { about, world } = finding_file::unpack(file, temporary.path(), &place, ImagesTo::Folder)?;
    // Temporary folders are private. Other users may read a run directory, as far as the user's umask allows.
    let mode = fs::metadata(temporary.path().join("world")).with_context(here)?.permissions();
    fs::set_permissions(temporary.path(), mode).with_context(here)?;
    fs::rename(temporary.keep(), &place).with_context(here)?;

    let name = folder.display().to_string();
    ui.record(&Line {
        kind: "imported",
        run_directory: &name,
        finding: about.finding,
        timeline: &about.timeline,
        property: &about.property,
        text: &about.text,
        world: &world.display().to_string(),
        with_images: about.seal.images.is_some(),
    })?;
    let what = format!("{}: {}", printable(&about.property), printable(&about.text));
    ui.say(style::paint(style::BAD, what))?;
    ui.say(format!(
        "everett replay {0} {1} runs the finding again; shrink, causality, findings and report also take {0}",
        printable(&name),
        about.finding
    ))?;
    history::add_imported(ui, &folder)
}
