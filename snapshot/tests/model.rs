//! Test that uses images (snapshots of a memory), a store of images and a pool of shared pages as a machine does, and
//! compares the images with full copies of the memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use everett_snapshot::{Base, BaseFile, Entry, PAGE, PageBytes, PageHash, PageImage, Pool, Store};
use proptest::prelude::*;

const PAGES: usize = 70;

type Copy = Vec<PageBytes>;

/// A moment that the test has taken.
struct Written {
    parent: u32,
    /// Pages written since the parent. The test derives the moment's image again from them.
    writes: Vec<(u64, PageBytes)>,
    copy: Copy,
}

/// An operation on one of two machines.
#[derive(Debug, Clone)]
enum Step {
    /// The CPU fills a page.
    Fill(usize, u8),
    /// A device writes a few bytes of a page.
    Device(usize, usize, u8),
    Snapshot,
    /// The other machine restores the last moment of this machine.
    Fork,
    Restore(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    // There are few contents, so that pages often get an earlier content again. Byte 0 makes a page of zeroes.
    let step = prop_oneof![
        6 => (0..PAGES, 0u8..5).prop_map(|(page, byte)| Step::Fill(page, byte)),
        4 => (0..PAGES, 0..PAGE, 0u8..3).prop_map(|(page, at, byte)| Step::Device(page, at, byte)),
        4 => Just(Step::Snapshot),
        1 => Just(Step::Fork),
        3 => any::<prop::sample::Index>().prop_map(Step::Restore),
    ];
    proptest::collection::vec((0usize..2, step), 1..120)
}

/// A machine: its memory, its image at the last moment, and the pages written since then.
struct Machine {
    live: Copy,
    image: PageImage,
    at: u32,
    dirty: BTreeSet<usize>,
}

impl Machine {
    /// Restores an image by copying the pages that differ.
    fn restore(&mut self, key: u32, target: &PageImage) {
        let mut changed = std::mem::take(&mut self.dirty);
        self.image.differing(target, |index| {
            changed.insert(index as usize);
        });
        for index in changed {
            self.live[index] = *target.page(index as u64).unwrap_or(&[0; PAGE]);
        }
        (self.image, self.at) = (target.clone(), key);
    }
}

fn check(image: &PageImage, copy: &Copy) -> Result<(), TestCaseError> {
    let mut present = Vec::new();
    for (index, expected) in copy.iter().enumerate() {
        let zero = *expected == [0; PAGE];
        let hash = (!zero).then(|| PageHash::of(expected));
        prop_assert_eq!(image.page(index as u64), (!zero).then_some(expected), "page {}", index);
        prop_assert_eq!(image.hash(index as u64), hash);
        present.extend(hash.map(|hash| (index as u64, hash)));
        if let Some(entry) = image.delta().get(index as u64) {
            let hash = match entry {
                Entry::Zero => None,
                Entry::Page(page) => Some(page.hash()),
            };
            prop_assert_ne!(hash, image.base().hash(index as u64), "an entry equals the base");
        }
    }
    prop_assert!(image.present().map(|(index, hash, _)| (index, hash)).eq(present));
    Ok(())
}

fn differing(a: &PageImage, b: &PageImage) -> Vec<u64> {
    let mut found = Vec::new();
    a.differing(b, |index| found.push(index));
    found
}
fn copies_differ(a: &Copy, b: &Copy) -> Vec<u64> {
    (0..PAGES).filter(|&index| a[index] != b[index]).map(|index| index as u64).collect()
}

/// Returns the image of a moment. If the store has evicted it, derives it again from the nearest ancestor that has an
/// image.
fn image(
    store: &mut Store<u32, PageImage>,
    journal: &BTreeMap<u32, Written>,
    pool: &Pool,
    key: u32,
) -> Result<PageImage, TestCaseError> {
    let mut missing = Vec::new();
    let mut at = key;
    let mut image = loop {
        match store.get(&at) {
            Some(image) => break image.clone(),
            None => missing.push(at),
        }
        at = journal[&at].parent;
    };
    while let Some(key) = missing.pop() {
        check(&image, &journal[&journal[&key].parent].copy)?;
        let Written { parent, writes, .. } = &journal[&key];
        for (index, content) in writes {
            image.set_hashed(pool, *index, PageHash::of_nonzero(content), content);
        }
        store.insert(key, *parent, writes.len() as u64, image.clone()).unwrap();
    }
    Ok(image)
}

fn run(
    base: &Arc<Base>,
    first: Copy,
    budget_pages: u64,
    steps: Vec<(usize, Step)>,
) -> Result<(), TestCaseError> {
    let pool = Pool::default();
    let mut journal: BTreeMap<u32, Written> = BTreeMap::new();
    let root = PageImage::from_parts(Arc::clone(base), PAGES as u64, &everett_snapshot::Tree::new());
    check(&root, &first)?;
    let mut store = Store::new(budget_pages * PAGE as u64, 0, root.clone());
    journal.insert(0, Written { parent: 0, writes: Vec::new(), copy: first.clone() });
    let machine = || Machine { live: first.clone(), image: root.clone(), at: 0, dirty: BTreeSet::new() };
    let mut machines = [machine(), machine()];
    drop(root);
    let mut next = 1;

    for (which, step) in steps {
        let [a, b] = &mut machines;
        let (machine, other) = if which == 0 { (a, b) } else { (b, a) };
        let known: Vec<u32> = journal.keys().copied().collect();
        match step {
            Step::Fill(page, byte) => {
                machine.live[page] = [byte; PAGE];
                machine.dirty.insert(page);
            }
            Step::Device(page, at, byte) => {
                let end = (at + 9).min(PAGE);
                machine.live[page][at..end].fill(byte);
                machine.dirty.insert(page);
            }
            Step::Snapshot => {
                let before = machine.image.clone();
                let mut writes = Vec::new();
                for index in std::mem::take(&mut machine.dirty) {
                    let content = &machine.live[index];
                    let hash = machine.image.set(&pool, index as u64, content);
                    prop_assert_eq!(hash, machine.image.hash(index as u64));
                    writes.push((index as u64, *content));
                }
                let differing = differing(&before, &machine.image);
                prop_assert!(
                    differing.iter().all(|index| writes.iter().any(|(written, _)| written == index))
                );
                store.insert(next, machine.at, writes.len() as u64, machine.image.clone()).unwrap();
                let copy = machine.live.clone();
                journal.insert(next, Written { parent: machine.at, writes, copy });
                machine.at = next;
                next += 1;
            }
            Step::Fork => other.restore(machine.at, &machine.image),
            Step::Restore(index) => {
                let key = known[index.index(known.len())];
                let image = image(&mut store, &journal, &pool, key)?;
                machine.restore(key, &image);
                prop_assert!(machine.live == journal[&key].copy, "restored memory differs");
            }
        }
    }

    let there: Vec<(u32, PageImage)> =
        journal.keys().filter_map(|key| Some((*key, store.get(key)?.clone()))).collect();
    for (key, image) in &there {
        check(image, &journal[key].copy)?;
        for (other_key, other) in &there {
            prop_assert_eq!(
                differing(image, other),
                copies_differ(&journal[key].copy, &journal[other_key].copy)
            );
        }
    }
    let distinct: BTreeSet<PageHash> = there
        .iter()
        .map(|(_, image)| image)
        .chain(machines.iter().map(|machine| &machine.image))
        .flat_map(|image| image.delta_pages())
        .filter_map(page_hash)
        .collect();
    let counted = store.stats().bytes / PAGE as u64;
    let held: BTreeSet<PageHash> =
        there.iter().flat_map(|(_, image)| image.delta_pages()).filter_map(page_hash).collect();
    prop_assert!(counted >= held.len() as u64, "{counted} pages counted of {}", held.len());
    prop_assert_eq!(
        pool.stats().pages,
        distinct.len() as u64,
        "each distinct page is stored once, and nothing else"
    );
    drop((there, store, machines));
    prop_assert_eq!(pool.stats().pages, 0, "no page is left");
    Ok(())
}

fn page_hash((_, entry): (u64, &Entry)) -> Option<PageHash> {
    match entry {
        Entry::Page(page) => Some(page.hash()),
        Entry::Zero => None,
    }
}

/// Returns a base (the file with an image's initial content), and a copy of its content. Some of its pages are zero.
fn base_file() -> (tempfile::TempDir, Arc<Base>, Copy) {
    let folder = tempfile::tempdir().unwrap();
    let (pool, mut image) = (Pool::default(), PageImage::zero(PAGES as u64));
    let copy: Copy = (0..PAGES).map(|index| [(index % 4) as u8; PAGE]).collect();
    for (index, content) in copy.iter().enumerate() {
        image.set(&pool, index as u64, content);
    }
    let path = folder.path().join("base");
    BaseFile::write(&path, &image).unwrap();
    let base = Arc::new(Base::File(BaseFile::open(&path).unwrap()));
    (folder, base, copy)
}

#[test]
fn machines_over_zeroes_and_over_a_file() {
    let (_folder, base, copy) = base_file();
    let zero = Arc::new(Base::Zero);
    proptest!(ProptestConfig::with_cases(150), |(steps in steps(), budget_pages in 0u64..40, over_file: bool)| {
        if over_file {
            run(&base, copy.clone(), budget_pages, steps)?;
        } else {
            run(&zero, vec![[0; PAGE]; PAGES], budget_pages, steps)?;
        }
    });
}

/// Images with different bases, lengths and pools are compared by content.
#[test]
fn different_bases_are_compared_by_content() {
    let (_folder, base, copy) = base_file();
    proptest!(ProptestConfig::with_cases(100), |(
        pages in 1..=PAGES as u64,
        mine in proptest::collection::vec((0..PAGES, 0u8..5), 0..30),
        theirs in proptest::collection::vec((0..PAGES, 0u8..5), 0..90),
    )| {
        let pools = [Pool::default(), Pool::default()];
        let (mut a, mut copy_a) = (PageImage::on(Arc::clone(&base)), copy.clone());
        let (mut b, mut copy_b) = (PageImage::zero(pages), vec![[0; PAGE]; PAGES]);
        for (index, byte) in mine {
            a.set(&pools[0], index as u64, &[byte; PAGE]);
            copy_a[index] = [byte; PAGE];
        }
        for (index, byte) in theirs.into_iter().filter(|&(index, _)| (index as u64) < pages) {
            b.set(&pools[1], index as u64, &[byte; PAGE]);
            copy_b[index] = [byte; PAGE];
        }
        prop_assert_eq!(differing(&a, &b), copies_differ(&copy_a, &copy_b));
        prop_assert_eq!(differing(&b, &a), copies_differ(&copy_a, &copy_b));
        // An image on the same base, whose pages are in another pool.
        let mut c = PageImage::on(Arc::clone(&base));
        for (index, content) in copy_b.iter().enumerate() {
            c.set(&pools[1], index as u64, content);
        }
        prop_assert_eq!(differing(&a, &c), copies_differ(&copy_a, &copy_b));
        prop_assert_eq!(differing(&b, &c), Vec::<u64>::new());
    });
}

#[test]
fn many_threads_share_a_base_and_a_pool() {
    let (_folder, base, copy) = base_file();
    let pool = Pool::default();
    let root = PageImage::on(base);
    std::thread::scope(|scope| {
        for thread in 0..6u8 {
            let (pool, root, copy) = (&pool, &root, &copy);
            scope.spawn(move || {
                for round in 0..200u8 {
                    let (mut image, mut expected) = (root.clone(), copy.clone());
                    for step in 0..20usize {
                        let (index, byte) =
                            ((step * 7 + usize::from(round)) % PAGES, (step as u8 ^ thread) % 5);
                        image.set(pool, index as u64, &[byte; PAGE]);
                        expected[index] = [byte; PAGE];
                    }
                    let expected = copies_differ(copy, &expected);
                    assert_eq!(differing(root, &image), expected);
                }
            });
        }
    });
    assert_eq!(pool.stats().pages, 0);
}

#[test]
#[should_panic(expected = "page 3 is beyond the end of an image of 3 pages")]
fn a_write_beyond_the_end_panics() {
    let mut image = PageImage::zero(3);
    assert_eq!(image.page(3), None);
    image.set(&Pool::default(), 3, &[1; PAGE]);
}
