//! Reads sealed worlds, i.e. worlds that came in a finding file (a finding with all that is needed to replay it). A
//! sealed world reads only host files that came with it.
//!
//! The file [`SEAL_FILE`] seals a world. It is beside the folder of the world file and not in it, because a compose
//! file may put the whole folder into a guest. In a sealed world, an absolute host path is looked up below the folder
//! [`ABSOLUTE`], which is beside the seal. A compose file's variables come from the seal. If the seal contains images,
//! Everett does not look for kernels, root filesystems or container images.
//!
//! While Everett reads a world file, this module lists the host paths and variables that the world file uses. A finding
//! file includes the files at these paths and the values of these variables. The list and the seal are stored per
//! thread, so that functions that read a path need no parameter for them.
//!
//! Not here: the finding file itself (`everett-finding-file`), and use of the sealed images (`everett-session`).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use everett_input::file::{self as input, folder_of};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Name of the file that seals all worlds in the folders beside it.
pub const SEAL_FILE: &str = "everett.seal.json";
/// Name of the folder for files that a sealed world refers to by absolute paths.
pub const ABSOLUTE: &str = "everett.absolute";
/// Name of the folder for the files of an imported world's images. A file's name is its digest.
pub const IMAGES: &str = "everett.images";
/// Maximum length of a seal, in bytes.
const SEAL_BYTES_MAX: u64 = 4 << 20;
/// Maximum number of variables in a seal.
const VARIABLES_MAX: usize = 10_000;
/// Maximum number of container images in a seal, and of layers in a container image.
const LIST_MAX: usize = 256;
/// Number of hexadecimal digits in a BLAKE3.
const DIGITS: usize = 64;

/// Content of a seal: the data of a sealed world besides its files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seal {
    /// Environment variables that the compose file refers to. `None` for a variable that was not set.
    pub variables: BTreeMap<String, Option<String>>,
    /// Files that the machines boot from. If `None`, Everett builds them from `world.lock`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<SealedImages>,
    /// BLAKE3 of each file of the world at the time of the import. The key is the file's path below the folder of the
    /// seal.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

/// Files that the machines of a sealed world boot from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedImages {
    /// The kernel, an ELF file.
    pub vmlinux: Blob,
    /// The initramfs with the agent, Everett's program in the guest.
    pub initramfs: Blob,
    /// The root filesystem. `None` if all nodes have container images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Blob>,
    /// Number of packages from which the kernel and the root filesystem were made.
    pub packages: usize,
    /// Container images of the world's nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<SealedContainer>,
}

/// Files of a container image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedContainer {
    /// Name of the image, for messages.
    pub name: String,
    /// Names of the nodes that have the image.
    pub nodes: Vec<String>,
    /// Configuration of the image, in JSON.
    pub config: Blob,
    /// Tables of the root filesystem's SquashFS: names, owners and locations of its files.
    pub tables: Blob,
    /// Archives of the layers, the lowest layer first.
    pub layers: Vec<Blob>,
}

/// A file, identified by its content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blob {
    /// BLAKE3 of the content, in hexadecimal.
    pub blake3: String,
    /// Length in bytes.
    pub bytes: u64,
}

impl SealedImages {
    /// Returns all files that the machines boot from. A file may occur several times.
    pub fn blobs(&self) -> impl Iterator<Item = &Blob> {
        let containers = self.containers.iter();
        let of_containers =
            containers.flat_map(|one| [&one.config, &one.tables].into_iter().chain(&one.layers));
        [&self.vmlinux, &self.initramfs].into_iter().chain(&self.root).chain(of_containers)
    }
}

impl Seal {
    /// Checks the bounds of a seal, and the form of digests, because digests are used as names of files.
    ///
    /// # Errors
    /// Returns a description of the first violation.
    pub fn check(&self) -> Result<(), String> {
        if self.variables.len() > VARIABLES_MAX {
            return Err(format!("more than {VARIABLES_MAX} variables"));
        }
        let Some(images) = &self.images else { return Ok(()) };
        let long = |one: &SealedContainer| one.layers.len() > LIST_MAX || one.nodes.len() > LIST_MAX;
        if images.containers.len() > LIST_MAX || images.containers.iter().any(long) {
            return Err(format!("more than {LIST_MAX} container images, or layers of one"));
        }
        match images.blobs().find(|blob| !is_digest(&blob.blake3)) {
            Some(blob) => Err(format!("{:?} is not a BLAKE3 in {DIGITS} hexadecimal digits", blob.blake3)),
            None => Ok(()),
        }
    }

