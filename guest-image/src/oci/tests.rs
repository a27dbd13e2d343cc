//! Tests with images that the tests make: all sources of images, layers on top of each other, damaged images, and bombs.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use everett_input::causes::with_causes;
use everett_input::file::Reason;
use everett_remote::Offline;
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

use super::error::Problem;
use super::{ContainerImage, ImageOrigin, archive, get};
use crate::cache::Cache;
use crate::progress::Silent;

const TIME_S: u64 = 1_767_225_600;

pub(super) fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// A layer under construction.
pub(super) struct Layer(Builder<Vec<u8>>);

impl Layer {
    pub(super) fn new() -> Layer {
        Layer(Builder::new(Vec::new()))
    }

    fn header(kind: EntryType, mode: u32, size: usize) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(1);
        header.set_size(size as u64);
        header
    }

    pub(super) fn file(mut self, path: &str, content: &[u8]) -> Layer {
        let mut header = Self::header(EntryType::Regular, 0o644, content.len());
        self.0.append_data(&mut header, path, content).unwrap();
        self
    }

    fn folder(mut self, path: &str) -> Layer {
        let mut header = Self::header(EntryType::Directory, 0o755, 0);
        self.0.append_data(&mut header, path, std::io::empty()).unwrap();
        self
    }

    fn link(mut self, kind: EntryType, path: &str, target: &str) -> Layer {
        let mut header = Self::header(kind, 0o777, 0);
        self.0.append_link(&mut header, path, target).unwrap();
        self
    }

    /// Adds an entry without a check of its path, even if the path leads out of the root.
    fn raw(mut self, path: &str, kind: EntryType) -> Layer {
        let mut header = Self::header(kind, 0o644, 0);
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        header.set_cksum();
        self.0.append(&header, std::io::empty()).unwrap();
        self
    }

    fn xattr(mut self, name: &str, value: &[u8]) -> Layer {
        self.0.append_pax_extensions([(name, value)]).unwrap();
        self
    }

    pub(super) fn done(self) -> Vec<u8> {
        self.0.into_inner().unwrap()
    }
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// A folder with a cache and with the layouts and archives that a test makes.
pub(super) struct Lab {
    folder: TempDir,
    pub(super) cache: Cache,
}

/// Parts of a layout, before its digests are computed.
pub(super) struct Parts {
    config: String,
    /// Compressed layers, each with the digest of its uncompressed archive.
    pub(super) layers: Vec<(Vec<u8>, String)>,
}

impl Parts {
    pub(super) fn of(layers: &[Vec<u8>]) -> Parts {
        Parts::packed(layers.iter().map(|layer| (layer.clone(), digest(layer))).collect())
    }

    pub(super) fn packed(layers: Vec<(Vec<u8>, String)>) -> Parts {
        let ids: Vec<String> = layers.iter().map(|(_, id)| format!("\"{id}\"")).collect();
        let config = format!(
            "{{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{{\"Cmd\":[\"/bin/x\"]}},\
             \"rootfs\":{{\"type\":\"layers\",\"diff_ids\":[{}]}}}}",
            ids.join(",")
        );
        Parts { config, layers }
    }
}

impl Lab {
    pub(super) fn new() -> Lab {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("cache")).unwrap();
        Lab { folder, cache }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a layout with one image.
    pub(super) fn layout(&self, name: &str, parts: &Parts) -> PathBuf {
        let path = self.path(name);
        let blobs = path.join("blobs/sha256");
        fs::create_dir_all(&blobs).unwrap();
        let put = |bytes: &[u8]| {
            let digest = digest(bytes);
            fs::write(blobs.join(&digest["sha256:".len()..]), bytes).unwrap();
            format!("\"digest\":\"{digest}\",\"size\":{}", bytes.len())
        };
        let layers: Vec<String> = parts
            .layers
            .iter()
            .map(|(packed, _)| {
                format!("{{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar+gzip\",{}}}", put(packed))
            })
            .collect();
        let manifest = format!(
            "{{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\
             \"config\":{{\"mediaType\":\"application/vnd.oci.image.config.v1+json\",{}}},\"layers\":[{}]}}",
            put(parts.config.as_bytes()),
            layers.join(",")
        );
        let index = format!(
            "{{\"schemaVersion\":2,\"manifests\":[{{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",{},\
             \"annotations\":{{\"org.opencontainers.image.ref.name\":\"latest\"}}}}]}}",
            put(manifest.as_bytes())
        );
        fs::write(path.join("index.json"), index).unwrap();
        fs::write(path.join("oci-layout"), "{\"imageLayoutVersion\":\"1.0.0\"}").unwrap();
        path
    }

