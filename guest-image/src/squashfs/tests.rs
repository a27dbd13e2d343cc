//! Tests that read SquashFS images back, with Everett's reader and with another implementation of the format.

use super::read::{Reader, Source};
use super::write;
use crate::tree::{Attributes, Content, Kind, OnFolder, Tree};
use backhand::{FilesystemReader, InnerNode};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::{self, Cursor, Read as _};

fn image(tree: &Tree) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    let length = write(tree, 1_700_000_000, &mut out).unwrap();
    assert_eq!(out.get_ref().len() as u64, length);
    assert_eq!(length % 4096, 0);
    out.into_inner()
}

impl Source for Vec<u8> {
    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self.get(start..).and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Returns the regular files of an image with a description of each, as Everett's reader sees them.
fn files(image: &Vec<u8>) -> io::Result<Vec<(String, String)>> {
    let reader = Reader::new(image)?;
    let mut files = Vec::new();
    reader.files(&mut |path, file| {
        let mut content = Vec::new();
        reader.read(file, file.length, &mut content)?;
        files
            .push((path.display().to_string(), format!("file {} {}", content.len(), blake3::hash(&content))));
        Ok(())
    })?;
    Ok(files)
}

/// Reads an image with both readers. Returns a complete description of each file, by path.
fn read(image: Vec<u8>) -> BTreeMap<String, String> {
    let ours = files(&image).unwrap();
    let reader = FilesystemReader::from_reader(Cursor::new(image)).unwrap();
    let mut theirs = Vec::new();
    let mut seen = BTreeMap::new();
    for node in reader.files() {
        let header = node.header;
        let what = match &node.inner {
            InnerNode::File(file) => {
                let mut content = Vec::new();
                reader.file(file).reader().read_to_end(&mut content).unwrap();
                format!("file {} {}", content.len(), blake3::hash(&content))
            }
            InnerNode::Symlink(link) => format!("link {}", link.link.display()),
            InnerNode::Dir(_) => String::from("folder"),
            InnerNode::CharacterDevice(device) => format!("character {}", device.device_number),
            InnerNode::BlockDevice(device) => format!("block {}", device.device_number),
            InnerNode::NamedPipe => String::from("fifo"),
            InnerNode::Socket => String::from("socket"),
        };
        if matches!(node.inner, InnerNode::File(_)) {
            theirs.push((node.fullpath.display().to_string(), what.clone()));
        }
        let line = format!("{what} {:o} {}:{} @{}", header.permissions, header.uid, header.gid, header.mtime);
        seen.insert(node.fullpath.display().to_string(), line);
    }
    assert_eq!(ours, theirs);
    seen
}

fn attributes(mode: u32, uid: u32, gid: u32, mtime_s: u64) -> Attributes {
    Attributes { mode, uid, gid, mtime_s, xattrs: BTreeMap::new() }
}

fn file(content: &[u8]) -> (Kind, String) {
    let line = format!("file {} {}", content.len(), blake3::hash(content));
    (Kind::File(Content::bytes(content)), line)
}

#[test]
fn every_kind_owner_mode_and_time_is_read_back() {
    let mut tree = Tree::default();
    tree.put_folder(b"tmp", attributes(0o1777, 0, 0, 7), OnFolder::Keep).unwrap();
    let (kind, line) = file(b"hello");
    tree.put(b"usr/bin/sudo", attributes(0o4755, 0, 70_000, 1_600_000_000), kind).unwrap();
    tree.put(b"link", attributes(0o777, 5, 6, 3), Kind::Link(b"usr/bin/sudo".to_vec())).unwrap();
    tree.put(b"dev/null", attributes(0o666, 0, 0, 1), Kind::CharacterDevice(1, 3)).unwrap();
    tree.put(b"dev/big", attributes(0o660, 0, 6, 1), Kind::BlockDevice(259, 300)).unwrap();
    tree.put(b"pipe", attributes(0o600, 1, 1, 1), Kind::Fifo).unwrap();
    tree.put(b"empty", attributes(0o600, 1, 1, 1), Kind::File(Content::bytes(&[][..]))).unwrap();
    let seen = read(image(&tree));
    assert_eq!(seen["/tmp"], "folder 1777 0:0 @7");
    assert_eq!(seen["/usr/bin/sudo"], format!("{line} 4755 0:70000 @1600000000"));
    assert_eq!(seen["/link"], "link usr/bin/sudo 777 5:6 @3");
    assert_eq!(seen["/dev/null"], "character 259 666 0:0 @1");
    // The device number is encoded as by Linux's new_encode_dev(259, 300).
    assert_eq!(seen["/dev/big"], format!("block {} 660 0:6 @1", 0x2c | 259 << 8 | 0x100 << 12));
    assert_eq!(seen["/pipe"], "fifo 600 1:1 @1");
    assert!(seen["/empty"].starts_with("file 0 "));
    assert_eq!(seen.len(), 11);
}

#[test]
fn contents_of_every_length_around_a_block_are_read_back() {
    let mut tree = Tree::default();
    let mut lines = BTreeMap::new();
    for length in [1, 4095, (128 << 10) - 1, 128 << 10, (128 << 10) + 1, 300_000, 1 << 20] {
        let bytes: Vec<u8> = (0..length).map(|at: usize| (at / 3).to_le_bytes()[0] | 1).collect();
        let (kind, line) = file(&bytes);
        tree.put(format!("f{length}").as_bytes(), attributes(0o644, 0, 0, 0), kind).unwrap();
        lines.insert(format!("/f{length}"), line);
    }
    // The files have holes at the start, in the middle, at the end, and everywhere.
    for (name, holes) in [("start", vec![0]), ("middle", vec![1]), ("end", vec![2]), ("all", vec![0, 1, 2])] {
        let mut bytes = vec![9; (128 << 10) * 2 + 100];
        for hole in holes {
            let end = bytes.len().min((hole + 1) * (128 << 10));
            bytes[hole * (128 << 10)..end].fill(0);
        }
        let (kind, line) = file(&bytes);
        tree.put(name.as_bytes(), attributes(0o644, 0, 0, 0), kind).unwrap();
        lines.insert(format!("/{name}"), line);
    }
    let seen = read(image(&tree));
    for (path, line) in lines {
        assert_eq!(seen[&path], format!("{line} 644 0:0 @0"), "{path}");
    }
}

#[test]
fn a_folder_of_many_entries_is_read_back() {
    let mut tree = Tree::default();
    for number in 0..20_000 {
        let path = format!("many/a-rather-long-name-for-a-file-{number:05}");
        tree.put(path.as_bytes(), attributes(0o644, 0, 0, 0), Kind::Fifo).unwrap();
    }
    let seen = read(image(&tree));
    assert_eq!(seen.keys().filter(|path| path.starts_with("/many/")).count(), 20_000);
}

#[test]
fn hard_links_share_their_data() {
    let mut tree = Tree::default();
    let (kind, line) = file(&vec![3; 1 << 20]);
    tree.put(b"a", attributes(0o644, 0, 0, 0), kind).unwrap();
    let one = image(&tree).len();
    tree.put_hard_link(b"b/c", b"a").unwrap();
    let image = image(&tree);
    assert_eq!(image.len(), one);
    let seen = read(image);
    assert!(seen["/a"].starts_with(&line) && seen["/b/c"].starts_with(&line));
}

#[test]
fn an_attribute_that_does_not_fit_is_named() {
    let mut tree = Tree::default();
    let xattrs = [(b"system.posix_acl_access".to_vec(), vec![1])].into();
    let attributes = Attributes { xattrs, ..attributes(0o644, 0, 0, 0) };
    tree.put(b"a/b", attributes, Kind::Fifo).unwrap();
    let error = write(&tree, 0, &mut Cursor::new(Vec::new())).unwrap_err().to_string();
    assert_eq!(error, "/a/b has the extended attribute system.posix_acl_access, which SquashFS cannot hold");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_tree_is_read_back_and_order_does_not_matter(
        mut files in prop::collection::btree_map("[a-d]{1,2}(/[a-d]{1,2}){0,4}", (0..0o7777u32, 0..9u32, 0..500_000usize), 1..40),
        shift in 0..40usize,
    ) {
        // Removes a file if another entry needs its path as a folder.
        let names: Vec<String> = files.keys().cloned().collect();
        files.retain(|name, _| !names.iter().any(|other| other.starts_with(&format!("{name}/"))));
        let mut list: Vec<_> = files.iter().collect();
        let build = |list: &[(&String, &(u32, u32, usize))]| {
            let mut tree = Tree::default();
            for (name, (mode, uid, length)) in list {
                let (kind, _) = file(&vec![u8::try_from(*uid).unwrap(); *length]);
                tree.put(name.as_bytes(), attributes(*mode, *uid, 1, 5), kind).unwrap();
            }
            image(&tree)
        };
        let first = build(&list);
        let middle = shift % list.len();
        list.rotate_left(middle);
        prop_assert!(build(&list) == first, "the image depends on the order of insertion");
        let seen = read(first);
        for (name, (mode, uid, length)) in &files {
            let (_, line) = file(&vec![u8::try_from(*uid).unwrap(); *length]);
            prop_assert_eq!(&seen[&format!("/{name}")], &format!("{line} {mode:o} {uid}:1 @5"));
        }
    }

    #[test]
    fn a_damaged_image_is_an_error_or_has_other_files(
        changes in prop::collection::vec((0..1_000usize, any::<u8>()), 1..8), cut in 0..2_000usize,
    ) {
        let mut tree = Tree::default();
        for number in 0..20 {
            let content = vec![number; usize::from(number) * 10];
            let (path, attributes) = (format!("a{}/f{number}", number % 3), attributes(0o644, 0, 0, 0));
            tree.put(path.as_bytes(), attributes, Kind::File(Content::bytes(content))).unwrap();
        }
        let whole = image(&tree);
        let used = usize::try_from(u64::from_le_bytes(whole[40..48].try_into().unwrap())).unwrap();
        let mut image = whole.clone();
        for (from_end, byte) in changes {
            // The superblock is at the start of the image, and the tables are at the end.
            let at = if from_end < 96 { from_end } else { used - from_end };
            image[at] = byte;
        }
        drop(files(&image));
        image.truncate(cut);
        prop_assert!(files(&image).is_err());
        prop_assert!(files(&whole).is_ok());
    }
}
