//! Tests of base files and moment files: data is read back as it was written, and all damage is detected. A base is the
//! initial content of an image, i.e. of a memory or disk. The file of a moment stores only changes to bases.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::base::Base;
use crate::image::PageImage;
use crate::moment::{IMAGE_PAGES_MAX, MomentFile, MomentInfo, MomentParts};
use crate::page::{PAGE, PageBytes, Pool};
use crate::tree::{Entry, Tree};

/// Returns one of a few page contents. Kind 0 is zeroes. Kinds from 4 on hardly compress.
fn content(kind: u8) -> PageBytes {
    let mut content = [kind; PAGE];
    if kind >= 4 {
        let mut state = u32::from(kind);
        content.iter_mut().for_each(|byte| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (state >> 24) as u8;
        });
    }
    content
}

fn image(pool: &Pool, mut image: PageImage, writes: &BTreeMap<u64, u8>) -> PageImage {
    let pages = image.pages();
    for (&index, &kind) in writes.iter().filter(|&(&index, _)| index < pages) {
        image.set(pool, index, &content(kind));
    }
    image
}
fn writes() -> impl Strategy<Value = BTreeMap<u64, u8>> {
    proptest::collection::btree_map(0u64..300, 0u8..8, 0..60)
}
fn same(a: &PageImage, b: &PageImage) -> bool {
    let mut same = a.pages() == b.pages();
    a.differing(b, |_| same = false);
    same
}
fn entries(tree: &Tree) -> Vec<(u64, Option<PageBytes>)> {
    let content = |entry: &Entry| match entry {
        Entry::Zero => None,
        Entry::Page(page) => Some(*page.bytes()),
    };
    tree.iter().map(|(index, entry)| (index, content(entry))).collect()
}
fn read(path: &Path, bases: &[Arc<Base>]) -> Result<MomentParts, FileError> {
    let find = |digest| bases.iter().find(|base| base.digest() == Some(digest)).cloned();
    MomentFile::open(path)?.read(&Pool::default(), find)
}

