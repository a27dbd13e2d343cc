//! Tests of unpacking an archive into a tree.

mod bounds;

use super::{Mode, Store, unpack};
use crate::tree::{Attributes, Content, Kind, OnFolder, Spool, Tree};
use everett_input::causes::with_causes;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::sync::Arc;
use tar::{Builder, EntryType, Header};

fn header(kind: EntryType, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(7);
    header.set_gid(8);
    header.set_mtime(9);
    header.set_size(0);
    header
}

struct Archive(Builder<Vec<u8>>);

impl Archive {
    fn new() -> Self {
        Archive(Builder::new(Vec::new()))
    }

    fn file(mut self, path: &str, content: &str) -> Self {
        let mut header = header(EntryType::Regular, 0o640);
        header.set_size(content.len() as u64);
        self.0.append_data(&mut header, path, content.as_bytes()).unwrap();
        self
    }

    fn other(mut self, path: &str, kind: EntryType, link: Option<&str>) -> Self {
        let mut header = header(kind, 0o750);
        match link {
            Some(link) => self.0.append_link(&mut header, path, link).unwrap(),
            None => {
                if matches!(kind, EntryType::Char | EntryType::Block) {
                    header.set_device_major(0).unwrap();
                    header.set_device_minor(0).unwrap();
                }
                self.0.append_data(&mut header, path, std::io::empty()).unwrap();
            }
        }
        self
    }

    fn xattr(mut self, name: &str, value: &[u8]) -> Self {
        let name = format!("SCHILY.xattr.{name}");
        self.0.append_pax_extensions([(name.as_str(), value)]).unwrap();
        self
    }

    fn bytes(self) -> Vec<u8> {
        self.0.into_inner().unwrap()
    }
}

fn into(tree: &mut Tree, archive: &[u8], mode: Mode) -> Result<Vec<Vec<u8>>, super::Error> {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::new(folder.path(), 1 << 30).unwrap();
    let paths = unpack(archive, tree, Store::Spool(&mut spool), mode, |path| Some(path.to_vec()));
    spool.flush().unwrap();
    paths
}

fn read(tree: &Tree, path: &str) -> Option<String> {
    tree.file(path.as_bytes()).map(|content| String::from_utf8(content.read(1000).unwrap()).unwrap())
}

#[test]
fn every_kind_is_unpacked_with_its_attributes() {
    let long = format!("a/{}/{}", "b".repeat(120), "c".repeat(120));
    let bytes = Archive::new()
        .other("./a", EntryType::Directory, None)
        .xattr("security.capability", &[1, 0, 2])
        .file("./a/file", "content")
        .file(&long, "long")
        .other("a/link", EntryType::Symlink, Some("file"))
        .other("a/hard", EntryType::Link, Some("./a/file"))
        .other("a/pipe", EntryType::Fifo, None)
        .bytes();
    let mut tree = Tree::default();
    let paths = into(&mut tree, &bytes, Mode::Plain).unwrap();
    assert_eq!(paths.len(), 6);
    let inode = tree.inode(tree.find(b"a/file").unwrap());
    let Attributes { mode, uid, gid, mtime_s, xattrs } = &inode.attributes;
    assert_eq!((*mode, *uid, *gid, *mtime_s), (0o640, 7, 8, 9));
    assert_eq!(xattrs[&b"security.capability"[..]], [1, 0, 2]);
    assert_eq!(read(&tree, "a/link").as_deref(), Some("content"));
    assert_eq!(read(&tree, &long).as_deref(), Some("long"));
    assert_eq!(tree.find(b"a/hard"), tree.find(b"a/file"));
    assert!(matches!(tree.inode(tree.find(b"a/pipe").unwrap()).kind, Kind::Fifo));
}

#[test]
fn names_and_attributes_may_have_newlines() {
    let long = |name: &str| format!("{}/{name}", "d".repeat(150));
    let records: [(&str, &[u8]); 3] = [
        ("SCHILY.xattr.security.capability", &[1, 0, 0, 2, 0x0a, 0, 0, 0]),
        ("SCHILY.xattr.user.x\ny", b"\n8 uid=9\n9 size=9\n"),
        ("linkpath", b"to\nhere"),
    ];
    let mut archive = Archive::new();
    archive.0.append_pax_extensions(records).unwrap();
    let bytes = archive
        .file(&long("a\nb"), "content")
        .xattr("user.z", b"\n")
        .other(&long("link"), EntryType::Symlink, Some(&long("a\nb")))
        .bytes();
    let mut tree = Tree::default();
    let paths = into(&mut tree, &bytes, Mode::Plain).unwrap();
    assert_eq!(paths, [long("a\nb").into_bytes(), long("link").into_bytes()]);
    let inode = tree.inode(tree.find(long("a\nb").as_bytes()).unwrap());
    assert_eq!(inode.attributes.uid, 7);
    let xattrs: Vec<_> = inode.attributes.xattrs.iter().collect();
    let expected = [
        (&b"security.capability".to_vec(), &vec![1, 0, 0, 2, 0x0a, 0, 0, 0]),
        (&b"user.x\ny".to_vec(), &b"\n8 uid=9\n9 size=9\n".to_vec()),
    ];
    assert_eq!(xattrs, expected);
    let link = tree.inode(tree.find(long("link").as_bytes()).unwrap());
    assert_eq!(link.attributes.xattrs[&b"user.z"[..]], b"\n");
    assert!(matches!(&link.kind, Kind::Link(to) if to == long("a\nb").as_bytes()));
}