    pub(super) fn get(&self, origin: &ImageOrigin) -> Result<ContainerImage, String> {
        get(origin, None, TIME_S, &self.cache, &Offline, &mut Silent).map_err(|error| with_causes(&error))
    }

    pub(super) fn get_layout(&self, path: &Path) -> Result<ContainerImage, String> {
        self.get(&ImageOrigin::Layout { path: path.to_owned(), tag: None })
    }

    fn of(&self, layers: &[Vec<u8>]) -> Result<ContainerImage, String> {
        self.get_layout(&self.layout("image", &Parts::of(layers)))
    }

    /// Returns the error for an image, without the image's name.
    pub(super) fn refused(&self, parts: &Parts) -> String {
        let path = self.layout("image", parts);
        let error = self.get_layout(&path).unwrap_err();
        assert_eq!(error.lines().count(), 1, "{error}");
        let start = format!("the image {}: ", path.display());
        error.strip_prefix(&start).unwrap_or_else(|| panic!("{error}")).to_owned()
    }

    /// Lists the files in an image's root filesystem and their contents, as a SquashFS reader sees them.
    fn files(&self, image: &ContainerImage) -> Vec<(String, String)> {
        let mut bytes = Vec::new();
        for part in &image.disk.parts {
            let mut content = fs::read(&part.path).unwrap();
            content.resize(content.len().max((part.offset + part.bytes) as usize), 0);
            bytes.extend_from_slice(&content[part.offset as usize..(part.offset + part.bytes) as usize]);
        }
        let reader = backhand::FilesystemReader::from_reader(std::io::Cursor::new(bytes)).unwrap();
        let mut files = Vec::new();
        for node in reader.files() {
            use std::io::Read as _;
            let content = match &node.inner {
                backhand::InnerNode::File(file) => {
                    let mut content = Vec::new();
                    reader.file(file).reader().read_to_end(&mut content).unwrap();
                    String::from_utf8_lossy(&content[..content.len().min(40)]).into_owned()
                }
                backhand::InnerNode::Symlink(link) => format!("-> {}", link.link.display()),
                backhand::InnerNode::Dir(_) => "/".to_owned(),
                other => format!("{other:?}"),
            };
            files.push((node.fullpath.display().to_string(), content));
        }
        files
    }

    /// Returns the files of an image, without the folders that every image has.
    fn own_files(&self, image: &ContainerImage) -> Vec<String> {
        let usual = ["/", "/dev", "/etc", "/proc", "/run", "/sys", "/tmp"];
        let own = |(path, content): (String, String)| {
            (!usual.contains(&path.as_str())).then(|| format!("{path} {content}"))
        };
        self.files(image).into_iter().filter_map(own).collect()
    }
}

#[test]
fn layers_lie_over_one_another() {
    let lab = Lab::new();
    let lower = Layer::new()
        .folder("a/")
        .file("a/kept", b"lower")
        .file("a/removed", b"lower")
        .file("a/replaced", b"lower")
        .folder("opaque/sub/")
        .file("opaque/old", b"lower")
        .file("file-to-folder", b"lower")
        .folder("folder-to-file/")
        .file("folder-to-file/x", b"lower")
        .folder("target/")
        .link(EntryType::Symlink, "link-to-folder", "target")
        .file("gone/deep", b"lower")
        .done();
    // The whiteout of `a/again` and the opaque marker come after files of their own layer, and must not remove those
    // files.
    let upper = Layer::new()
        .file("a/.wh.removed", b"")
        .file("a/replaced", b"upper")
        .file("a/again", b"upper")
        .file("a/.wh.again", b"")
        .file("opaque/new", b"upper")
        .file("opaque/.wh..wh..opq", b"")
        .folder("file-to-folder/")
        .file("folder-to-file", b"upper")
        .folder("link-to-folder/")
        .file("link-to-folder/x", b"upper")
        .file(".wh.gone", b"")
        .file("a/.wh..wh.plnk", b"")
        .link(EntryType::Link, "a/hard", "a/kept")
        .done();
    let image = lab.of(&[lower, upper]).unwrap();
    assert_eq!(
        lab.own_files(&image),
        [
            "/a /",
            "/a/again upper",
            "/a/hard lower",
            "/a/kept lower",
            "/a/replaced upper",
            "/file-to-folder /",
            "/folder-to-file upper",
            "/link-to-folder /",
            "/link-to-folder/x upper",
            "/opaque /",
            "/opaque/new upper",
            "/target /",
        ]
    );
    assert_eq!(image.config.command, ["/bin/x"]);
}

