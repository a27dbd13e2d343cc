//! Tests of the tree, a root filesystem in memory.

use super::{Attributes, Content, Kind, OnFolder, Tree};

fn file(text: &str) -> Kind {
    Kind::File(Content::bytes(text.as_bytes()))
}

fn plain() -> Attributes {
    Attributes::of_root(0o644)
}

fn read(tree: &Tree, path: &str) -> Option<String> {
    tree.file(path.as_bytes()).map(|content| String::from_utf8(content.read(1000).unwrap()).unwrap())
}

#[test]
fn different_spellings_of_a_path_are_equal() {
    let mut tree = Tree::default();
    tree.put(b"./usr/bin/./a", plain(), file("a")).unwrap();
    for path in ["usr/bin/a", "/usr/bin/a", "./usr//bin/a"] {
        assert_eq!(read(&tree, path).as_deref(), Some("a"));
    }
    assert_eq!(tree.inode(tree.find(b"usr").unwrap()).attributes.mode, 0o755);
    assert_eq!(tree.find(b"/"), Some(Tree::ROOT));
}

#[test]
fn links_among_the_parents_are_followed() {
    let mut tree = Tree::default();
    tree.put(b"lib", plain(), Kind::Link(b"usr/lib".to_vec())).unwrap();
    tree.put_folder(b"usr/lib", Attributes::of_root(0o755), OnFolder::Keep).unwrap();
    tree.put(b"lib/x", plain(), file("x")).unwrap();
    tree.put(b"usr/lib/up", plain(), Kind::Link(b"../../lib/x".to_vec())).unwrap();
    tree.put(b"usr/lib/absolute", plain(), Kind::Link(b"/lib/up".to_vec())).unwrap();
    assert_eq!(read(&tree, "usr/lib/x").as_deref(), Some("x"));
    assert_eq!(read(&tree, "lib/absolute").as_deref(), Some("x"));
    // If a package ships `lib/` as a folder, `lib` stays a link.
    tree.put_folder(b"lib", Attributes::of_root(0o700), OnFolder::Update).unwrap();
    assert!(matches!(tree.inode(tree.find(b"lib").unwrap()).kind, Kind::Link(_)));
}

#[test]
fn cyclic_and_dangling_links_are_errors() {
    let mut tree = Tree::default();
    tree.put(b"a", plain(), Kind::Link(b"b".to_vec())).unwrap();
    tree.put(b"b", plain(), Kind::Link(b"a".to_vec())).unwrap();
    tree.put(b"dead", plain(), Kind::Link(b"nowhere".to_vec())).unwrap();
    assert!(tree.file(b"a").is_none());
    assert!(tree.put(b"a/x", plain(), file("x")).is_err());
    let error = tree.put(b"dead/x", plain(), file("x")).unwrap_err().to_string();
    assert_eq!(error, "dead/x: a parent is a symbolic link that cannot be followed");
}

#[test]
fn the_number_of_names_in_followed_links_is_bounded() {
    let mut tree = Tree::default();
    let link =
        |slashes: usize, to: &str| Kind::Link(["./".repeat(slashes).as_bytes(), to.as_bytes()].concat());
    tree.put(b"end/file", plain(), file("x")).unwrap();
    tree.put(b"short", plain(), link(1000, "end")).unwrap();
    assert_eq!(read(&tree, "short/file").as_deref(), Some("x"));
    // To resolve `l39`, the tree would have to follow eighty thousand names: forty links, each with a target of four
    // kilobytes.
    tree.put(b"l0", plain(), link(2000, "end")).unwrap();
    for number in 1..40 {
        tree.put(format!("l{number}").as_bytes(), plain(), link(2000, &format!("l{}", number - 1))).unwrap();
    }
    assert!(read(&tree, "l39/file").is_none());
    let error = tree.put(b"l39/new", plain(), file("x")).unwrap_err().to_string();
    assert_eq!(error, "l39/new: a parent is a symbolic link that cannot be followed");
}

