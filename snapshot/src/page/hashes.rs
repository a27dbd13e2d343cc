//! Hashes of several pages at once.
//!
//! BLAKE3 hashes a page as a tree: four chunks of 1 KiB, two nodes above them, and the root (BLAKE3 specification, section
//! 2). The chunks of one page fill four lanes of a vector register, and hosts have eight or sixteen. Here, each lane has
//! the same part of another page.

use blake3::IncrementCounter;
use blake3::platform::Platform;

use super::{PAGE, PageBytes, PageHash, is_zero};

/// Number of pages that are hashed at once: the number of lanes of AVX-512.
const AT_ONCE: usize = 16;
/// Minimum number of pages that are faster to hash at once than one by one.
const LEAST: usize = 3;

const CHUNK: usize = 1024;
const CHUNKS: usize = PAGE / CHUNK;
/// Length of the hash of a chunk or node, in bytes.
const HASH: usize = 32;
/// Length of the content of a node: the hashes of the two chunks or nodes below it.
const NODE: usize = 2 * HASH;

/// Initial chaining value (section 2.1), as in SHA-256.
const IV: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// Flags of the compression function (section 2.2).
const CHUNK_START: u8 = 1;
const CHUNK_END: u8 = 2;
const PARENT: u8 = 4;
const ROOT: u8 = 8;

impl PageHash {
    /// Returns the hash of each of these contents, or `None` for those that are all zeroes.
    pub fn of_each_nonzero(contents: &[&PageBytes]) -> Vec<Option<PageHash>> {
        let mut hashes = vec![None; contents.len()];
        let present: Vec<usize> = (0..contents.len()).filter(|&at| !is_zero(contents[at])).collect();
        for positions in present.chunks(AT_ONCE) {
            let pages: Vec<&PageBytes> = positions.iter().map(|&at| contents[at]).collect();
            for (&at, hash) in positions.iter().zip(of_each(&pages)) {
                hashes[at] = Some(hash);
            }
        }
        hashes
    }
}

/// Returns the hashes of at most [`AT_ONCE`] pages.
fn of_each(pages: &[&PageBytes]) -> Vec<PageHash> {
    if pages.len() < LEAST {
        return pages.iter().map(|page| PageHash::of(page)).collect();
    }
    let platform = Platform::detect();
    // The hashes of the chunks with the same number lie side by side, page by page.
    let mut chunks = [[[0; HASH]; AT_ONCE]; CHUNKS];
    for (number, out) in chunks.iter_mut().enumerate() {
        let inputs: Vec<&[u8; CHUNK]> =
            pages.iter().filter_map(|page| page[number * CHUNK..].first_chunk()).collect();
        platform.hash_many(
            &inputs,
            &IV,
            number as u64,
            IncrementCounter::No,
            0,
            CHUNK_START,
            CHUNK_END,
            out.as_flattened_mut(),
        );
    }
    let nodes = |flags: u8, below: [&[[u8; HASH]; AT_ONCE]; 2]| {
        let contents: Vec<[u8; NODE]> = (0..pages.len())
            .map(|page| {
                let mut content = [0; NODE];
                content[..HASH].copy_from_slice(&below[0][page]);
                content[HASH..].copy_from_slice(&below[1][page]);
                content
            })
            .collect();
        let inputs: Vec<&[u8; NODE]> = contents.iter().collect();
        let mut out = [[0; HASH]; AT_ONCE];
        platform.hash_many(&inputs, &IV, 0, IncrementCounter::No, flags, 0, 0, out.as_flattened_mut());
        out
    };
    let [first, second, third, fourth] = &chunks;
    let (left, right) = (nodes(PARENT, [first, second]), nodes(PARENT, [third, fourth]));
    nodes(PARENT | ROOT, [&left, &right])[..pages.len()].iter().map(|hash| PageHash(*hash)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns pages of which each differs in each chunk. Every fifth is zero.
    fn pages(count: usize) -> Vec<PageBytes> {
        let byte = |page: usize, at: usize| (page * 37 + at * (at >> 10 | 1)) as u8;
        let page = |page| match page % 5 {
            4 => [0; PAGE],
            _ => std::array::from_fn(|at| byte(page, at)),
        };
        (0..count).map(page).collect()
    }

    #[test]
    fn pages_have_the_same_hashes_together_as_alone() {
        for count in (0..40).chain([64, 100]) {
            let pages = pages(count);
            let contents: Vec<&PageBytes> = pages.iter().collect();
            let alone: Vec<_> = pages.iter().map(PageHash::of_nonzero).collect();
            assert_eq!(PageHash::of_each_nonzero(&contents), alone, "{count} pages");
        }
    }
}
