use std::fs;
use std::path::Path;

use everett_explorer::run::Header;
use everett_finding_file::{Content, Source, write};
use everett_guest_image::Cache;
use everett_world_file::seal::{Blob, Seal, SealedContainer, SealedImages};
use proptest::prelude::*;

use super::{About, ImagesTo, about, is_finding_file, unpack};
use crate::identity::MACHINE_VERSION;

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

fn members() -> Vec<Source> {
    let member = |name: &str, content: &[u8]| Source {
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

fn with(name: &str, content: &[u8]) -> Vec<Source> {
    let mut members = members();
    members.retain(|member| member.name != name);
    members.push(Source { name: name.to_owned(), content: Content::Bytes(content.to_vec()) });
    members
}

/// Unpacks a file with these members, and returns the folder or the error. Beside the folder nothing appears.
fn unpacked(about: About, members: &[Source], cache: Option<&Cache>) -> Result<tempfile::TempDir, String> {
    let place = tempfile::tempdir().unwrap();
    let (file, into) = (place.path().join("f"), place.path().join("into"));
    let mut bytes = Vec::new();
    write(about, members, &mut bytes, &mut |_, _| {}).map_err(|error| error.to_string())?;
    fs::write(&file, bytes).unwrap();
    fs::create_dir(&into).unwrap();
    let to = cache.map_or(ImagesTo::Folder, ImagesTo::Cache);
    let result = unpack(&file, &into, &place.path().join("into"), to);
    let names: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    match result {
        Ok(_) => Ok(place),
        Err(error) => {
            let line = format!("{error:#}");
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
    let refused = |about: About, members: &[Source]| unpacked(about, members, None).unwrap_err();
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
    let missing: Vec<Source> = members().into_iter().skip(1).collect();
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
    let error = refused(about(&|about| about.machine_version = "everett-1".to_owned()), &members());
    assert!(error.contains("was made by machine version everett-1"), "{error}");
    let error = refused(the_about(), &with("run/run.json", &header("everett-2")));
    assert!(error.contains("was made by machine version everett-2"), "{error}");
    assert!(refused(the_about(), &with("run/run.json", b"{")).contains("run.json"));
    // A file where a folder must be.
    let error = refused(about(&|about| about.folders = vec!["world/w/world.toml".to_owned()]), &members());
    assert!(error.contains("world.toml"), "{error}");
}

/// Returns a seal with one file for everything.
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

    let refused = |about: About, members: &[Source]| unpacked(about, members, Some(&cache)).unwrap_err();
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

    /// Whatever the names are, nothing appears beside the folder: `unpacked` looks.
    #[test]
    fn any_names_are_unpacked_below_the_folder_or_refused(
        names in prop::collection::vec("(world|run|images|\\.\\.|[a-z/.]{0,6})(/(w|\\.\\.|\\.|findings|1|[a-z.]{0,4})){0,4}", 0..4),
        folders in prop::collection::vec("(world|run)(/(w|\\.\\.|[a-z]{0,3})){0,3}", 0..3),
        world in "world/(w|x|\\.\\.)/(world.toml|[a-z.]{1,3})",
    ) {
        let mut members = members();
        for name in names {
            if members.iter().all(|member| member.name != name) {
                members.push(Source { name, content: Content::Bytes(b"x".to_vec()) });
            }
        }
        let _ = unpacked(About { folders, world, ..the_about() }, &members, None);
    }
}