#[test]
fn dangling_links_in_the_middle_of_a_path_are_reported() {
    let mut tree = Tree::default();
    tree.put(b"a/b", plain(), Kind::Link(b"../c/d".to_vec())).unwrap();
    tree.put(b"c/f", plain(), file("x")).unwrap();
    let error = tree.put(b"a/b/e/x", plain(), file("x")).unwrap_err().to_string();
    assert_eq!(error, "a/b/e/x: a parent is a symbolic link that cannot be followed");
    tree.put(b"c/d/y", plain(), file("y")).unwrap();
    tree.put(b"a/b/e/x", plain(), file("x")).unwrap();
    assert_eq!(read(&tree, "c/d/e/x").as_deref(), Some("x"));
    let error = tree.put(b"c/f/x", plain(), file("x")).unwrap_err().to_string();
    assert_eq!(error, "c/f/x: a parent is not a folder");
}

#[test]
fn paths_that_leave_the_root_or_exceed_a_bound_are_refused() {
    let mut tree = Tree::default();
    for path in ["../x", "a/../../x", "a\0b"] {
        assert!(tree.put(path.as_bytes(), plain(), file("x")).is_err(), "{path}");
    }
    assert!(tree.put(&[b'a'; 256], plain(), file("x")).is_err());
    assert!(tree.put(&b"a/".repeat(300), plain(), file("x")).is_err());
    // A link may point anywhere. It is resolved only inside the tree.
    tree.put(b"out", plain(), Kind::Link(b"../../../etc".to_vec())).unwrap();
    tree.put_folder(b"etc", Attributes::of_root(0o755), OnFolder::Keep).unwrap();
    tree.put(b"out/x", plain(), file("x")).unwrap();
    assert_eq!(read(&tree, "etc/x").as_deref(), Some("x"));
}

#[test]
fn files_and_folders_do_not_replace_each_other() {
    let mut tree = Tree::default();
    tree.put(b"a/b", plain(), file("b")).unwrap();
    assert!(tree.put(b"a", plain(), file("a")).is_err());
    assert!(tree.put_folder(b"a/b", plain(), OnFolder::Update).is_err());
    assert!(tree.put(b"a/b/c", plain(), file("c")).is_err());
    assert!(tree.put(b"", plain(), file("root")).is_err());
    tree.put(b"a/b", plain(), file("new")).unwrap();
    assert_eq!(read(&tree, "a/b").as_deref(), Some("new"));
}

#[test]
fn hard_links_share_the_inode() {
    let mut tree = Tree::default();
    tree.put(b"a", plain(), file("a")).unwrap();
    tree.put_hard_link(b"dir/b", b"./a").unwrap();
    assert_eq!(tree.find(b"a"), tree.find(b"dir/b"));
    assert!(tree.put_hard_link(b"c", b"missing").is_err());
    assert!(tree.put_hard_link(b"c", b"dir").is_err());
}

#[test]
fn folders_keep_or_take_attributes_and_can_be_emptied() {
    let mut tree = Tree::default();
    tree.put_folder(b"tmp", Attributes::of_root(0o1777), OnFolder::Keep).unwrap();
    tree.put_folder(b"tmp", Attributes::of_root(0o755), OnFolder::Keep).unwrap();
    assert_eq!(tree.inode(tree.find(b"tmp").unwrap()).attributes.mode, 0o1777);
    tree.put_folder(b"tmp", Attributes::of_root(0o700), OnFolder::Update).unwrap();
    assert_eq!(tree.inode(tree.find(b"tmp").unwrap()).attributes.mode, 0o700);
    tree.put(b"tmp/x", plain(), file("x")).unwrap();
    tree.empty(b"tmp");
    assert!(tree.find(b"tmp/x").is_none() && tree.find(b"tmp").is_some());
    tree.remove(b"tmp");
    tree.remove(b"tmp");
    assert!(tree.find(b"tmp").is_none());
}

#[test]
fn times_are_clamped() {
    let mut tree = Tree::default();
    let at = |mtime_s| Attributes { mtime_s, ..plain() };
    tree.put(b"old", at(5), file("")).unwrap();
    tree.put(b"new", at(50), file("")).unwrap();
    tree.clamp_times(10);
    let time = |path: &[u8]| tree.inode(tree.find(path).unwrap()).attributes.mtime_s;
    assert_eq!((time(b"old"), time(b"new")), (5, 10));
}