#[test]
fn every_compression_and_every_source_gives_the_same_image() {
    let lab = Lab::new();
    let lower = Layer::new().file("a", &[7; 300_000]).file("b", &[0; 200_000]).done();
    let upper = Layer::new().file("c", b"upper").done();
    let plain = lab.of(&[lower.clone(), upper.clone()]).unwrap();
    // Tools that compress in parallel write several members or frames.
    let halves = lower.split_at(1000);
    let members = [gzip(halves.0), gzip(halves.1)].concat();
    let frames = [zstd::encode_all(halves.0, 1).unwrap(), zstd::encode_all(halves.1, 1).unwrap()].concat();
    for (number, packed) in [members, frames].into_iter().enumerate() {
        let other = Lab::new();
        let parts = Parts::packed(vec![(packed, digest(&lower)), (gzip(&upper), digest(&upper))]);
        let image = other.get_layout(&other.layout("image", &parts)).unwrap();
        assert_eq!(image.digest, plain.digest, "{number}");
        assert_eq!(other.files(&image), lab.files(&plain), "{number}");
    }

    // Archives of both formats contain the same image as the layout.
    let layout = lab.layout("layout", &Parts::of(&[lower.clone(), upper.clone()]));
    let mut oci = Builder::new(Vec::new());
    oci.append_dir_all(".", &layout).unwrap();
    let oci = oci.into_inner().unwrap();
    let config = Parts::of(&[lower.clone(), upper.clone()]).config;
    let hex = digest(config.as_bytes()).split_off("sha256:".len());
    let saved = format!(
        "[{{\"Config\":\"{hex}.json\",\"RepoTags\":[\"x:1\"],\"Layers\":[\"1/layer.tar\",\"2/layer.tar\"]}}]"
    );
    let docker = Layer::new()
        .file(&format!("{hex}.json"), config.as_bytes())
        .file("1/layer.tar", &lower)
        .file("blob", &upper)
        .link(EntryType::Symlink, "2/layer.tar", "../blob")
        .file("manifest.json", saved.as_bytes())
        .done();
    for (name, bytes) in [("oci", oci.clone()), ("docker", docker.clone()), ("packed", gzip(&docker))] {
        let other = Lab::new();
        fs::write(other.path("image.tar"), bytes).unwrap();
        let archive = |tag: Option<&str>| {
            other.get(&ImageOrigin::Archive { path: other.path("image.tar"), tag: tag.map(str::to_owned) })
        };
        let image = archive(None).unwrap();
        assert_eq!(image.digest, plain.digest, "{name}");
        // The second request takes the image from the cache and computes only the digest of the archive.
        assert_eq!(archive(None).unwrap().digest, plain.digest, "{name}");
        let tag = if name == "oci" { "latest" } else { "x:1" };
        assert_eq!(archive(Some(tag)).unwrap().digest, plain.digest, "{name}");
        assert!(archive(Some("y")).unwrap_err().contains("it has no image named \"y\"; it has"), "{name}");
    }
}

