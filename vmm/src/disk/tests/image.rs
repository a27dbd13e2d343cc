//! Tests of visits of a disk's content.

use super::*;

fn visited(disk: &Disk) -> Vec<(u64, Vec<u8>)> {
    let mut seen = vec![];
    let visit = |offset, content: &[u8]| {
        seen.push((offset, content.to_vec()));
        Ok::<(), ()>(())
    };
    disk.visit_content(visit).unwrap();
    seen
}

/// Writes to blocks of the base, between them and behind them, with zeroes, and in a block that ends with the disk.
#[test]
fn only_blocks_with_content_are_visited() {
    let mut base = vec![0; 5 * BLOCK as usize + 512];
    base[7] = 1;
    base[3 * BLOCK as usize] = 3;
    base[5 * BLOCK as usize + 511] = 5;
    let mut disk = Disk::from_bytes(base.clone().into()).unwrap();
    let seen = visited(&disk);
    assert_eq!(seen.iter().map(|(at, _)| at / BLOCK).collect::<Vec<_>>(), [0, 3, 5]);
    assert_eq!(seen[2].1.len(), 512);
    disk.write(3 * BLOCK, &[0]);
    disk.write(2 * BLOCK + 9, &[2]);
    disk.write(4 * BLOCK, &[0; 9]);
    (base[3 * BLOCK as usize], base[2 * BLOCK as usize + 9]) = (0, 2);
    let seen = visited(&disk);
    assert_eq!(seen.iter().map(|(at, _)| at / BLOCK).collect::<Vec<_>>(), [0, 2, 5]);
    let mut copy = vec![0; base.len()];
    seen.iter().for_each(|(at, bytes)| copy[*at as usize..][..bytes.len()].copy_from_slice(bytes));
    assert!(copy == base);
}

/// A disk of the largest size costs no more than its blocks.
#[test]
fn a_huge_disk_is_visited_at_once() {
    let mut disk = Disk::zeroed(DISK_BYTES_MAX).unwrap();
    assert_eq!(visited(&disk), []);
    disk.write(DISK_BYTES_MAX - 1, &[9]);
    assert_eq!(visited(&disk).len(), 1);
}

#[test]
fn writes_are_unflushed_until_a_flush_covers_them() {
    let mut disk = Disk::zeroed(64 * BLOCK).unwrap();
    assert_eq!(disk.unflushed_writes(), 0);
    // A write of several blocks has several records.
    disk.complete(&[fill(&disk, 0, &[1; 40])]);
    let covers = disk.completed();
    disk.complete(&[fill(&disk, 9, &[2])]);
    assert_eq!(disk.unflushed_writes(), 2);
    disk.flush(covers);
    assert_eq!(disk.unflushed_writes(), 1);
    disk.flush(disk.completed());
    assert_eq!(disk.unflushed_writes(), 0);
}
