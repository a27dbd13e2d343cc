use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use everett_explorer::run::Header;
use everett_finding_file::{Content, Manifest, MemberSource, write};
use everett_guest_image::Cache;
use everett_image_origin::{ImageBuild, ImageOrigin};
use everett_input::causes::with_causes;
use everett_world_file::World;
use everett_world_file::seal::{Blob, Inputs, Named, Seal, SealedContainer, SealedImages, SealedPath};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::unpack::{check, check_free};
use super::{About, ImagesTo, Packed, Parts, about, is_finding_file, of_this_host, pack, unpack};
use crate::world::identity::MACHINE_VERSION;

fn header(machine_version: &str) -> Vec<u8> {
    let header = Header {
        machine_version: machine_version.to_owned(),
        world_file: "/home/of/somebody/else/world.toml".to_owned(),
        nodes: vec!["a".to_owned()],
        ..Header::default()
    };
    serde_json::to_vec(&header).unwrap()
}

fn the_about() -> About {
    About {
        everett: String::new(),
        machine_version: MACHINE_VERSION.to_owned(),
        finding: 1,
        property: "p".to_owned(),
        text: String::new(),
        timeline: String::new(),
        trail: String::new(),
        faults: Vec::new(),
        world: "world/w/world.toml".to_owned(),
        folders: vec!["world/w/empty".to_owned()],
        seal: Seal::default(),
    }
}

fn members() -> Vec<MemberSource> {
    let member = |name: &str, content: &[u8]| MemberSource {
        name: name.to_owned(),
        content: Content::Bytes(content.to_vec()),
    };
    vec![
        member("run/run.json", &header(MACHINE_VERSION)),
        member("run/branches.bin", b""),
        member("run/findings/1/log.txt", b"a log"),
        member("world/w/world.toml", b"[[node]]\nname = \"a\"\n"),
    ]
}

fn with(name: &str, content: &[u8]) -> Vec<MemberSource> {
    let mut members = members();
    members.retain(|member| member.name != name);
    members.push(MemberSource { name: name.to_owned(), content: Content::Bytes(content.to_vec()) });
    members
}

/// Unpacks a file with these members. Returns the folder or the error, and checks that no other file appears beside the
/// folder.
fn unpacked(
    about: About,
    members: &[MemberSource],
    cache: Option<&Cache>,
) -> Result<tempfile::TempDir, String> {
    let place = tempfile::tempdir().unwrap();
    let (file, into) = (place.path().join("f"), place.path().join("into"));
    let mut bytes = Vec::new();
    write(about, members, &mut bytes, &mut |_, _| {}).map_err(|error| with_causes(&error))?;
    fs::write(&file, bytes).unwrap();
    fs::create_dir(&into).unwrap();
    let to = cache.map_or(ImagesTo::Folder, ImagesTo::Cache);
    let result = unpack(&file, &into, &place.path().join("into"), to);
    let names: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    match result {
        Ok(_) => Ok(place),
        Err(error) => {
            let line = with_causes(error.as_ref());
            assert!(line.contains("/f") && line.lines().count() == 1, "{line}");
            Err(line)
        }
    }
}

#[test]
fn a_file_becomes_a_run_directory_with_a_sealed_world() {
    let place = unpacked(the_about(), &members(), None).unwrap();
    let (file, run) = (place.path().join("f"), place.path().join("into"));
    assert!(is_finding_file(&file).unwrap());
    assert_eq!(about(&file).unwrap(), the_about());
    let header = Header::read(&run).unwrap();
    assert_eq!(Path::new(&header.world_file), run.join("world/w/world.toml"));
    assert_eq!(fs::read(run.join("findings/1/log.txt")).unwrap(), b"a log");
    assert!(run.join("world/w/empty").is_dir());
    let world = everett_world_file::load(Path::new(&header.world_file)).unwrap();
    let seal = world.seal.expect("a seal");
    let digest = blake3::hash(b"[[node]]\nname = \"a\"\n").to_hex().to_string();
    assert_eq!(seal.files, [("w/world.toml".to_owned(), digest)].into());
}

