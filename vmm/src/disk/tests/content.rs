use everett_snapshot::{PageHash, Pool};
use proptest::prelude::*;

use super::*;
use crate::digest::LeafSum;

proptest! {
    /// Reads and writes have the same results as on a plain array, for each kind of base (initial content of a disk).
    /// Hashes cover the written blocks.
    #[test]
    fn equals_an_array(
        base in 0u8..4,
        steps in proptest::collection::vec((0u64..75, 1u64..20, any::<u8>(), 0u8..5), 1..40),
    ) {
        const SECTORS: u64 = 9 * 8 + 1;
        const LEN: usize = (SECTORS * SECTOR) as usize;
        let content: Vec<u8> = (0..LEN).map(|i| i as u8).collect();
        let folder = tempfile::tempdir().unwrap();
        let (mut disk, mut oracle) = match base {
            0 => (Disk::zeroed(LEN as u64).unwrap(), vec![0; LEN]),
            1 => (Disk::from_bytes(content.clone().into()).unwrap(), content),
            _ => {
                let path = folder.path().join("disk");
                std::fs::write(&path, &content).unwrap();
                let part = |offset: u64, bytes: u64| FilePart { path: path.clone(), offset, bytes };
                let middle = 13 * SECTOR;
                let parts = [part(0, middle), part(middle, LEN as u64 - middle)];
                let disk = if base == 2 { Disk::open(&path, None) } else { Disk::open_parts(&parts, [1; 32]) };
                (disk.unwrap(), content)
            }
        };
        let before = disk.clone();
        let pool = Pool::default();
        let mut touched = BTreeSet::new();
        for (first, sectors, value, kind) in steps {
            let range = (first * SECTOR) as usize..((first + sectors) * SECTOR) as usize;
            if kind == 0 {
                let mut buf = vec![1; range.len()];
                disk.read(first * SECTOR, &mut buf);
                let expected: Vec<u8> = range.map(|i| oracle.get(i).copied().unwrap_or(0)).collect();
                prop_assert_eq!(buf, expected);
                continue;
            }
            if kind == 1 {
                disk.moment(&pool);
            }
            let range = range.start.min(LEN)..range.end.min(LEN);
            let sectors = range.len() as u64 / SECTOR;
            let value = if kind == 3 { 0 } else { value };
            if sectors == 0 {
                continue;
            }
            touched.extend(first / 8..(first + sectors).div_ceil(8));
            match kind {
                2 => disk.write(first * SECTOR, &vec![value; range.len()]),
                3 => { disk.complete(&[zeroes(&disk, first, sectors, true)]); }
                _ => { disk.complete(&[fill(&disk, first, &vec![value; sectors as usize])]); }
            }
            oracle[range].fill(value);
        }
        prop_assert_eq!(disk.written_blocks(), touched.clone());
        let mut buf = vec![0; LEN];
        disk.read(0, &mut buf);
        prop_assert_eq!(&buf, &oracle);
        prop_assert!(before.written_blocks().is_empty(), "later writes do not show in an earlier clone");
        oracle.resize(10 * BLOCK as usize, 0);
        let (blocks, _) = oracle.as_chunks::<{ BLOCK as usize }>();
        let leaf = |&block: &u64| (block, PageHash::of(&blocks[block as usize]));
        // In the hash of the last block, bytes beyond the end of the disk are zero.
        prop_assert_eq!(disk.content.sum(), LeafSum::of(touched.iter().map(leaf)));
    }
}

#[test]
fn sizes_and_files_are_checked() {
    assert!(Disk::zeroed(0).is_err());
    assert!(Disk::zeroed(513).is_err());
    assert!(Disk::zeroed(DISK_BYTES_MAX + 512).is_err());
    let error = Disk::open(Path::new("/nonexistent/disk"), None).unwrap_err();
    assert_eq!(error.to_string(), "cannot open disk image /nonexistent/disk");
    let odd = Disk::zeroed(4096 + 512).unwrap().with_sectors(SectorSize::Bytes4096);
    assert_eq!(
        odd.unwrap_err().to_string(),
        "a disk of 4608 bytes is not a whole number of sectors of 4096 bytes"
    );
    assert_eq!(Disk::zeroed(8192).unwrap().with_sectors(SectorSize::Bytes4096).unwrap().len(), 8192);
}

/// A written block counts as written whatever its content is, and whether or not moments are taken between the writes.
#[test]
fn written_blocks_do_not_depend_on_moments() {
    let changes = |disk: &Disk| {
        [
            fill(disk, 0, &[0; 8]),
            zeroes(disk, 8, 8, true),
            zeroes(disk, 16, 8, false),
            zeroes(disk, 25, 2, false),
            fill(disk, 32, &[1]),
        ]
    };
    let (mut disk, mut observed) = (Disk::zeroed(1 << 20).unwrap(), Disk::zeroed(1 << 20).unwrap());
    for change in changes(&disk) {
        disk.complete(std::slice::from_ref(&change));
        observed.complete(&[change]);
        observed.digest();
        observed.moment(&Pool::default());
    }
    assert_eq!(disk.written_blocks(), BTreeSet::from([0, 1, 4]));
    assert_eq!(observed.written_blocks(), disk.written_blocks());
    assert_eq!(observed.digest(), disk.digest());
}

#[test]
fn a_base_of_parts_reads_as_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let (first, second) = (file("first", &[1; 1024]), file("second", &[2; 700]));
    let part = |path: &std::path::Path, offset, bytes| FilePart { path: path.to_owned(), offset, bytes };
    // The second part is longer than its file. The first and the third part are from the same file.
    let parts = [part(&first, 512, 512), part(&second, 0, 1024), part(&first, 0, 1024)];
    let whole = [&[1; 512][..], &[2; 700], &[0; 324], &[1; 1024]].concat();
    let mut disk = Disk::open_parts(&parts, [7; 32]).unwrap();
    assert_eq!((disk.len(), disk.base_digest()), (2560, [7; 32]));
    for (offset, len) in [(0, 2560), (500, 30), (1200, 100), (1536, 1), (511, 1026), (2559, 1), (2500, 200)] {
        let mut read = vec![9; len];
        disk.read(offset, &mut read);
        let end = (offset as usize + len).min(whole.len());
        let mut expected = whole[offset as usize..end].to_vec();
        expected.resize(len, 0);
        assert_eq!(read, expected, "{len} bytes at {offset}");
    }
    disk.write(600, b"written");
    let mut read = [0; 9];
    disk.read(599, &mut read);
    assert_eq!(&read, b"\x02written\x02");
    assert!(Disk::open_parts(&[part(&first, 0, 1000)], [0; 32]).is_err(), "a part without whole sectors");
    assert!(Disk::open_parts(&[part(&folder.path().join("none"), 0, 512)], [0; 32]).is_err());
}