#[test]
fn layers_are_stored_once_and_packed_in_place() {
    let lab = Lab::new();
    let shared = Layer::new().file("shared", &[5; 3 << 20]).done();
    let image = |name: &str| {
        let own = Layer::new().file(name, name.as_bytes()).done();
        lab.get_layout(&lab.layout(name, &Parts::of(&[shared.clone(), own]))).unwrap()
    };
    let (first, second) = (image("first"), image("second"));
    assert_ne!(first.digest, second.digest);
    assert_eq!(first.disk.parts[1], second.disk.parts[1]);
    let entries = fs::read_dir(lab.cache.folder().join("entries")).unwrap();
    let bytes: u64 = entries.map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < shared.len() as u64 + (100 << 10), "{bytes} bytes");
    let files = lab.own_files(&second);
    assert_eq!(files[0], "/second second");
    assert!(files[1].starts_with("/shared \u{5}\u{5}"), "{files:?}");
}

#[test]
fn capabilities_and_user_attributes_survive_and_no_others() {
    let lab = Lab::new();
    let capability = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let layer = Layer::new()
        .xattr("SCHILY.xattr.security.capability", &capability)
        .file("ping", b"ping")
        .xattr("LIBARCHIVE.xattr.user.a%3d", b"YWI")
        .file("libarchive", b"x")
        .xattr("SCHILY.xattr.system.posix_acl_access", b"\x02\0\0\0")
        .file("acl", b"x")
        .xattr("SCHILY.xattr.trusted.overlay.redirect", b"/etc")
        .file("redirect", b"x")
        .done();
    let image = lab.of(&[layer]).unwrap();
    let tables = fs::read(&image.disk.parts[0].path).unwrap();
    let has = |wanted: &[u8]| tables.windows(wanted.len()).any(|bytes| bytes == wanted);
    assert!(has(&capability) && has(b"capability") && has(b"a=") && has(b"ab"));
    assert!(!has(b"overlay.redirect") && !has(b"posix_acl"));
}

#[test]
fn paths_that_the_agent_needs_are_folders() {
    let lab = Lab::new();
    let layer = Layer::new()
        .link(EntryType::Symlink, "dev", "/etc")
        .file("proc", b"x")
        .link(EntryType::Symlink, "run", "/nowhere")
        .link(EntryType::Symlink, "tmp", "tmp")
        .folder("etc/hosts/")
        .file("etc/passwd", b"x")
        .done();
    let image = lab.of(&[layer]).unwrap();
    let files = lab.files(&image);
    let of = |path: &str| files.iter().find(|(known, _)| known == path).map(|(_, content)| content.as_str());
    for path in ["/dev", "/proc", "/sys", "/run", "/tmp", "/etc"] {
        assert_eq!(of(path), Some("/"), "{path}");
    }
    assert_eq!((of("/etc/hosts"), of("/etc/passwd")), (None, Some("x")));
    // An image without any file still has a valid root filesystem.
    assert!(lab.own_files(&lab.of(&[]).unwrap()).is_empty());
}

#[test]
fn paths_out_of_the_root_and_cycles_are_refused() {
    let lab = Lab::new();
    let refused = |layer: Layer| lab.refused(&Parts::of(&[layer.done()]));
    let error = refused(Layer::new().raw("../escape", EntryType::Regular));
    assert!(error.ends_with("../escape: contains `..`"), "{error}");
    let error = refused(Layer::new().raw("a/../../escape", EntryType::Regular));
    assert!(error.ends_with("contains `..`"), "{error}");
    let error = refused(
        Layer::new().link(EntryType::Symlink, "a", "b").link(EntryType::Symlink, "b", "a").file("a/x", b"x"),
    );
    assert!(error.ends_with("a/x: a parent is a symbolic link that cannot be followed"), "{error}");
    let error = refused(Layer::new().link(EntryType::Link, "x", "../../etc/passwd"));
    assert!(error.contains("which does not exist"), "{error}");
    let error = refused(Layer::new().file("a/.wh...", b""));
    assert!(error.contains("the whiteout a/.wh... does not name a file"), "{error}");
    let error = refused(Layer::new().folder("a/").link(EntryType::Link, "a/b", "a"));
    assert!(error.ends_with("a hard link to the folder a"), "{error}");
    // A link out of the root leads to the root.
    let image = lab
        .of(&[Layer::new().link(EntryType::Symlink, "out", "../../../..").file("out/x", b"x").done()])
        .unwrap();
    assert_eq!(lab.own_files(&image), ["/out -> ../../../..", "/x x"]);
    assert!(!lab.path("x").exists());
}

