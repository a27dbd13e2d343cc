//! Images of sealed worlds, i.e. worlds from a finding file. Everett finds the images' files by their digests.
//!
//! Everett computes the image's digest from the files that it found. A finding file therefore cannot claim a digest
//! that its files do not have.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use everett_guest_image::cache::CacheEntry;
use everett_guest_image::image;
use everett_guest_image::lock::Lock;
use everett_guest_image::oci::{ContainerImage, ImageFiles};
use everett_guest_image::{Cache, apt};
use everett_image_origin::ImageOrigin;
use everett_input::causes::with_causes;
use everett_input::file as input;
use everett_world_file::World;
use everett_world_file::seal::{self, Blob, IMAGES, SealedContainer, SealedImages};

use super::{Made, WorldImage, node_image, of_built};

/// Maximum length of a file of an image, in bytes. It equals the bound on a layer of a container image.
const IMAGE_FILE_BYTES_MAX: u64 = 16 << 30;

/// Lists the files from which machines boot, for a finding file.
pub(super) fn of_boot(
    vmlinux: &CacheEntry,
    initramfs: &CacheEntry,
    root: Option<&CacheEntry>,
    packages: usize,
) -> SealedImages {
    let root = root.map(blob);
    SealedImages {
        vmlinux: blob(vmlinux),
        initramfs: blob(initramfs),
        root,
        packages,
        containers: Vec::new(),
    }
}

/// Lists the files of a container image, for a finding file.
pub(super) fn of_container(name: String, files: &ImageFiles, nodes: Vec<String>) -> SealedContainer {
    let layers = files.layers.iter().map(blob).collect();
    SealedContainer { name, nodes, config: blob(&files.config), tables: blob(&files.tables), layers }
}

fn blob(entry: &CacheEntry) -> Blob {
    Blob { blake3: entry.blake3.clone(), bytes: entry.bytes }
}

/// Returns the image of a sealed world. Its files come from the folder beside the world file, or from the cache.
pub(super) fn get(world: &World, images: &SealedImages, cache: &Cache) -> anyhow::Result<WorldImage> {
    let gate = cache.enter()?;
    let folder = seal::beside(&world.file).join(IMAGES);
    let find = |blob: &Blob| find(&folder, blob, cache);
    let built = image::BuiltImage {
        vmlinux: find(&images.vmlinux)?,
        initramfs: find(&images.initramfs)?,
        root: images.root.as_ref().map(find).transpose()?,
        digest: String::new(),
        lock: Lock::new(""),
    };
    let built = image::BuiltImage {
        digest: image::digest(&built.vmlinux, &built.initramfs, built.root.as_ref()),
        ..built
    };
    let mut made = Vec::new();
    let mut of_nodes = BTreeMap::new();
    let file = world.file.display();
    for SealedContainer { name, nodes, config, tables, layers } in &images.containers {
        let layers = layers.iter().map(find).collect::<anyhow::Result<_>>()?;
        let files = ImageFiles { config: find(config)?, tables: find(tables)?, layers };
        let image = ContainerImage::of_files(name, files)?;
        for node in nodes {
            let known = world.node(node).filter(|node| node.image.is_some());
            let known = known.with_context(|| format!("{file}: it has no node \"{node}\" with an image"))?;
            of_nodes.insert(node.clone(), Arc::new(node_image(name, &image, known)?));
        }
        made.push(Made { name: name.clone(), image, nodes: nodes.clone() });
    }
    for node in &world.nodes {
        if node.image.is_some() && !of_nodes.contains_key(&node.name) {
            bail!("{file}: its seal has no image for the node \"{}\"", node.name);
        }
    }
    let mut image = of_built(built, None)?;
    image.packages = images.packages;
    image.sealed.packages = images.packages;
    image.add(world, made, of_nodes);
    let paths: Vec<&Path> = image.entries.iter().map(|entry| entry.path.as_path()).collect();
    cache.note(&gate, &world.file, &paths)?;
    Ok(image)
}

/// Returns a file of an image from `folder`, or else from the cache. The digest of a file in `folder` is checked.
fn find(folder: &Path, blob: &Blob, cache: &Cache) -> anyhow::Result<CacheEntry> {
    let path = folder.join(&blob.blake3);
    let (mut file, metadata) = match input::open(&path) {
        Ok(opened) => opened,
        Err(error) if error.is_missing() => {
            let entry = cache.content(&blob.blake3);
            return entry.with_context(|| {
                format!(
                    "{} is missing, and is not in the cache; import the finding file again",
                    path.display()
                )
            });
        }
        Err(error) => return Err(error.into()),
    };
    if metadata.len() > IMAGE_FILE_BYTES_MAX {
        bail!("{}: longer than {IMAGE_FILE_BYTES_MAX} bytes", path.display());
    }
    let blake3 = digest_of(&mut file).with_context(|| path.display().to_string())?;
    if blake3 != blob.blake3 {
        bail!("{}: its content has changed; import the finding file again", path.display());
    }
    Ok(CacheEntry { path, bytes: metadata.len(), blake3 })
}

