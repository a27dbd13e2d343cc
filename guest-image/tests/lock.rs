//! Test of a lock, i.e. a file that pins package versions. The path of the lock is a bare file name. The test is a
//! program of its own, because it changes the current folder.

use std::path::Path;

use everett_guest_image::lock::Lock;

#[test]
fn a_lock_is_written_to_the_current_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    let (bare, mut lock) = (Path::new("world.lock"), Lock::new("bookworm"));
    lock.write(bare).unwrap();
    assert_eq!(Lock::read(&folder.path().join(bare)).unwrap().as_ref(), Some(&lock));
    // The second write replaces an existing lock.
    lock.requested.push("redis-server".to_owned());
    lock.write(bare).unwrap();
    assert_eq!(Lock::read(bare).unwrap(), Some(lock));
}