    /// Reads the seal in a folder. `None` if the folder has none.
    fn read(folder: &Path) -> Result<Option<Seal>, Error> {
        let file = folder.join(SEAL_FILE);
        let bytes = match input::read(&file, SEAL_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(Error::whole(&file, error.reason.to_string())),
        };
        let seal: Seal =
            serde_json::from_slice(&bytes).map_err(|error| Error::whole(&file, error.to_string()))?;
        seal.check().map_err(|what| Error::whole(&file, what))?;
        Ok(Some(seal))
    }
}

/// Returns true if the text is a BLAKE3 in lower-case hexadecimal digits.
#[must_use]
pub fn is_digest(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A host path in a world file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// The path on this host, relative to the working folder or absolute.
    pub path: PathBuf,
    /// Location of the file in a sealed world.
    pub sealed: SealedPath,
}

/// Location of a file in a sealed world.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SealedPath {
    /// The file is at this path below the world file's folder.
    Folder(PathBuf),
    /// The file is at this path below the folder of the seal.
    Beside(PathBuf),
}

/// The host paths and variables in a world file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inputs {
    /// Paths of files and folders. Some of the paths may not exist.
    pub paths: BTreeSet<Named>,
    /// Environment variables with their values. `None` for a variable that is not set.
    pub variables: BTreeMap<String, Option<String>>,
}

/// State of this thread while it reads a world file.
struct Reading {
    /// Folder of the world file as the user gave it; `real` is the same folder with links resolved.
    folder: PathBuf,
    real: PathBuf,
    /// Folder that may have a seal.
    beside: PathBuf,
    seal: Option<Arc<Seal>>,
    inputs: Inputs,
    /// True while the thread reads a path that must not be listed.
    unlisted: bool,
}

thread_local! {
    static READING: RefCell<Option<Reading>> = const { RefCell::new(None) };
}

/// Returns the folder in which a seal of this world file would be.
#[must_use]
pub fn beside(file: &Path) -> PathBuf {
    let folder = folder_of(file);
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    real.parent().map_or_else(|| real.clone(), Path::to_owned)
}

/// Reads a world file by calling `read`. Returns its result, the seal, and the host paths and variables in the file.
pub(super) fn reading<T>(
    file: &Path,
    read: impl FnOnce() -> Result<T, Error>,
) -> Result<(T, Option<Arc<Seal>>, Inputs), Error> {
    let folder = folder_of(file).to_owned();
    let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let beside = beside(file);
    let seal = Seal::read(&beside)?.map(Arc::new);
    READING.set(Some(Reading { folder, real, beside, seal, inputs: Inputs::default(), unlisted: false }));
    let result = read();
    let ended = READING.take();
    let (seal, inputs) = ended.map_or_else(Default::default, |reading| (reading.seal, reading.inputs));
    Ok((result?, seal, inputs))
}

/// True if the world that this thread reads is sealed.
pub(super) fn is_sealed() -> bool {
    READING.with_borrow(|reading| reading.as_ref().is_some_and(|reading| reading.seal.is_some()))
}

/// True if the world that this thread reads is sealed and its seal has images.
pub(super) fn has_images() -> bool {
    READING.with_borrow(|reading| {
        let seal = reading.as_ref().and_then(|reading| reading.seal.as_ref());
        seal.is_some_and(|seal| seal.images.is_some())
    })
}

/// Returns the folder of the seal, if the world that this thread reads is sealed.
pub(super) fn folder() -> Option<PathBuf> {
    READING.with_borrow(|reading| {
        let reading = reading.as_ref().filter(|reading| reading.seal.is_some())?;
        Some(reading.beside.clone())
    })
}

