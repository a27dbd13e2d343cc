//! Tests of whole explorations whose results arrive in any order, and which are killed and resumed.

use super::*;
use crate::coverage::statistics::{Findability, Subtree};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_order_of_results_does_not_matter(branches in 0..120u64, workers in 1..9usize, dice: u64) {
        let (_, one) = explore(branches, 1, 0, None, usize::MAX);
        let (tree, many) = explore(branches, workers, dice, None, usize::MAX);
        prop_assert_eq!(one.digest(), many.digest());
        prop_assert_eq!((many.branches(), many.stray()), (branches, None));
        prop_assert_eq!(many.subtrees().len() as u64, tree.subtrees());
        for finding in many.findings() {
            let of = |(subtree, cost): (&u64, &Cost)| match finding.tally.subtrees.get(subtree) {
                Some(hit) => Subtree { time: hit.until.cpu_ns, hit: true },
                None => Subtree { time: cost.cpu_ns, hit: false },
            };
            let one_by_one = Findability::of(many.subtrees().iter().map(of));
            prop_assert_eq!(many.findability(&finding.tally, Cost::cpu_ns), one_by_one);
        }
        for (number, branch) in (0..).zip(tree.branches()) {
            prop_assert_eq!(many.subtree_of(number), Some(branch.subtree));
        }
        // Executed instructions are recorded, but do not take part in the comparison.
        if branches > 0 {
            prop_assert_ne!(one.totals().executed, 0);
        }
    }

    #[test]
    fn a_shorter_exploration_is_a_prefix(branches in 1..120u64, cut: prop::sample::Index, dice: u64) {
        let shorter = cut.index(branches as usize) as u64;
        let run = written(&[]);
        let mut journal = resumed(run.path());
        let (_, long) = explore(branches, 5, dice, Some(&mut journal), usize::MAX);
        let (_, short) = explore(shorter, 3, 1, None, usize::MAX);
        for n in 0..=shorter {
            prop_assert_eq!(short.digest_at(n), long.digest_at(n));
        }
        prop_assert!(long.digest_at(shorter).is_some() && short.digest_at(shorter + 1).is_none());
        prop_assert_ne!(long.digest_at(shorter + 1), long.digest_at(shorter));
        // Reading the folder gives the same results.
        let reading = Reading::open(run.path()).unwrap();
        prop_assert_eq!(reading.merged(shorter).unwrap().digest(), short.digest());
        prop_assert_eq!(reading.merged(u64::MAX).unwrap().digest(), long.digest());
        let again = reading.merged(u64::MAX).unwrap();
        prop_assert_eq!(again.totals(), long.totals());
    }

    /// An exploration that was killed several times, at any byte, has the same result as an uninterrupted one.
    #[test]
    fn killed_and_resumed(
        branches in 1..80u64, kills in prop::collection::vec((0..40usize, 0..700u64, any::<u64>()), 1..4),
    ) {
        let (_, whole) = explore(branches, 4, 0, None, usize::MAX);
        let run = written(&[]);
        for (most, lost, dice) in kills {
            let mut journal = resumed(run.path());
            explore(branches, 4, dice, Some(&mut journal), most);
            drop(journal);
            let file = fs::OpenOptions::new().write(true).open(super::branches(run.path())).unwrap();
            let length = file.metadata().unwrap().len();
            file.set_len(length.saturating_sub(lost)).unwrap();
        }
        let mut journal = resumed(run.path());
        let (_, resumed) = explore(branches, 3, 9, Some(&mut journal), usize::MAX);
        prop_assert_eq!(resumed.digest(), whole.digest());
        let end = resumed.end(EndReason::Branches, 1);
        journal.finish(&end).unwrap();
        let reading = Reading::open(run.path()).unwrap();
        prop_assert_eq!(reading.end(), Some(&end));
        prop_assert_eq!(reading.merged(u64::MAX).unwrap().digest().to_hex().to_string(), end.digest);
        prop_assert_eq!(reading.len(), branches);
    }
}