#[test]
fn strays_are_refused() {
    let refused = |about: About, members: &[MemberSource]| unpacked(about, members, None).unwrap_err();
    let strays = [
        "f",
        "run/lock",
        "run/report.html",
        "run/findings/2/log.txt",
        "run/findings/1/a/b",
        "run/regression-2.json",
        "images/x",
        "world/everett.seal.json",
        "world/everett.images/x",
        "other/x",
    ];
    for name in strays {
        let error = refused(the_about(), &with(name, b"x"));
        assert!(error.contains(&format!("{name} is no part of a finding")), "{error}");
    }
    let long = vec![0; (super::WORLD_FILE_BYTES_MAX + 1) as usize];
    assert!(refused(the_about(), &with("world/w/long", &long)).contains("world/w/long is too long"));
    let missing: Vec<MemberSource> = members().into_iter().skip(1).collect();
    assert!(refused(the_about(), &missing).contains("there is no run/run.json"));
    let about = |change: &dyn Fn(&mut About)| {
        let mut about = the_about();
        change(&mut about);
        about
    };
    let error = refused(about(&|about| about.world = "world/x.toml".to_owned()), &with("world/x.toml", b""));
    assert!(error.contains("is not the place of a world file"), "{error}");
    for folder in ["/tmp/x", "world/../x", "run/x", "world/everett.images", "elsewhere"] {
        let error = refused(about(&|about| about.folders = vec![folder.to_owned()]), &members());
        assert!(error.contains(folder), "{error}");
    }
    let files = || [("w/world.toml".to_owned(), "0f".repeat(32))].into();
    let error = refused(about(&|about| about.seal.files = files()), &members());
    assert!(error.contains("its seal has files already"), "{error}");
    let error = refused(about(&|about| about.machine_version = "everett-1".to_owned()), &members());
    assert!(error.contains("was made by machine version everett-1"), "{error}");
    let error = refused(the_about(), &with("run/run.json", &header("everett-2")));
    assert!(error.contains("was made by machine version everett-2"), "{error}");
    assert!(refused(the_about(), &with("run/run.json", b"{")).contains("run.json"));
    // The manifest names a file as a folder.
    let error = refused(about(&|about| about.folders = vec!["world/w/world.toml".to_owned()]), &members());
    assert!(error.contains("world.toml"), "{error}");
}

/// Returns a manifest with these members and lengths.
fn manifest(about: &About, members: &[(&str, u64)]) -> Manifest<About> {
    let member =
        |(name, bytes): &(&str, u64)| json!({ "name": name, "bytes": bytes, "blake3": "0f".repeat(32) });
    let members: Vec<Value> = members.iter().map(member).collect();
    let manifest = json!({ "format": "everett finding", "version": 1, "about": about, "members": members });
    serde_json::from_value(manifest).unwrap()
}

const NEEDED: [(&str, u64); 3] = [("run/run.json", 1), ("run/branches.bin", 1), ("world/w/world.toml", 1)];

#[test]
fn lengths_are_bounded_by_the_kind_of_a_member() {
    let refused = |members: &[(&str, u64)]| check(&manifest(&the_about(), &[&NEEDED, members].concat()));
    let too_long = |name: &str| Err(format!("manifest.json: {name} is too long"));
    assert_eq!(refused(&[("run/end.json", super::RUN_FILE_BYTES_MAX)]), Ok(()));
    assert_eq!(refused(&[("run/end.json", super::RUN_FILE_BYTES_MAX + 1)]), too_long("run/end.json"));
    // Each file of the world is short enough, but the sum is one byte too long, because the world file adds one byte.
    let count = super::WORLD_BYTES_MAX / super::WORLD_FILE_BYTES_MAX;
    let names: Vec<String> = (0..count).map(|n| format!("world/w/{n}")).collect();
    let mut files: Vec<(&str, u64)> =
        names.iter().map(|name| (name.as_str(), super::WORLD_FILE_BYTES_MAX)).collect();
    assert_eq!(refused(&files), too_long(&names[names.len() - 1]));
    files[0].1 -= 1;
    assert_eq!(refused(&files), Ok(()));
}

