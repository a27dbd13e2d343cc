//! A world that can run: its image, and the store of its moments.

use std::slice;

use everett_guest_image::Cache;
use everett_host::interrupt::Interrupt;
use everett_remote::Access;
use everett_streams::Seed;
use everett_world_file::World;

use super::launch::Launcher;
use crate::images;
use crate::machines::EngineOptions;
use crate::output::progress::Progress;
use crate::world::identity::Identity;
use crate::world::moments::MomentFolder;

/// World that can run, because its image is in the cache.
pub struct Prepared {
    /// Launcher of the world's timelines. They start at power-on.
    pub launcher: Launcher,
    /// Digest of everything that the world's timelines depend on, except the seed and the path.
    pub identity: Identity,
    /// Digest of the world's image.
    pub image: String,
    /// Store of the world's moments.
    pub moment_folder: MomentFolder,
}

/// Builds the image of a world, or finds it in the cache.
///
/// # Errors
/// Returns an error if the image cannot be built, if the cache cannot be used, or if `interrupt` is raised.
pub fn prepare(
    progress: &dyn Progress,
    access: &dyn Access,
    world: World,
    options: EngineOptions,
    interrupt: &Interrupt,
) -> anyhow::Result<Prepared> {
    let image = images::get(progress, &world, access, interrupt)?;
    let identity = image.identity(&world);
    let boot = Identity::of_boot(&world, slice::from_ref(&image.digest));
    let cache = Cache::of_user()?;
    let moment_folder = MomentFolder::new(cache.folder(), &identity, &boot);
    cache.note(&cache.enter()?, &world.file, &[moment_folder.folder()])?;
    let launcher = Launcher::new(world, image.files, options);
    Ok(Prepared { launcher, identity, image: image.digest, moment_folder })
}

impl Prepared {
    /// Returns the seed of timelines from power-on: `asked`, else the world file's, else 0.
    #[must_use]
    pub fn seed(&self, asked: Option<Seed>) -> Seed {
        asked.or(self.launcher.world.seed).unwrap_or_default()
    }
}