#[test]
fn damaged_blobs_are_refused_in_one_line() {
    let lab = Lab::new();
    let layer = Layer::new().file("a", &[7; 100_000]).done();
    let packed = gzip(&layer);
    let name = digest(&packed).split_off("sha256:".len());
    let parts = || Parts::packed(vec![(packed.clone(), digest(&layer))]);
    let path = lab.layout("image", &parts());
    let blob = path.join("blobs/sha256").join(&name);
    let error = || lab.get_layout(&path).unwrap_err();
    fs::write(&blob, &packed[..packed.len() / 2]).unwrap();
    assert!(error().contains(&format!("has {} bytes, and {} are declared", packed.len() / 2, packed.len())));
    let mut altered = packed.clone();
    let middle = altered.len() / 2;
    altered[middle] ^= 1;
    fs::write(&blob, &altered).unwrap();
    assert!(error().contains("has the digest sha256:") && error().contains("is declared"), "{}", error());
    fs::remove_file(&blob).unwrap();
    assert!(error().ends_with(&format!("it has no blob sha256:{name}")), "{}", error());

    // The blob matches the manifest's digest, but not the diff ID in the configuration.
    let wrong = Parts::packed(vec![(packed.clone(), digest(b"other"))]);
    let error = lab.refused(&wrong);
    assert!(error.starts_with("the layer sha256:") && error.contains("has the digest"), "{error}");
    // The manifest has one layer too few.
    let mut short = parts();
    short.config = short.config.replace("diff_ids\":[", &format!("diff_ids\":[\"{}\",", digest(b"x")));
    let error = lab.refused(&short);
    assert!(error.contains("has the digest") || error.contains("manifest has 1 layers"), "{error}");
    // The blobs are complete, but the layer's archive is cut in half.
    let half = layer[..layer.len() / 2].to_vec();
    let error = lab.refused(&Parts::of(&[half]));
    assert!(error.contains("sha256:"), "{error}");
    // No temporary file is left over.
    let entries = fs::read_dir(lab.cache.temporary()).unwrap().count();
    assert_eq!(entries, 0);
}

#[test]
fn an_archive_that_is_no_regular_file_is_refused_with_its_kind() {
    let refused = archive::key(Path::new("/dev/zero"), None).map(|_| ()).unwrap_err();
    assert!(matches!(&refused, Problem::Read { source: Reason::Kind("a device"), .. }), "{refused:?}");
    let expected = "cannot read /dev/zero: this is a device, and a regular file is needed";
    assert_eq!(with_causes(&refused), expected);
}

#[test]
fn damaged_documents_are_refused_in_one_line() {
    let lab = Lab::new();
    let path = lab.layout("image", &Parts::of(&[Layer::new().file("a", b"x").done()]));
    let good = fs::read_to_string(path.join("index.json")).unwrap();
    let with = |text: &str| {
        fs::write(path.join("index.json"), text).unwrap();
        let error = lab.get_layout(&path).unwrap_err();
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    };
    assert!(with("").contains("the index is not valid"));
    assert!(with("[]").contains("the index is not valid"));
    assert!(with(&good.replace("\"size\":", "\"size\":9999999")).contains("the manifest has more than"));
    assert!(with(&good.replace("\"size\":", "\"size\":1")).contains("are declared"));
    let start = good.find("sha256:").unwrap() + "sha256:".len();
    let altered = format!("{}{}{}", &good[..start], "0".repeat(64), &good[start + 64..]);
    assert!(with(&altered).contains("it has no blob sha256:000"));
    assert!(
        with(&good.replace("sha256:", "sha256:../../../")).contains("is not a SHA-256 or SHA-512 digest")
    );
    let arm = good.replace(
        "\"annotations\"",
        "\"platform\":{\"os\":\"linux\",\"architecture\":\"arm64\"},\"annotations\"",
    );
    assert!(with(&arm).ends_with("it has no image for linux on amd64; it has linux/arm64"));
    let long = " ".repeat(5 << 20);
    assert!(with(&format!("{long}{good}")).contains("longer than 4194304 bytes"));
    fs::remove_file(path.join("oci-layout")).unwrap();
    assert!(with(&good).contains("neither an OCI layout"));
}