#[test]
fn members_need_room_where_they_are_unpacked() {
    let image = format!("images/{}", "0f".repeat(32));
    let manifest = manifest(&the_about(), &[&NEEDED[..], &[(&image, 100)]].concat());
    let fits = |images, free| check_free(&manifest, images, Path::new("/place"), free);
    fits(ImagesTo::Folder, 103).unwrap();
    let error = fits(ImagesTo::Folder, 102).unwrap_err().to_string();
    assert!(error.contains("it unpacks to 103 ") && error.contains("/place has 102 "), "{error}");
    // Images need no space if they are only verified.
    fits(ImagesTo::Nowhere, 3).unwrap();
    fits(ImagesTo::Nowhere, 2).unwrap_err();
}

/// A folder with a run directory that has two findings, and a world of several files.
struct Host {
    folder: tempfile::TempDir,
    world: World,
    inputs: Inputs,
}

impl Host {
    fn new() -> Host {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        for name in ["branches.bin", "end.json", "lock", "report.html", "recorded.json", "branch-7.jsonl"] {
            write(&format!("run/{name}"), name.as_bytes());
        }
        write("run/run.json", &header(MACHINE_VERSION));
        for finding in 1..=2 {
            for (begin, end) in [("timeline-", ".jsonl"), ("causality-", ".json")] {
                write(&format!("run/{begin}{finding}{end}"), &[finding]);
            }
            write(&format!("run/findings/{finding}/log.txt"), &[finding]);
            let regression = json!({
                "schema_version": 1, "world": "../../somewhere/world.toml", "timeline": "t", "trail": "00", "seed": 1,
                "path": "1000.1", "for_ns": 1, "checked": false, "plan": [], "property": "p", "text": "x",
            });
            write(&format!("run/regression-{finding}.json"), regression.to_string().as_bytes());
        }
        write("shop/world.toml", b"[[node]]\nname = \"a\"\n");
        write("shop/world.lock", b"a lock");
        write("shop/not-named", b"x");
        write("shop/conf/sub/a", b"a file");
        write("elsewhere/b", b"by its absolute path");
        fs::create_dir(folder.path().join("shop/conf/empty")).unwrap();
        let world = everett_world_file::load(&folder.path().join("shop/world.toml")).unwrap();
        let named = |path: &str, sealed| Named { path: folder.path().join(path), sealed };
        let paths = [
            named("shop/conf", SealedPath::Folder("conf".into())),
            named("elsewhere/b", SealedPath::Beside("everett.absolute/elsewhere/b".into())),
            named("shop/missing", SealedPath::Folder("missing".into())),
        ];
        Host { world, inputs: Inputs { paths: paths.into(), ..Inputs::default() }, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn pack(&self) -> Result<Packed, String> {
        let about = About { folders: Vec::new(), world: String::new(), ..the_about() };
        let run = &self.path("run");
        let parts = Parts { about, run, world: &self.world, inputs: &self.inputs, images: &[] };
        pack(parts, &self.path("f"), &mut |_, _| {}).map_err(|error| with_causes(error.as_ref()))
    }
}

/// Returns the files and the empty folders below `folder`.
fn below(folder: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => {
                let inner = below(&entry.path());
                all.extend(inner.is_empty().then(|| format!("{name}/")));
                all.extend(inner.into_iter().map(|inner| format!("{name}/{inner}")));
            }
            false => drop(all.insert(name)),
        }
    }
    all
}

