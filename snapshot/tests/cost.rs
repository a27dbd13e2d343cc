//! What images cost in bytes and in nanoseconds. Prints; asserts nothing but the ratio of bytes.
//!
//! `cargo test --release -p everett-snapshot --test cost -- --ignored --nocapture`
#![allow(clippy::disallowed_types)] // Measuring host time is what this is for.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use everett_snapshot::{Base, BaseFile, Image, PAGE, PageBytes, Pool};

const PAGES: u64 = 1 << 16;
const DIRTY: u64 = 100;
const IMAGES: u64 = 10_000;
/// The most bytes that a distinct page may take, in pages.
const RATIO_MAX: f64 = 1.1;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn page(&mut self) -> PageBytes {
        let mut content = [0; PAGE];
        content.as_chunks_mut().0.iter_mut().for_each(|word| *word = self.next().to_le_bytes());
        content
    }
}

fn resident_bytes() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let anonymous: Vec<f64> = statm.split(' ').map(|field| field.trim().parse().unwrap()).collect();
    (anonymous[1] - anonymous[2]) * 4096.0
}

fn ns(count: u64, start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64 / count as f64
}

/// A base of which every page is there.
fn base(folder: &std::path::Path, random: &mut Random) -> Arc<Base> {
    let pool = Pool::default();
    let mut image = Image::zero(PAGES);
    // Of few contents, so that what this frees again does not hide what the images take.
    let contents: [PageBytes; 16] = std::array::from_fn(|_| random.page());
    for index in 0..PAGES {
        image.set(&pool, index, &contents[index as usize % contents.len()]);
    }
    let path = folder.join("base");
    let start = Instant::now();
    BaseFile::write(&path, &image).unwrap();
    println!("base file: write {:.0} ms", ns(1, start) / 1e6);
    let start = Instant::now();
    let file = BaseFile::open_unverified(&path).unwrap();
    println!("base file: map {:.2} ms", ns(1, start) / 1e6);
    for _ in 0..3 {
        let start = Instant::now();
        file.verify_all().unwrap();
        println!("base file: verify 100 MB {:.1} ms", ns(1, start) / 1e6 * 100e6 / (PAGES * 4096) as f64);
    }
    Arc::new(Base::File(file))
}

/// `IMAGES` images, each `DIRTY` pages on from the one before, beginning anew from the root after `chain` of them.
fn many(base: &Arc<Base>, chain: u64, random: &mut Random) -> f64 {
    let pool = Pool::default();
    let before = resident_bytes();
    let root = Image::on(Arc::clone(base));
    let mut images = Vec::with_capacity(IMAGES as usize);
    let mut set = 0.0;
    for number in 0..IMAGES {
        let from = if number % chain == 0 { &root } else { images.last().unwrap() };
        let mut image: Image = Image::clone(from);
        let pages: Vec<(u64, PageBytes)> =
            (0..DIRTY).map(|_| (random.next() % PAGES, random.page())).collect();
        let start = Instant::now();
        for (index, content) in &pages {
            image.set(&pool, *index, content);
        }
        set += ns(IMAGES * DIRTY, start);
        images.push(image);
    }
    let ratio = (resident_bytes() - before) / pool.stats().bytes as f64;
    println!("chains of {chain}: {:.0} bytes a page, ratio {ratio:.4}; set {set:.0} ns", ratio * PAGE as f64);

    let last = images.last().unwrap();
    let indices: Vec<u64> = (0..DIRTY).map(|_| random.next() % PAGES).collect();
    let start = Instant::now();
    for _ in 0..1000 {
        indices.iter().for_each(|&index| {
            black_box(last.page(index));
        });
    }
    println!("  look-up: {:.1} ns (warm)", ns(1000 * DIRTY, start));
    let start = Instant::now();
    for image in images.iter().step_by(10) {
        image.delta_pages().take(DIRTY as usize).for_each(|(index, _)| {
            black_box(image.page(index));
        });
    }
    println!("  look-up: {:.1} ns (cold, iteration included)", ns(IMAGES / 10 * DIRTY, start));
    let start = Instant::now();
    for _ in 0..1_000_000 {
        black_box(last.clone());
    }
    println!("  fork: {:.1} ns", ns(1_000_000, start));
    let mut found = 0u64;
    let start = Instant::now();
    for pair in images.windows(2).step_by(10) {
        pair[0].differing(&pair[1], |_| found += 1);
    }
    println!(
        "  difference: {:.1} us for {} pages (cold)",
        ns(IMAGES / 10, start) / 1e3,
        found / (IMAGES / 10)
    );
    let start = Instant::now();
    for _ in 0..1000 {
        images[8].differing(&images[9], |_| found += 1);
    }
    println!("  difference: {:.1} us (warm)", ns(1000, start) / 1e3);
    let start = Instant::now();
    drop(images);
    println!("  drop: {:.0} ns a page", ns(IMAGES * DIRTY, start));
    assert_eq!(pool.stats().pages, 0);
    ratio
}

#[test]
#[ignore = "takes 5 GB and half a minute"]
fn cost() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(88_172_645_463_325_252);
    let base = base(folder.path(), &mut random);
    let ratio = many(&base, 50, &mut random);
    println!("again, in memory that the host has given already:");
    many(&base, 1, &mut random);
    assert!(ratio <= RATIO_MAX, "{ratio}");
}