fn digest_of(file: &mut File) -> std::io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Returns an error if a sealed world's image would be read or built on this host instead of fetched from a registry. A
/// build, for example, would run commands that a stranger wrote. `is_locked` says whether the lock file has the image.
pub(super) fn check_origin(origin: &ImageOrigin, is_locked: bool) -> anyhow::Result<()> {
    match origin {
        ImageOrigin::Registry(_) => Ok(()),
        ImageOrigin::Named(_) if is_locked => Ok(()),
        _ => bail!(
            "the image {origin} is not of a registry, and is not taken from this host for a finding file; export it with \
             --with-images"
        ),
    }
}

/// Explains to the operator that this host cannot make the images of a sealed world.
pub(super) fn without_images(error: &anyhow::Error) -> anyhow::Error {
    let gone = error.chain().find_map(|cause| match cause.downcast_ref::<image::Error>()? {
        image::Error::Apt(apt::Error::Gone { package, version, suite }) => {
            Some(format!("{package} {version} is not in {suite} any more"))
        }
        _ => None,
    });
    let why = gone.unwrap_or_else(|| with_causes(error.as_ref()));
    anyhow!(
        "the images are not in the finding file, and cannot be made here: {why}; everett runs export --with-images would \
         have carried them"
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use everett_image_origin::ImageBuild;

    use super::*;

    /// A folder with image files, and a cache.
    struct Place {
        folder: tempfile::TempDir,
        cache: Cache,
    }

    impl Place {
        fn new() -> Place {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join(IMAGES)).unwrap();
            Place { cache: Cache::open(&folder.path().join("cache")).unwrap(), folder }
        }

        /// Writes `content` into the file that is named by the digest of `named`.
        fn write(&self, named: &[u8], content: &[u8]) -> Blob {
            let blake3 = blake3::hash(named).to_hex().to_string();
            fs::write(self.folder.path().join(IMAGES).join(&blake3), content).unwrap();
            Blob { blake3, bytes: named.len() as u64 }
        }

        fn find(&self, blob: &Blob) -> Result<CacheEntry, String> {
            find(&self.folder.path().join(IMAGES), blob, &self.cache)
                .map_err(|error| with_causes(error.as_ref()))
        }
    }

    #[test]
    fn a_file_of_an_image_has_the_content_of_its_digest() {
        let place = Place::new();
        let blob = place.write(b"kernel", b"kernel");
        let found = place.find(&blob).unwrap();
        assert_eq!((found.bytes, &found.blake3), (6, &blob.blake3));
        place.write(b"kernel", b"forged");
        let error = place.find(&blob).unwrap_err();
        assert!(error.contains(&blob.blake3) && error.contains("its content has changed"), "{error}");
        // If the folder lacks the file, it comes from the cache, unless its content in the cache has changed.
        fs::remove_file(place.folder.path().join(IMAGES).join(&blob.blake3)).unwrap();
        let error = place.find(&blob).unwrap_err();
        assert!(error.contains("is missing, and is not in the cache"), "{error}");
        let kept = place.cache.put_content(&blob.blake3, &mut &b"kernel"[..]).unwrap();
        assert_eq!(place.find(&blob), Ok(kept.clone()));
        fs::write(&kept.path, b"forged").unwrap();
        let error = place.find(&blob).unwrap_err();
        assert!(error.contains("is missing, and is not in the cache"), "{error}");
    }

    #[test]
    fn a_seal_has_images_for_exactly_the_nodes_that_have_one() {
        let place = Place::new();
        let blob = place.write(b"file", b"file");
        let load = |image: &str| {
            let file = place.folder.path().join("w/world.toml");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, format!("[[node]]\nname = \"a\"\n{image}")).unwrap();
            everett_world_file::load(&file).unwrap()
        };
        let images = SealedImages {
            vmlinux: blob.clone(),
            initramfs: blob.clone(),
            root: None,
            packages: 1,
            containers: Vec::new(),
        };
        let refused = |image, images| match get(&load(image), images, &place.cache) {
            Ok(_) => panic!("it has an image"),
            Err(error) => with_causes(error.as_ref()),
        };
        let error = refused("image = \"docker://i\"\n", &images);
        assert!(error.ends_with("world.toml: its seal has no image for the node \"a\""), "{error}");
        assert_eq!(get(&load(""), &images, &place.cache).unwrap().packages, 1);
    }

    /// A finding file from a stranger names images. Everett fetches only images of registries. It builds none and reads
    /// none from the host.
    #[test]
    fn images_of_the_host_are_not_taken_for_a_finding_file() {
        let name = || "it".to_owned();
        check_origin(&ImageOrigin::Registry(name()), false).unwrap();
        check_origin(&ImageOrigin::Named(name()), true).unwrap();
        let context = "/sources".into();
        let build = ImageBuild { context, file: None, arguments: Vec::new(), target: None, name: name() };
        for origin in [
            ImageOrigin::Named(name()),
            ImageOrigin::Docker(name()),
            ImageOrigin::Podman(name()),
            ImageOrigin::Layout { path: "/i".into(), tag: None },
            ImageOrigin::Archive { path: "/i".into(), tag: None },
            ImageOrigin::Built(build.clone()),
        ] {
            let error = check_origin(&origin, false).unwrap_err().to_string();
            assert!(error.contains("is not taken from this host for a finding file"), "{error}");
        }
        assert!(check_origin(&ImageOrigin::Built(build), true).is_err(), "a lock does not make a build safe");
    }
}