#[test]
fn a_finding_is_packed_with_its_own_files_and_those_that_its_world_names() {
    let host = Host::new();
    let packed = host.pack().unwrap();
    let into = host.path("into");
    fs::create_dir(&into).unwrap();
    let unpacked = unpack(&host.path("f"), &into, &into, ImagesTo::Folder).unwrap();
    let expected = [
        "branches.bin",
        "causality-1.json",
        "end.json",
        "findings/1/log.txt",
        "regression-1.json",
        "run.json",
        "timeline-1.jsonl",
        "world/everett.absolute/elsewhere/b",
        "world/everett.seal.json",
        "world/shop/conf/empty/",
        "world/shop/conf/sub/a",
        "world/shop/world.lock",
        "world/shop/world.toml",
    ];
    assert_eq!(below(&into), expected.map(str::to_owned).into());
    // Two of these entries are not members of the finding file: the seal (`everett.seal.json`) and the empty folder.
    // `unpack` created them from the file's manifest.
    assert_eq!(packed.members, expected.len() - 2);
    assert_eq!(fs::read(into.join("timeline-1.jsonl")).unwrap(), [1]);
    assert_eq!(fs::read(into.join("world/everett.absolute/elsewhere/b")).unwrap(), b"by its absolute path");
    let regression: Value =
        serde_json::from_slice(&fs::read(into.join("regression-1.json")).unwrap()).unwrap();
    assert_eq!(regression["world"], "world/shop/world.toml", "it names the world that came with it");
    assert_eq!(unpacked.world, into.join("world/shop/world.toml"));
}

#[test]
fn folders_and_files_that_are_too_much_are_not_packed() {
    let host = Host::new();
    let deep = host.path("shop/conf").join("d/".repeat(40));
    fs::create_dir_all(&deep).unwrap();
    let error = host.pack().unwrap_err();
    assert!(error.contains("/d: more than 32 folders deep"), "{error}");
    fs::remove_dir_all(host.path("shop/conf/d")).unwrap();
    // The walk through a link to a parent folder would never end.
    std::os::unix::fs::symlink("..", host.path("shop/conf/loop")).unwrap();
    let error = host.pack().unwrap_err();
    assert!(error.contains("more than 32 folders deep") && error.lines().count() == 1, "{error}");
    fs::remove_file(host.path("shop/conf/loop")).unwrap();
    let long = fs::File::create(host.path("shop/conf/long")).unwrap();
    long.set_len(super::WORLD_FILE_BYTES_MAX + 1).unwrap();
    let error = host.pack().unwrap_err();
    assert!(error.contains("shop/conf/long: longer than 16777216 bytes"), "{error}");
    long.set_len(super::WORLD_FILE_BYTES_MAX).unwrap();
    host.pack().unwrap();
}

/// Everett names the parts that only this host has. `export` then asks for `--with-images`.
#[test]
fn parts_that_only_this_host_has_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let load = |text: &str| {
        fs::write(folder.path().join("world.toml"), text).unwrap();
        everett_world_file::load(&folder.path().join("world.toml")).unwrap()
    };
    let plain = "[[node]]\nname = \"a\"\n";
    fs::write(folder.path().join("vmlinux"), "a kernel").unwrap();
    fs::create_dir(folder.path().join("root")).unwrap();
    let is_locked = |name: &str| name == "locked";
    let part = |world: &World| of_this_host(world, is_locked);
    assert_eq!(part(&load(plain)), None);
    let own = |key: &str| part(&load(&format!("[image]\n{key}\n{plain}"))).unwrap();
    assert!(own("kernel = \"vmlinux\"").starts_with("the kernel /"), "a kernel by its path");
    assert!(own("rootfs = \"root\"").starts_with("the root filesystem /"), "a root by its path");
    let image = |image| {
        let mut world = load(plain);
        world.nodes[0].image = Some(image);
        part(&world)
    };
    let name = || "it".to_owned();
    assert_eq!(image(ImageOrigin::Registry(name())), None);
    assert_eq!(image(ImageOrigin::Named("locked".to_owned())), None);
    let store = Some("the image it of its local store".to_owned());
    assert_eq!(image(ImageOrigin::Named(name())), store);
    assert_eq!(image(ImageOrigin::Docker(name())), store);
    assert_eq!(image(ImageOrigin::Podman(name())), store);
    let file = Some("the image /i".to_owned());
    assert_eq!(image(ImageOrigin::Layout { path: "/i".into(), tag: None }), file);
    assert_eq!(image(ImageOrigin::Archive { path: "/i".into(), tag: None }), file);
    let context = "/sources".into();
    let build = ImageBuild { context, file: None, arguments: Vec::new(), target: None, name: name() };
    assert_eq!(image(ImageOrigin::Built(build)), Some("the image it, which it builds".to_owned()));
}