#[test]
fn damaged_records_are_refused_with_their_entry() {
    let mut bytes = Archive::new().xattr("user.a", b"value").file("x", "content").bytes();
    // Damages the length field of the first record.
    bytes[512] = b'9';
    let error = with_causes(&into(&mut Tree::default(), &bytes, Mode::Plain).unwrap_err());
    assert_eq!(error, "x: its PAX records are damaged");
}

#[test]
fn contents_stay_in_an_archive_that_is_not_compressed() {
    let bytes = Archive::new().file("x", "first").file("y", "second").bytes();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    let mut spool = Spool::new(&std::env::temp_dir(), 0).unwrap();
    let store = Store::InPlace(Arc::new(file.try_clone().unwrap()), &mut spool);
    let mut tree = Tree::default();
    unpack(file, &mut tree, store, Mode::Plain, |path| Some(path.to_vec())).unwrap();
    assert!(matches!(tree.file(b"y"), Some(Content::Span { .. })));
    assert_eq!((read(&tree, "x").unwrap(), read(&tree, "y").unwrap()), ("first".into(), "second".into()));
}

#[test]
fn an_overlay_removes_hides_and_replaces() {
    let mut tree = Tree::default();
    let plain = || Attributes::of_root(0o644);
    let file = |text: &str| Kind::File(Content::bytes(text.as_bytes()));
    for path in ["gone", "hidden/old", "kept/old", "becomes-file/x"] {
        tree.put(path.as_bytes(), plain(), file("old")).unwrap();
    }
    tree.put(b"becomes-folder", plain(), file("old")).unwrap();
    let bytes = Archive::new()
        .file("becomes-file", "new")
        .other("becomes-folder", EntryType::Directory, None)
        .file("becomes-folder/x", "new")
        .other("gone", EntryType::Char, None)
        .xattr("trusted.overlay.opaque", b"y")
        .other("hidden", EntryType::Directory, None)
        .file("hidden/new", "new")
        .other("kept", EntryType::Directory, None)
        .other("never-there", EntryType::Char, None)
        .bytes();
    into(&mut tree, &bytes, Mode::Overlay).unwrap();
    assert!(tree.find(b"gone").is_none() && tree.find(b"hidden/old").is_none());
    assert_eq!(read(&tree, "hidden/new").as_deref(), Some("new"));
    assert_eq!(read(&tree, "kept/old").as_deref(), Some("old"));
    assert_eq!(tree.inode(tree.find(b"kept").unwrap()).attributes.mode, 0o750);
    assert_eq!(read(&tree, "becomes-file").as_deref(), Some("new"));
    assert_eq!(read(&tree, "becomes-folder/x").as_deref(), Some("new"));
    assert!(tree.inode(tree.find(b"hidden").unwrap()).attributes.xattrs.is_empty());
}

#[test]
fn a_package_keeps_the_attributes_of_existing_folders() {
    let mut tree = Tree::default();
    tree.put_folder(b"tmp", Attributes::of_root(0o1777), OnFolder::Keep).unwrap();
    let bytes = Archive::new().other("./tmp", EntryType::Directory, None).bytes();
    into(&mut tree, &bytes, Mode::Package).unwrap();
    assert_eq!(tree.inode(tree.find(b"tmp").unwrap()).attributes.mode, 0o1777);
}

#[test]
fn damage_and_hostile_paths_are_errors() {
    let bytes = Archive::new().file("x", &"content".repeat(100)).bytes();
    assert!(into(&mut Tree::default(), &bytes[..600], Mode::Plain).is_err());
    assert!(into(&mut Tree::default(), &[0xff; 1024], Mode::Plain).is_err());
    let mut escape = header(EntryType::Regular, 0o644);
    escape.as_mut_bytes()[..9].copy_from_slice(b"../escape");
    escape.set_cksum();
    let mut bytes = escape.as_bytes().to_vec();
    bytes.extend([0; 1024]);
    let error = with_causes(&into(&mut Tree::default(), &bytes, Mode::Plain).unwrap_err());
    assert_eq!(error, "../escape: contains `..`");
    let dangling = Archive::new().other("a", EntryType::Link, Some("missing")).bytes();
    assert!(into(&mut Tree::default(), &dangling, Mode::Plain).is_err());
}
