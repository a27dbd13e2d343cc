//! `everett runs export`: writes a finding, with everything that replays it on another host, into one file.

use std::path::Path;

use anyhow::{Context, bail};
use everett_explorer::run::Header;
use everett_guest_image::lock::Lock;
use everett_host::interrupt::Interrupt;
use everett_input::units::show_bytes;
use everett_session::finding_file::{self, About, ImagesTo, Packed, Parts, pack};
use everett_session::images;
use everett_session::output::progress::{Progress as _, Task};
use everett_session::world::identity::{Identity, MACHINE_VERSION};
use everett_world_file::World;
use everett_world_file::seal::Seal;
use serde::Serialize;
use serde_json::Value;

use crate::commands::exploration::{self, Run, recorded};
use crate::commands::id::Id;
use crate::commands::plans;
use crate::features;
use crate::ui::{Ui, printable, style};

/// Line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    file: &'a str,
    timeline: &'a str,
    finding: u32,
    with_images: bool,
    members: usize,
    bytes: u64,
    unpacked_bytes: u64,
    /// Names of the environment variables whose values the file contains.
    variables: Vec<&'a str>,
}

/// Writes a finding file, and checks that it unpacks to the same world.
pub(super) fn export(ui: &Ui, folder: &Path, id: u32, file: &Path, with_images: bool) -> anyhow::Result<()> {
    let interrupt = Interrupt::install()?;
    let run = Run::open(folder)?;
    let finding = run.finding(id)?;
    let record = run.record(Id::Finding(id))?;
    let header = run.reading.header();
    let (world, inputs) = exploration::load_again(header)?;
    if !with_images {
        let lock = Lock::read(&world.file.with_extension("lock"))?;
        let is_locked = |name: &str| lock.as_ref().is_some_and(|lock| lock.image(name).is_some());
        if world.seal.as_ref().is_none_or(|seal| seal.images.is_none())
            && let Some(part) = finding_file::of_this_host(&world, is_locked)
        {
            bail!("{}: {part} exists only on this host; export with --with-images", world.file.display());
        }
    }
    let image = images::get(ui, &world, features::access(), &interrupt)?;
    let identity = same_world(header, &world, &image.digest)?;
    // If the world was imported together with its images, the file contains them too: perhaps they cannot be built any
    // more.
    let with_images = with_images || world.seal.as_ref().is_some_and(|seal| seal.images.is_some());
    let timeline = format!("{}{}", identity.path(header.seed), record.path);
    let variables = inputs.variables.clone();
    let about = About {
        everett: env!("CARGO_PKG_VERSION").to_owned(),
        machine_version: MACHINE_VERSION.to_owned(),
        finding: id,
        property: finding.hit.property.clone(),
        text: finding.hit.text.clone(),
        timeline: timeline.clone(),
        trail: record.trail.clone(),
        faults: faults(header, &world, &record.path),
        world: String::new(),
        folders: Vec::new(),
        seal: Seal { variables, images: with_images.then(|| image.sealed.clone()), ..Seal::default() },
    };
    let carried = if with_images { &*image.entries } else { &[] };
    let parts = Parts { about, run: folder, world: &world, inputs: &inputs, images: carried };
    let mut display = ui.begin(Task::Image);
    let packed = pack(parts, file, &mut |done, total| {
        let shown = format!("{} of {}", show_bytes(done), show_bytes(total));
        display.stage("packing", done, total, Some(shown));
    });
    drop(display);
    let Packed { members, unpacked_bytes, bytes } = packed?;
    check(file, header, &image.digest)
        .with_context(|| format!("{}: this file would not replay the finding", file.display()))?;

    let set = inputs.variables.iter().filter(|(_, value)| value.is_some());
    let variables: Vec<&str> = set.map(|(name, _)| name.as_str()).collect();
    let name = file.display().to_string();
    ui.record(&Line {
        kind: "exported",
        file: &name,
        timeline: &timeline,
        finding: id,
        with_images,
        members,
        bytes,
        unpacked_bytes,
        variables: variables.clone(),
    })?;
    let images = if with_images { "with its images" } else { "without images" };
    ui.say(format!("{}  {}, {images}", style::paint(style::HEAD, printable(&name)), show_bytes(bytes)))?;
    if !variables.is_empty() {
        let line =
            format!("the file contains the values of these environment variables: {}", variables.join(", "));
        ui.say(style::paint(style::NOTE, printable(&line)))?;
    }
    Ok(ui.say(format!(
        "on any x86-64 Linux host, everett replay {} runs the finding again",
        printable(&name)
    ))?)
}

/// Returns the identity of the exploration (a digest of everything on which its timelines depend, except seed and
/// path). Fails if the world or its image has changed since the exploration.
fn same_world(header: &Header, world: &World, image: &str) -> anyhow::Result<Identity> {
    let identity = Identity::of_exploration(world, &[image.to_owned()]);
    let now = Header {
        world: recorded(world),
        image: image.to_owned(),
        identity: identity.hex(),
        ..header.clone()
    };
    if let Err(difference) = header.same_exploration(&now) {
        bail!("{}: the world has changed since it was explored: {difference}", header.world_file);
    }
    Ok(identity)
}

/// Checks that the world in a finding file is the explored one. The image needs no check: packing verified its files.
fn check(file: &Path, header: &Header, image: &str) -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let unpacked = finding_file::unpack(file, place.path(), place.path(), ImagesTo::Nowhere)?;
    let there = Header { world_file: unpacked.world.display().to_string(), ..header.clone() };
    let (world, _) = exploration::load_again(&there)?;
    same_world(&there, &world, image).map(drop)
}

/// Returns the fault plan of a timeline, one value per entry.
fn faults(header: &Header, world: &World, path: &everett_explorer::search::Path) -> Vec<Value> {
    let text = plans::fates(header, world, &world.names()).plan(path).write();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