/// Returns the description in a manifest. Its seal (the data that a world needs besides its own files) lists images.
/// Every image file in the seal has the hash `blake3` and the length `bytes`.
fn sealed(blake3: &str, bytes: u64) -> About {
    let blob = || Blob { blake3: blake3.to_owned(), bytes };
    let container = SealedContainer {
        name: "i".to_owned(),
        nodes: vec!["a".to_owned()],
        config: blob(),
        tables: blob(),
        layers: vec![blob()],
    };
    let images = SealedImages {
        vmlinux: blob(),
        initramfs: blob(),
        root: Some(blob()),
        packages: 1,
        containers: vec![container],
    };
    About { seal: Seal { images: Some(images), ..Seal::default() }, ..the_about() }
}

#[test]
fn images_enter_the_cache_under_their_digests_alone() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path()).unwrap();
    let content = [vec![0; 100_000], vec![7; 100]].concat();
    let digest = blake3::hash(&content).to_hex().to_string();
    let name = format!("images/{digest}");
    let bytes = content.len() as u64;
    unpacked(sealed(&digest, bytes), &with(&name, &content), Some(&cache)).unwrap();
    let entry = cache.content(&digest).expect("it is in the cache");
    assert_eq!(fs::read(entry.path).unwrap(), content);
    let place = unpacked(sealed(&digest, bytes), &with(&name, &content), None).unwrap();
    let kept = place.path().join("into/world/everett.images").join(&digest);
    assert_eq!(fs::read(kept).unwrap(), content);

    let refused =
        |about: About, members: &[MemberSource]| unpacked(about, members, Some(&cache)).unwrap_err();
    let error = refused(sealed(&digest, bytes), &members());
    assert!(error.contains(&format!("the file {digest} of its images is missing")), "{error}");
    assert!(refused(sealed(&digest, 5), &with(&name, &content)).contains("is no part of a finding"));
    assert!(refused(the_about(), &with(&name, &content)).contains("is no part of a finding"));
    let other = "ab".repeat(32);
    let error = refused(sealed(&other, bytes), &with(&format!("images/{other}"), &content));
    assert!(error.contains("is no part of a finding"), "{error}");
    assert!(cache.content(&other).is_none());
    assert!(refused(sealed("../../x", bytes), &members()).contains("is not a BLAKE3"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Unpacking creates no file beside the folder, for any names of members. [`unpacked`] checks this.
    #[test]
    fn any_names_are_unpacked_below_the_folder_or_refused(
        names in prop::collection::vec("(world|run|images|\\.\\.|[a-z/.]{0,6})(/(w|\\.\\.|\\.|findings|1|[a-z.]{0,4})){0,4}", 0..4),
        folders in prop::collection::vec("(world|run)(/(w|\\.\\.|[a-z]{0,3})){0,3}", 0..3),
        world in "world/(w|x|\\.\\.)/(world.toml|[a-z.]{1,3})",
    ) {
        let mut members = members();
        for name in names {
            if members.iter().all(|member| member.name != name) {
                members.push(MemberSource { name, content: Content::Bytes(b"x".to_vec()) });
            }
        }
        let _ = unpacked(About { folders, world, ..the_about() }, &members, None);
    }
}