#[test]
fn several_images_need_a_name() {
    let lab = Lab::new();
    let one = lab.layout("image", &Parts::of(&[Layer::new().file("one", b"1").done()]));
    let two = lab.layout("two", &Parts::of(&[Layer::new().file("two", b"2").done()]));
    for blob in fs::read_dir(two.join("blobs/sha256")).unwrap() {
        let blob = blob.unwrap();
        fs::copy(blob.path(), one.join("blobs/sha256").join(blob.file_name())).unwrap();
    }
    let entry = |path: &Path, name: &str| {
        let index = fs::read_to_string(path.join("index.json")).unwrap().replace("latest", name);
        index[index.find('[').unwrap() + 1..index.rfind(']').unwrap()].to_owned()
    };
    let index = format!("{{\"schemaVersion\":2,\"manifests\":[{},{}]}}", entry(&one, "1"), entry(&two, "2"));
    fs::write(one.join("index.json"), index).unwrap();
    let error = lab.get_layout(&one).unwrap_err();
    assert!(
        error.ends_with("it has several images; write oci:PATH:NAME with one of these names: 1, 2"),
        "{error}"
    );
    let tagged = |tag: &str| lab.get(&ImageOrigin::Layout { path: one.clone(), tag: Some(tag.to_owned()) });
    assert_eq!(lab.own_files(&tagged("2").unwrap()), ["/two 2"]);
    assert!(tagged("3").unwrap_err().ends_with("it has no image named \"3\"; it has 1, 2"));
}

mod random {
    //! Tests with layers of random entries.

    use proptest::prelude::*;

    use super::*;

    /// Strategy for paths that often coincide, lead out of the root, or are whiteouts.
    fn path() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            4 => "[ab]",
            1 => Just("..".to_owned()),
            1 => Just(".wh.a".to_owned()),
            1 => Just(".wh..wh..opq".to_owned()),
            1 => Just("dev".to_owned()),
            1 => Just("etc".to_owned()),
        ];
        proptest::collection::vec(part, 1..4).prop_map(|parts| parts.join("/"))
    }

    fn entry() -> impl Strategy<Value = (u8, String, String)> {
        (0_u8..6, path(), path())
    }

    fn layer(entries: &[(u8, String, String)]) -> Vec<u8> {
        let mut layer = Layer::new();
        for (kind, path, target) in entries {
            let kind = [
                EntryType::Regular,
                EntryType::Directory,
                EntryType::Symlink,
                EntryType::Link,
                EntryType::Fifo,
                EntryType::Char,
            ][usize::from(*kind)];
            let mut header = Layer::header(kind, 0o644, 0);
            // The test writes paths directly into the header, because the tar crate would refuse some of them.
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            if matches!(kind, EntryType::Symlink | EntryType::Link) {
                header.as_mut_bytes()[157..157 + target.len()].copy_from_slice(target.as_bytes());
            }
            header.set_cksum();
            layer.0.append(&header, std::io::empty()).unwrap();
        }
        layer.done()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn layers_of_any_entries_give_an_image_or_one_line(
            lower in proptest::collection::vec(entry(), 0..12),
            upper in proptest::collection::vec(entry(), 0..12),
        ) {
            let lab = Lab::new();
            match lab.of(&[layer(&lower), layer(&upper)]) {
                Ok(image) => {
                    let files = lab.files(&image);
                    prop_assert!(!files.iter().any(|(path, _)| path.contains("/.wh.")), "{files:?}");
                    prop_assert!(files.iter().any(|(path, content)| path == "/dev" && content == "/"));
                }
                Err(error) => prop_assert_eq!(error.lines().count(), 1),
            }
        }

        #[test]
        fn no_configuration_panics(text in "\\{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":[{}\\[\\]a-zA-Z\":,0-9]{0,60},\"rootfs\":\\{\"type\":\"layers\",\"diff_ids\":\\[[a-z0-9\":,]{0,20}\\]\\}\\}") {
            let _ = super::super::config::ImageConfig::parse(text.as_bytes());
        }

        #[test]
        fn no_index_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let lab = Lab::new();
            let path = lab.layout("image", &Parts::of(&[]));
            fs::write(path.join("index.json"), bytes).unwrap();
            prop_assert!(lab.get_layout(&path).is_err());
        }
    }
}
