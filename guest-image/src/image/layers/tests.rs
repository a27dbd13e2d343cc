//! Tests of the division of packages into layers.

use super::{Layers, names, read, triggered, write};
use crate::cache::{Cache, Key};
use crate::debian::package::Package;
use crate::tree::{Attributes, Content, Kind, OnFolder, Spool, Tree};
use std::path::Path;

/// Makes a package with these control fields.
fn package(folder: &Path, name: &str, control: &str) -> Package {
    let tar = |content: &str| {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, "./control", content.as_bytes()).unwrap();
        builder.into_inner().unwrap()
    };
    let control = tar(&format!("Package: {name}\nVersion: 1\nArchitecture: all\n{control}"));
    let parts: [(&str, &[u8]); 3] =
        [("debian-binary", b"2.0\n"), ("control.tar", &control), ("data.tar", &control)];
    let path = folder.join(name);
    std::fs::write(&path, crate::debian::ar::tests::archive(&parts)).unwrap();
    Package::open(&path).unwrap()
}

fn layers(packages: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let packages =
        packages.iter().map(|(name, control)| (package(folder.path(), name, control), "")).collect();
    let Layers { base, rest } = Layers::of(packages);
    let names =
        |packages: Vec<(Package, &str)>| packages.into_iter().map(|(package, _)| package.name).collect();
    (names(base), names(rest))
}

#[test]
fn the_base_has_the_essential_packages_and_their_dependencies() {
    let essential =
        "Essential: yes\nPre-Depends: libc (>= 2), awk\nDepends: missing | second:any, first | second\n";
    let packages = [
        ("server", "Depends: libc, mawk\n"),
        ("mawk", "Provides: awk, other (= 1)\n"),
        ("shell", essential),
        ("second", ""),
        ("first", ""),
        ("libc", ""),
        ("netbase", ""),
    ];
    let (base, rest) = layers(&packages);
    assert_eq!(base, ["first", "libc", "mawk", "netbase", "second", "shell"]);
    assert_eq!(rest, ["server"]);
    // More packages, in another order, leave the base layer unchanged.
    let mut more = packages.to_vec();
    more.reverse();
    more.push(("tool", "Depends: shell\n"));
    assert_eq!(layers(&more).0, base);
}

#[test]
fn names_are_parsed_from_dependency_fields() {
    let found: Vec<&str> = names("a (>= 1), b:any [amd64],c(= 2) , ").collect();
    assert_eq!(found, ["a", "b", "c"]);
}

#[test]
fn a_layer_is_read_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path()).unwrap();
    let mut spool = Spool::new(folder.path(), 1 << 20).unwrap();
    let mut tree = Tree::default();
    let attributes = |mode, uid| Attributes {
        mode,
        uid,
        gid: 3_000_000_000,
        mtime_s: 12_345_678_901,
        // A value of bytes that are not text. One of them is a newline.
        xattrs: [
            (b"security.capability".to_vec(), vec![1, 0, 0, 2, 0x0a, 0, 0, 0, 255]),
            (b"user.a\nb".to_vec(), b"\n\n9 path=x\n".to_vec()),
        ]
        .into(),
    };
    let long = format!("{}/{}", "d".repeat(200), "f".repeat(200));
    tree.put_folder(b"", attributes(0o711, 7), OnFolder::Update).unwrap();
    tree.put_folder(b"etc", attributes(0o2750, 5), OnFolder::Update).unwrap();
    tree.put(b"etc/f\xffile", attributes(0o640, 5), Kind::File(Content::bytes(b"content".as_slice())))
        .unwrap();
    tree.put(long.as_bytes(), attributes(0o4755, 0), Kind::File(Content::bytes(vec![9; 3000]))).unwrap();
    tree.put_hard_link(b"again", long.as_bytes()).unwrap();
    tree.put(b"link", attributes(0o777, 0), Kind::Link(b"./a//b/../".to_vec())).unwrap();
    tree.put(b"a\nb", attributes(0o777, 0), Kind::Link(b"c\n12 path=x\n/\n".to_vec())).unwrap();
    tree.put(b"null", attributes(0o666, 0), Kind::CharacterDevice(1, 3)).unwrap();
    tree.put(b"disk", attributes(0o660, 0), Kind::BlockDevice(254, 17)).unwrap();
    tree.put(b"pipe", attributes(0o600, 1), Kind::Fifo).unwrap();

    let layer = cache
        .put::<Box<dyn std::error::Error>>("base", &Key::new("test"), |file| Ok(write(&tree, file)?))
        .unwrap();
    let again = read(&layer, &mut spool).unwrap();
    let image = |tree: &Tree| {
        let mut bytes = std::io::Cursor::new(Vec::new());
        crate::squashfs::write(tree, 1, &mut bytes).unwrap();
        bytes.into_inner()
    };
    assert_eq!(again.find(b"again"), again.find(long.as_bytes()));
    assert!(image(&again) == image(&tree));
    let file = |tree: &Tree| tree.inode(tree.find(long.as_bytes()).unwrap()).attributes.clone();
    assert_eq!(file(&again), file(&tree));
    let newline = again.find(b"a\nb").unwrap();
    assert!(matches!(&again.inode(newline).kind, Kind::Link(to) if to == b"c\n12 path=x\n/\n"));
    let link = again.find(b"link").unwrap();
    assert!(matches!(&again.inode(link).kind, Kind::Link(to) if to == b"./a//b/../"));
}

#[test]
fn triggers_on_paths_fire() {
    let mut tree = Tree::default();
    let text = b"/usr/share/x a\n/usr/share/y b/noawait\n/usr/share/x c\n/etc/z d\n".as_slice();
    let file = Kind::File(Content::bytes(text));
    tree.put(b"var/lib/dpkg/triggers/File", Attributes::of_root(0o644), file).unwrap();
    let paths = ["/usr/share/x/one", "/usr/share/x/two", "/usr/share/yes", "/etc/z"];
    assert_eq!(triggered(&tree, &paths).unwrap(), "/etc/z -\n/usr/share/x -\n");
    assert_eq!(triggered(&Tree::default(), &paths).unwrap(), "");
}