/// Calls `check` for each damaged version of the file: each bit flipped, each truncation, and one byte appended.
fn damage(path: &Path, mut check: impl FnMut(&str)) {
    let whole = fs::read(path).unwrap();
    let file = OpenOptions::new().write(true).open(path).unwrap();
    for (at, byte) in whole.iter().enumerate() {
        for bit in 0..8 {
            file.write_all_at(&[byte ^ 1 << bit], at as u64).unwrap();
            check(&format!("bit {bit} of byte {at}"));
        }
        file.write_all_at(&[*byte], at as u64).unwrap();
    }
    file.set_len(whole.len() as u64 + 1).unwrap();
    check("one byte appended");
    for len in (0..whole.len()).rev() {
        file.set_len(len as u64).unwrap();
        check(&format!("{len} bytes"));
    }
    fs::write(path, whole).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn bases_come_back(pages in 0u64..300, writes in writes(), over in writes()) {
        let folder = tempfile::tempdir().unwrap();
        let (pool, path) = (Pool::default(), folder.path().join("base"));
        let written = image(&pool, PageImage::zero(pages), &writes);
        let digest = BaseFile::write(&path, &written).unwrap();
        let file = BaseFile::open(&path).unwrap();
        prop_assert_eq!((file.digest(), file.pages()), (digest, pages));
        prop_assert_eq!(file.present_pages(), written.delta().len());
        prop_assert_eq!(file.data_offset() % 4096, 0);
        let raw = fs::read(&path).unwrap();
        for index in 0..pages {
            let at = file.data_offset() as usize + index as usize * PAGE;
            prop_assert_eq!(&raw[at..at + PAGE], written.page(index).unwrap_or(&[0; PAGE]));
            prop_assert_eq!((file.page(index), file.hash(index)), (written.page(index), written.hash(index)));
        }
        prop_assert_eq!((file.page(pages), file.hash(pages)), (None, None));
        let on = PageImage::on(Arc::new(Base::File(file)));
        prop_assert!(same(&on, &written));

        // The same content in another order of writes makes the same file. Different content has a different digest.
        let changed = image(&pool, on, &over);
        let again = folder.path().join("again");
        let other = BaseFile::write(&again, &changed).unwrap();
        prop_assert_eq!(other == digest, same(&changed, &written));
        prop_assert_eq!(fs::read(&again).unwrap() == raw, same(&changed, &written));
        prop_assert!(same(&PageImage::on(Arc::new(Base::File(BaseFile::open(&again).unwrap()))), &changed));
    }

    /// A base in memory equals the base file that would be written. An image can move from one base to another.
    #[test]
    fn bases_in_memory_equal_files(below in writes(), above in writes(), other in writes(), pages in 250u64..310) {
        let folder = tempfile::tempdir().unwrap();
        let (pool, path) = (Pool::default(), folder.path().join("base"));
        let written = image(&pool, PageImage::zero(pages), &below);
        let digest = BaseFile::write(&path, &written).unwrap();
        let made = BaseFile::in_memory(&path, &written).unwrap();
        made.verify_all().unwrap();
        prop_assert_eq!(made.digest(), digest);
        let bytes = |base: &BaseFile| {
            let mut bytes = vec![0; base.file().metadata().unwrap().len() as usize];
            base.file().read_exact_at(&mut bytes, 0).unwrap();
            bytes
        };
        prop_assert_eq!(bytes(&made), fs::read(&path).unwrap());
        // Nothing can change the bytes that machines map.
        prop_assert!(made.file().write_all_at(&[1], 0).is_err() && made.file().set_len(0).is_err());

        let changed = image(&pool, PageImage::on(Arc::new(Base::File(made))), &above);
        let others = image(&pool, PageImage::zero(pages), &other);
        let others = Arc::new(Base::File(BaseFile::in_memory(&path, &others).unwrap()));
        let moved = changed.over(&pool, &others);
        prop_assert!(same(&moved, &changed));
        prop_assert!(Arc::ptr_eq(moved.base(), &others));
        for (index, entry) in moved.delta() {
            let hash = match entry {
                Entry::Page(page) => Some(page.hash()),
                Entry::Zero => None,
            };
            prop_assert!(hash != others.hash(index) && index < pages, "entry {} is not needed", index);
        }
    }

    #[test]
    fn moments_come_back(
        below in writes(), writes in proptest::collection::vec(writes(), 3),
        tree in proptest::collection::btree_map(prop_oneof![0u64..100, 0..IMAGE_PAGES_MAX], 0u8..8, 0..40),
        states in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..600), 0..4),
        repeats in prop_oneof![Just(1usize), Just(700)],
        label in ".{0,40}", (vtime, seed, key, state_version) in any::<(u64, u64, [u8; 32], u32)>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (pool, path) = (Pool::default(), folder.path().join("moment"));
        let base = folder.path().join("base");
        BaseFile::write(&base, &image(&pool, PageImage::zero(300), &below)).unwrap();
        let base = Arc::new(Base::File(BaseFile::open(&base).unwrap()));
        let states: Vec<Vec<u8>> = states.into_iter().map(|state| state.repeat(repeats)).collect();
        let entry = |kind| pool.intern(&content(kind)).map_or(Entry::Zero, Entry::Page);
        let tree: Tree = tree.into_iter().map(|(index, kind)| (index, entry(kind))).collect();
        let mut parts = MomentParts::default();
        parts.states.extend(states.into_iter().enumerate().map(|(i, state)| (format!("state {i}"), state.into())));
        parts.images.insert("zero".into(), image(&pool, PageImage::zero(250), &writes[0]));
        parts.images.insert("one".into(), image(&pool, PageImage::on(Arc::clone(&base)), &writes[1]));
        parts.images.insert("other".into(), image(&pool, PageImage::on(Arc::clone(&base)), &writes[2]));
        parts.trees.insert("blocks".into(), tree);
        let info = MomentInfo { label, vtime, seed, key, state_version };
        let header = MomentFile::write(&path, &info, &parts).unwrap();

        let file = MomentFile::open(&path).unwrap();
        prop_assert_eq!(file.header(), &header);
        prop_assert_eq!(&header.info, &info);
        prop_assert_eq!(header.file_bytes, fs::metadata(&path).unwrap().len());
        prop_assert_eq!(header.distinct_pages, distinct(&parts), "each distinct page is stored once");
        let back = read(&path, std::slice::from_ref(&base)).unwrap();
        prop_assert_eq!(&back.states, &parts.states);
        prop_assert!(back.images.keys().eq(parts.images.keys()));
        for (name, image) in &parts.images {
            prop_assert!(same(&back.images[name], image));
            prop_assert_eq!(entries(back.images[name].delta()), entries(image.delta()));
        }
        prop_assert_eq!(entries(&back.trees["blocks"]), entries(&parts.trees["blocks"]));

        // If the moment that was read is written again, the new file equals the old one. Without the base, reading
        // fails with an error that names the base.
        let again = folder.path().join("again");
        MomentFile::write(&again, &info, &back).unwrap();
        prop_assert_eq!(fs::read(&again).unwrap(), fs::read(&path).unwrap());
        let error = read(&path, &[]).unwrap_err().to_string();
        let digest = base.digest().unwrap();
        prop_assert_eq!(error, format!("{}: image one needs base {digest:#}, which is missing", path.display()));
    }

    /// Opening a file of arbitrary bytes returns an error, even if the bytes follow a valid beginning.
    #[test]
    fn garbage_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..9000), version in 0u32..3, kind in 0..3) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("garbage");
        let magic: &[u8] = match kind { 0 => b"EVERBASE", 1 => b"EVERMMNT", _ => b"" };
        let version = if kind < 2 { version.to_le_bytes().to_vec() } else { Vec::new() };
        fs::write(&path, [magic, &version, &bytes].concat()).unwrap();
        prop_assert!(BaseFile::open(&path).is_err());
        prop_assert!(MomentFile::open(&path).is_err());
    }
}