/// Returns the location of an absolute path in the sealed world that this thread reads. `None` if the path has `..`,
/// which would lead out of the folder.
pub(super) fn place_of(absolute: &Path) -> Option<PathBuf> {
    let below = below_absolute(absolute)?;
    READING.with_borrow(|reading| reading.as_ref().map(|reading| reading.beside.join(&below)))
}

fn below_absolute(absolute: &Path) -> Option<PathBuf> {
    let mut below = PathBuf::from(ABSOLUTE);
    for part in absolute.components() {
        match part {
            Component::Normal(name) => below.push(name),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    Some(below)
}

/// Calls `read` without listing the paths that it reads. Callers use this function for the paths of images in a world
/// file. A finding file stores no files under these paths: if it contains images, it stores them as the files that the
/// machines boot from (`Seal::images`).
pub(super) fn unlisted<T>(read: impl FnOnce() -> T) -> T {
    let set = |unlisted| {
        READING.with_borrow_mut(|reading| {
            if let Some(reading) = reading {
                reading.unlisted = unlisted;
            }
        });
    };
    set(true);
    let result = read();
    set(false);
    result
}

/// Lists the host path `path`, which the world file gives as `text`.
pub(super) fn note(path: &Path, text: &Path) {
    READING.with_borrow_mut(|reading| {
        let Some(reading) = reading.as_mut().filter(|reading| !reading.unlisted) else { return };
        let sealed = if text.is_absolute() {
            below_absolute(text).map(SealedPath::Beside)
        } else {
            // If a world file names a compose file, the links in the compose file's path are resolved, so `path` may be
            // below `real` and not below `folder`.
            let below = path.strip_prefix(&reading.folder).or_else(|_| path.strip_prefix(&reading.real));
            let plain = |below: &Path| below.components().filter(|part| *part != Component::CurDir).collect();
            below.ok().map(|below| SealedPath::Folder(plain(below)))
        };
        if let Some(sealed) = sealed {
            reading.inputs.paths.insert(Named { path: path.to_owned(), sealed });
        }
    });
}

/// Returns an environment variable, or its value in the seal, and lists the variable.
pub(super) fn variable(name: &str) -> Option<String> {
    READING.with_borrow_mut(|reading| {
        let sealed = reading.as_ref().and_then(|reading| reading.seal.as_ref());
        let value = match sealed {
            Some(seal) => seal.variables.get(name).cloned().flatten(),
            None => std::env::var(name).ok(),
        };
        if let Some(reading) = reading {
            reading.inputs.variables.insert(name.to_owned(), value.clone());
        }
        value
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{World, load, load_listed};
    use everett_image_origin::ImageOrigin;
    use std::fs;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Copies the host files of a world to their locations in a sealed world, and writes the seal.
    fn sealed(file: &Path, images: Option<SealedImages>) -> (tempfile::TempDir, World) {
        let (_, inputs) = load_listed(file).unwrap();
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("w");
        fs::create_dir_all(&folder).unwrap();
        fs::copy(file, folder.join(file.file_name().unwrap())).unwrap();
        for Named { path, sealed } in &inputs.paths {
            let to = match sealed {
                SealedPath::Folder(below) => folder.join(below),
                SealedPath::Beside(below) => place.path().join(below),
            };
            if path.is_file() {
                write(&to, &fs::read_to_string(path).unwrap());
            }
        }
        let seal = Seal { variables: inputs.variables, images, files: BTreeMap::new() };
        fs::write(place.path().join(SEAL_FILE), serde_json::to_vec(&seal).unwrap()).unwrap();
        let world = load(&folder.join(file.file_name().unwrap())).unwrap();
        (place, world)
    }

    fn contents(world: &World) -> Vec<&[u8]> {
        world.nodes.iter().flat_map(|node| node.files.iter().map(|file| &*file.content)).collect()
    }

    #[test]
    fn a_sealed_world_reads_what_was_listed_and_nothing_else() {
        let host = tempfile::tempdir().unwrap();
        let (file, other) = (host.path().join("w/world.toml"), host.path().join("other"));
        write(&host.path().join("w/conf/a"), "relative");
        write(&other, "absolute");
        let text = format!("[[node]]\nname = \"a\"\nfiles = {{ \"/a\" = \"conf/a\", \"/b\" = {other:?} }}\n");
        write(&file, &text);
        let (place, world) = sealed(&file, None);
        assert_eq!(contents(&world), [&b"relative"[..], b"absolute"]);
        assert!(world.seal.is_some());
        // The host's own file at this path no longer has an effect.
        fs::write(&other, "changed").unwrap();
        let again = place.path().join("w/world.toml");
        assert_eq!(contents(&load(&again).unwrap()), [&b"relative"[..], b"absolute"]);
        let sneaks = ["/etc/hostname", "/etc/../etc/hostname", "/../../../../../../../etc/hostname"];
        for sneak in sneaks {
            fs::write(&again, format!("[[node]]\nname = \"a\"\nfiles = {{ \"/a\" = \"{sneak}\" }}\n"))
                .unwrap();
            let error = load(&again).unwrap_err().to_string();
            assert!(error.contains("no such file") || error.contains("\"..\""), "{error}");
        }
        // A link in the folder cannot lead out of it, either.
        let moved = place.path().join(ABSOLUTE).join("etc");
        fs::create_dir_all(&moved).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", moved.join("hostname")).unwrap();
        fs::write(&again, "[[node]]\nname = \"a\"\nfiles = { \"/a\" = \"/etc/hostname\" }\n").unwrap();
        let error = load(&again).unwrap_err().to_string();
        assert!(error.contains("leaves the file's folder"), "{error}");
    }

    #[test]
    fn a_sealed_compose_file_has_its_variables_and_the_files_that_it_names() {
        let host = tempfile::tempdir().unwrap();
        let folder = host.path().join("w");
        let absolute = folder.join("by-path.txt");
        let compose = format!(
            "services:\n  a:\n    image: i:$PATH_OF_NOTHING\n    extends: {{ file: sub/base.yaml, service: b }}\n    \
             env_file: a.env\n    volumes: [\"./conf:/conf\", \"{}:/by-path\"]\n    \
             environment: [\"P=${{CARGO_MANIFEST_DIR}}\", \"Q=${{OF_DOTENV}}\"]\n",
            absolute.display()
        );
        write(&folder.join("compose.yaml"), &compose);
        write(&folder.join("sub/base.yaml"), "services:\n  b:\n    environment: { B: base }\n");
        write(&folder.join("a.env"), "E=file\n");
        write(&folder.join(".env"), "OF_DOTENV=dotenv\nPATH_OF_NOTHING=7\n");
        write(&folder.join("conf/one"), "1");
        write(&absolute, "by path");
        let file = folder.join("compose.yaml");
        let (world, inputs) = load_listed(&file).unwrap();
        assert_eq!(inputs.variables["CARGO_MANIFEST_DIR"].as_deref(), Some(env!("CARGO_MANIFEST_DIR")));
        assert!(
            inputs.paths.iter().any(|named| named.sealed == SealedPath::Folder("conf".into())),
            "{inputs:?}"
        );
        // The list contains only the folder itself, and `sealed` copies only files, so the test writes the folder's
        // file.
        let (place, _) = sealed(&file, None);
        write(&place.path().join("w/conf/one"), "1");
        // The variables of this process have no effect. To show it, the test changes the variable's value in the seal.
        let seal = fs::read_to_string(place.path().join(SEAL_FILE)).unwrap();
        let seal = seal.replace(env!("CARGO_MANIFEST_DIR"), "/elsewhere");
        fs::write(place.path().join(SEAL_FILE), seal).unwrap();
        let again = load(&place.path().join("w/compose.yaml")).unwrap();
        let env = |world: &World| world.nodes[0].services[0].command.env.clone();
        assert_eq!(env(&again)["P"], "/elsewhere");
        for name in ["B", "E", "Q"] {
            assert_eq!(env(&again)[name], env(&world)[name], "{name}");
        }
        assert_eq!(contents(&again), contents(&world));
        assert_eq!(again.nodes[0].image, world.nodes[0].image);
        assert_eq!(again.nodes[0].image, Some(ImageOrigin::Named("i:7".to_owned())));
    }

    #[test]
    fn a_world_that_is_sealed_with_its_images_looks_for_none() {
        let host = tempfile::tempdir().unwrap();
        let file = host.path().join("w/world.toml");
        write(&host.path().join("w/image.tar"), "an archive");
        write(&host.path().join("w/vmlinux"), "a kernel");
        let text = "[image]\nkernel = \"vmlinux\"\n[[node]]\nname = \"a\"\nimage = \"./image.tar\"\n";
        write(&file, text);
        let (_, inputs) = load_listed(&file).unwrap();
        assert_eq!(inputs.paths.len(), 0, "images are no files of the world: {inputs:?}");
        let blob = Blob { blake3: "0f".repeat(32), bytes: 1 };
        let images = SealedImages {
            vmlinux: blob.clone(),
            initramfs: blob,
            root: None,
            packages: 1,
            containers: Vec::new(),
        };
        let (_place, world) = sealed(&file, Some(images));
        assert!(matches!(world.nodes[0].image, Some(ImageOrigin::Archive { .. })));
        assert_eq!(world, World { file: world.file.clone(), ..world.clone() });
    }

    #[test]
    fn invalid_seals_are_refused_by_name() {
        let place = tempfile::tempdir().unwrap();
        write(&place.path().join("w/world.toml"), "[[node]]\nname = \"a\"\n");
        let refused = |text: &str| {
            fs::write(place.path().join(SEAL_FILE), text).unwrap();
            load(&place.path().join("w/world.toml")).unwrap_err().to_string()
        };
        assert!(refused("{").contains(SEAL_FILE));
        assert!(refused("{\"variables\":{},\"extra\":1}").contains("extra"));
        let blob = "{\"blake3\":\"../../etc/passwd\",\"bytes\":1}";
        let images = format!("{{\"vmlinux\":{blob},\"initramfs\":{blob},\"packages\":0}}");
        let error = refused(&format!("{{\"variables\":{{}},\"images\":{images}}}"));
        assert!(error.contains("is not a BLAKE3"), "{error}");
        let blob = Blob { blake3: "0f".repeat(32), bytes: 1 };
        let container = |layers: usize, nodes: usize| SealedContainer {
            name: "i".to_owned(),
            nodes: vec!["a".to_owned(); nodes],
            config: blob.clone(),
            tables: blob.clone(),
            layers: vec![blob.clone(); layers],
        };
        let images = |containers| SealedImages {
            vmlinux: blob.clone(),
            initramfs: blob.clone(),
            root: None,
            packages: 1,
            containers,
        };
        let refused_seal = |seal: &Seal| refused(&serde_json::to_string(seal).unwrap());
        for containers in [
            vec![container(1, 1); LIST_MAX + 1],
            vec![container(LIST_MAX + 1, 1)],
            vec![container(1, LIST_MAX + 1)],
        ] {
            let seal = Seal { images: Some(images(containers)), ..Seal::default() };
            let error = refused_seal(&seal);
            assert!(error.contains("more than 256 container images, or layers of one"), "{error}");
        }
        let variables = (0..=VARIABLES_MAX).map(|n| (n.to_string(), None)).collect();
        let error = refused_seal(&Seal { variables, ..Seal::default() });
        assert!(error.contains("more than 10000 variables"), "{error}");
        let long = " ".repeat(SEAL_BYTES_MAX as usize + 1);
        let error = refused(&long);
        assert!(error.contains(SEAL_FILE) && error.lines().count() == 1 && error.len() < 1_000, "{error}");
    }

    /// The packages of a sealed world come from a mirror with signatures, over the network, never from a folder of the
    /// host.
    #[test]
    fn a_sealed_world_has_no_mirror_on_the_host() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("w/world.toml");
        write(&file, "[image]\nmirror = \"file:/srv/debian\"\n[[node]]\nname = \"a\"\n");
        load(&file).unwrap();
        fs::write(place.path().join(SEAL_FILE), serde_json::to_vec(&Seal::default()).unwrap()).unwrap();
        let error = load(&file).unwrap_err().to_string();
        assert!(error.contains("mirrors with http:// or https:// alone"), "{error}");
    }
}
