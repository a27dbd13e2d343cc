//! Comparison of the processes that Everett reads from a container's machine with the machine's own `/proc`.

use super::asking::ONE_SECOND;
use super::{explored, world_of_one};
use crate::support::{everett, json_lines};

/// A program whose threads and mappings come and go.
const SOURCE: &str = r#"#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *argument) {
    prctl(PR_SET_NAME, "a) (b");
    char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page[4096] = 1;
    usleep(7000);
    mprotect(page, 4096, PROT_READ);
    usleep(7000);
    munmap(page, 8192);
    return argument;
}
int main(void) {
    for (;;) {
        pthread_t threads[3];
        for (int n = 0; n < 3; n++)
            pthread_create(&threads[n], 0, work, 0), usleep(1000);
        if (fork() == 0) {
            usleep(5000);
            _exit(0);
        }
        /* The process that has just begun ends, and stays a zombie until the next round. */
        while (waitpid(-1, 0, WNOHANG) > 0)
            ;
        for (int n = 0; n < 3; n++)
            pthread_join(threads[n], 0);
    }
}
"#;

#[test]
fn a_busy_program_of_musl_is_as_its_machine_says_at_random_instants() {
    let folder = tempfile::tempdir().unwrap();
    let run = explored(folder.path(), SOURCE, &world_of_one(ONE_SECOND), 1, 0);
    let compared = everett(&["--json", "ps", &run, "b0", "--compare", "--instants", "10"]);
    let lines = json_lines(&compared);
    let (sum, machines) = lines.split_last().unwrap();
    assert_eq!((sum["machines"].as_u64(), sum["differences"].as_u64()), (Some(10), Some(0)), "{lines:?}");
    // The numbers of threads and mappings are not always the same.
    for key in ["stacks", "mappings"] {
        let number = |line: &serde_json::Value| line[key].as_u64();
        assert!(machines.iter().any(|line| number(line) != number(&machines[0])), "{key}: {lines:?}");
    }
}