/// Returns the number of different page contents in a moment.
fn distinct(parts: &MomentParts) -> u64 {
    let trees = parts.images.values().map(PageImage::delta).chain(parts.trees.values());
    let pages: BTreeSet<PageBytes> = trees.flat_map(entries).filter_map(|(_, content)| content).collect();
    pages.len() as u64
}

#[test]
fn every_damage_to_a_base_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("base");
    let written = image(&Pool::default(), PageImage::zero(3), &BTreeMap::from([(0, 1), (2, 5)]));
    BaseFile::write(&path, &written).unwrap();
    damage(&path, |what| {
        let error = BaseFile::open(&path).expect_err(what).to_string();
        assert!(error.contains(path.to_str().unwrap()), "{what}: {error}");
    });
    assert!(same(&PageImage::on(Arc::new(Base::File(BaseFile::open(&path).unwrap()))), &written));
}

#[test]
fn every_damage_to_a_moment_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("moment");
    let pool = Pool::default();
    let mut parts = MomentParts::default();
    parts.states.insert("machine".into(), Arc::from(vec![9; 300]));
    parts.images.insert(
        "memory".into(),
        image(&pool, PageImage::zero(300), &BTreeMap::from([(0, 1), (2, 2), (299, 1)])),
    );
    let info = MomentInfo { label: "here".into(), ..MomentInfo::default() };
    MomentFile::write(&path, &info, &parts).unwrap();
    damage(&path, |what| {
        let error = read(&path, &[]).expect_err(what).to_string();
        assert!(error.contains(path.to_str().unwrap()), "{what}: {error}");
    });
    assert_eq!(read(&path, &[]).unwrap().states, parts.states);
}

/// Several threads unpack a moment of many chunks (compressed groups of pages). The pages keep their order, and the
/// error names the first damaged chunk.
#[test]
fn large_moments_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("moment");
    let (pool, pages) = (Pool::default(), 64 * 64 + 7);
    let mut memory = PageImage::zero(pages);
    for index in 0..pages {
        let mut content = [0; PAGE];
        content[..8].copy_from_slice(&(index + 1).to_le_bytes());
        memory.set(&pool, index, &content);
    }
    let mut parts = MomentParts::default();
    parts.images.insert("memory".into(), memory.clone());
    MomentFile::write(&path, &MomentInfo::default(), &parts).unwrap();
    assert!(same(&read(&path, &[]).unwrap().images["memory"], &memory));
    let whole = fs::read(&path).unwrap();
    // The bytes at a quarter and at half of the file's length are in different chunks. If both chunks are damaged, the
    // error names the first.
    let mut damaged = whole.clone();
    for part in [4, 2] {
        damaged[whole.len() / part] ^= 1;
    }
    fs::write(&path, &damaged).unwrap();
    let both = read(&path, &[]).unwrap_err().to_string();
    damaged[whole.len() / 2] ^= 1;
    fs::write(&path, &damaged).unwrap();
    assert_eq!(read(&path, &[]).unwrap_err().to_string(), both);
    assert!(both.contains(": damaged: chunk ") && both.ends_with(" differs from its hash"), "{both}");
}

#[test]
fn other_kinds_and_formats_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (base, moment) = (folder.path().join("base"), folder.path().join("moment"));
    BaseFile::write(&base, &PageImage::zero(1)).unwrap();
    MomentFile::write(&moment, &MomentInfo::default(), &MomentParts::default()).unwrap();
    let error = |result: Result<(), FileError>| result.unwrap_err().to_string();
    assert_eq!(error(BaseFile::open(&moment).map(drop)), format!("{}: not a base file", moment.display()));
    assert_eq!(error(MomentFile::open(&base).map(drop)), format!("{}: not a moment file", base.display()));
    for path in [&base, &moment] {
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&3u32.to_le_bytes(), 8).unwrap();
    }
    assert_eq!(
        error(BaseFile::open(&base).map(drop)),
        format!("{}: base file of format 3, this version reads 1", base.display())
    );
    assert_eq!(
        error(MomentFile::open(&moment).map(drop)),
        format!("{}: moment file of format 3, this version reads 1", moment.display())
    );
    let error = error(BaseFile::open(folder.path()).map(drop));
    assert_eq!(error, format!("cannot open {}", folder.path().display()));
}

