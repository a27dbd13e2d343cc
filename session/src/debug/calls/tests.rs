use super::*;

/// Memory of a caller at address 0x1000, and its descriptor 3.
struct Program(Vec<u8>);

impl Caller for Program {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let rest = address.checked_sub(0x1000).and_then(|at| self.0.get(at as usize..)).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        count
    }
    fn descriptor(&self, number: u32) -> Option<String> {
        (number == 3).then(|| "/etc/file".to_owned())
    }
}

/// Returns a call as `strace` prints it.
fn shown(number: u64, values: [u64; ARGUMENTS], result: i64, program: &Program) -> String {
    let begun = Begun::new(number, values, 32, program);
    let ended = begun.end(result as u64, program);
    format!("{}({}) = {}", begun.name, ended.arguments.join(", "), ended.result)
}

#[test]
fn calls_are_shown_with_arguments_and_results() {
    let mut memory = vec![0; 256];
    memory[..10].copy_from_slice(b"/etc/file\0");
    memory[16..29].copy_from_slice(b"a\"\r\n\x011\x1b[2Jend");
    memory[64..72].copy_from_slice(&[2, 0, 0x18, 0xeb, 10, 0, 0, 1]);
    memory[96..108].copy_from_slice(&[1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
    let program = Program(memory);
    let shown = |number, values, result| shown(number, values, result, &program);
    for (number, values, result, expected) in [
        (
            257,
            [-100_i64 as u64, 0x1000, 0o2_000_101, 0o644, 0, 0],
            3,
            "openat(AT_FDCWD, \"/etc/file\", O_WRONLY|O_CREAT|O_CLOEXEC, 0644) = 3</etc/file>",
        ),
        (257, [3, 0x1000, 0, 0, 0, 0], -2, "openat(3</etc/file>, \"/etc/file\", O_RDONLY) = -1 ENOENT"),
        (0, [3, 0x1010, 100, 0, 0, 0], 13, "read(3</etc/file>, \"a\\\"\\r\\n\\0011\\33[2Jend\", 100) = 13"),
        (0, [3, 0x1010, 100, 0, 0, 0], -11, "read(3</etc/file>, 0x1010, 100) = -1 EAGAIN"),
        (
            1,
            [9, 0x1000, 100, 0, 0, 0],
            100,
            "write(9, \"/etc/file\\0\\0\\0\\0\\0\\0\\0a\\\"\\r\\n\\0011\\33[2Jend\\0\\0\\0\"..., 100) = 100",
        ),
        (1, [3, 0x9000, 5, 0, 0, 0], -14, "write(3</etc/file>, 0x9000 (unmapped), 5) = -1 EFAULT"),
        (42, [3, 0x1040, 16, 0, 0, 0], 0, "connect(3</etc/file>, {AF_INET 10.0.0.1:6379}, 16) = 0"),
        (42, [3, 0x1040, 3, 0, 0, 0], 0, "connect(3</etc/file>, {AF_INET \"\\30\"}, 3) = 0"),
        (
            232,
            [3, 0x1060, 8, -1_i64 as u64, 0, 0],
            1,
            "epoll_wait(3</etc/file>, [{EPOLLIN, data=0x7}], 8, -1) = 1",
        ),
        (202, [0x7000, 128, 2, 0, 0, 0], -512, "futex(0x7000, FUTEX_WAIT_PRIVATE, 2, NULL) = ? ERESTARTSYS"),
        (202, [0x7000, 129, 1, 0, 0, 0], 1, "futex(0x7000, FUTEX_WAKE_PRIVATE, 1) = 1"),
        (
            9,
            [0, 4096, 3, 0x22, -1_i64 as u64, 0],
            0x7f00_0000,
            "mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, NULL) = 0x7f000000",
        ),
        (72, [3, 3, 0, 0, 0, 0], 2, "fcntl(3</etc/file>, F_GETFL) = 2"),
        (999, [1, 0, 0, 0, 0, 0], -38, "syscall_999(0x1, NULL, NULL, NULL, NULL, NULL) = -1 ENOSYS"),
    ] {
        assert_eq!(shown(number, values, result), expected);
    }
}

/// Whatever a program passes, decoding ends without a panic.
#[test]
fn any_numbers_can_be_decoded() {
    let program = Program((0..=255).cycle().take(9000).collect());
    let numbers = [0, 1, 2, 8, 0x1000, 0x1001, 0x2ff8, u64::MAX, 1 << 63, 0xffff_ffff, 0x7fff_ffff_ffff];
    for call in 0..480 {
        for (n, number) in numbers.iter().enumerate() {
            let other = numbers[(n + 5) % numbers.len()];
            for values in [[*number; 6], [*number, other, *number, other, *number, other]] {
                let begun = Begun::new(call, values, usize::MAX, &program);
                for result in numbers {
                    let _ = begun.end(result, &program);
                }
            }
        }
    }
}
