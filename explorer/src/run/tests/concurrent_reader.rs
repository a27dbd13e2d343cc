//! Test that reads a run directory while another process writes to it.

use super::*;

#[test]
fn a_reader_sees_a_prefix_of_the_records() {
    let run = written(&[]);
    let records = row(200);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut journal = resumed(run.path());
            append(&mut journal, &records);
        });
        let mut seen = 0;
        while !writer.is_finished() {
            let read = all(run.path());
            assert_eq!(read, records[..read.len()]);
            assert!(read.len() >= seen, "no record disappears");
            seen = read.len();
        }
    });
    assert_eq!(Reading::open(run.path()).unwrap().len(), 200);
}