/// Open files may be unlinked or replaced. Open handles keep the old content.
#[test]
fn open_files_survive_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("base");
    let written = image(&Pool::default(), PageImage::zero(9), &BTreeMap::from([(0, 1), (5, 5)]));
    BaseFile::write(&path, &written).unwrap();
    let first = BaseFile::open(&path).unwrap();
    BaseFile::write(&path, &PageImage::zero(3)).unwrap();
    first.verify_all().unwrap();
    fs::remove_file(&path).unwrap();
    first.verify_all().unwrap();
    assert!(same(&PageImage::on(Arc::new(Base::File(first))), &written));
}

/// A base file is sparse: zero pages use no disk space, and verification does not read them.
#[test]
fn zeroes_take_no_room() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("base");
    let pages = 1 << 24;
    let written = image(&Pool::default(), PageImage::zero(pages), &BTreeMap::from([(0, 1), (200, 5)]));
    BaseFile::write(&path, &written).unwrap();
    let metadata = fs::metadata(&path).unwrap();
    assert!(metadata.len() > pages * PAGE as u64);
    assert!(metadata.blocks() * 512 < 1 << 20, "{} blocks", metadata.blocks());
    assert!(same(&PageImage::on(Arc::new(Base::File(BaseFile::open(&path).unwrap()))), &written));
}

/// Verification checks the pages in all ranges with data, and also all pages in the file's index. It therefore notices
/// a page that a hole has replaced.
#[test]
fn missing_pages_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("base");
    let there = [3, 4, 9, 39];
    let written = image(&Pool::default(), PageImage::zero(40), &there.map(|index| (index, 5)).into());
    BaseFile::write(&path, &written).unwrap();
    let (whole, data_at) = (fs::read(&path).unwrap(), BaseFile::open(&path).unwrap().data_offset());
    for missing in there {
        let file = fs::File::create(&path).unwrap();
        file.set_len(whole.len() as u64).unwrap();
        file.write_all_at(&whole[..data_at as usize], 0).unwrap();
        for index in there.into_iter().filter(|&index| index != missing) {
            let at = data_at + index * PAGE as u64;
            file.write_all_at(&whole[at as usize..][..PAGE], at).unwrap();
        }
        let error = BaseFile::open(&path).unwrap_err().to_string();
        assert_eq!(error, format!("{}: damaged: page {missing} differs from its hash", path.display()));
    }
}

#[test]
fn bases_beyond_the_format_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("base");
    let error = BaseFile::write(&path, &PageImage::zero(BASE_PAGES_MAX + 1)).unwrap_err().to_string();
    assert_eq!(error, format!("{}: 268435457 pages, at most 268435456 can be stored", path.display()));
    assert!(!path.exists());
}

/// A base may be forged with a correct digest. Its counts, index and pages must be consistent, too.
#[test]
fn hostile_bases_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("base");
    let written = image(&Pool::default(), PageImage::zero(20), &BTreeMap::from([(0, 1), (7, 5)]));
    BaseFile::write(&path, &written).unwrap();
    let whole = fs::read(&path).unwrap();
    let data_at = BaseFile::open(&path).unwrap().data_offset() as usize;
    let forge = |change: &mut dyn FnMut(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        let sum = checksum(&bytes[..40], &bytes[72..data_at]);
        bytes[40..72].copy_from_slice(&sum);
        fs::write(&path, bytes).unwrap();
        BaseFile::open(&path).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(forge(&mut |_| {}), Ok(()));
    for at in 12..40 {
        for value in [0, 1, 2, 0x7f, 0x80, 0xff] {
            let unchanged = whole[at] == value;
            assert_eq!(forge(&mut |bytes| bytes[at] = value).is_ok(), unchanged, "byte {at} is {value}");
        }
    }
    for at in 72..data_at {
        assert!(forge(&mut |bytes| bytes[at] ^= 1).is_err(), "byte {at}");
    }
    let zero = crate::page::PageHash::of(&[0; PAGE]);
    let stored = u32::from_le_bytes(whole[12..16].try_into().unwrap()) as usize;
    let error = forge(&mut |bytes| {
        bytes[72 + stored..][..32].copy_from_slice(&zero.0);
        bytes[data_at..][..PAGE].fill(0);
    });
    assert!(error.unwrap_err().contains("page 0 is in the index, but all zeroes"));
}
