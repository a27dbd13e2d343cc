//! The shell of the user who runs this program.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rustix::fs::{Access, access};

/// Maximum number of bytes to read of `/etc/passwd`.
const PASSWD_BYTES_MAX: u64 = 16 << 20;

/// Shells in the order in which they are tried, after the user's own.
const SHELLS: [&[&str]; 8] = [
    &["/bin/bash"],
    &["/usr/bin/bash"],
    &["/bin/sh"],
    &["/usr/bin/sh"],
    &["/bin/ash"],
    &["/bin/busybox", "sh"],
    &["/usr/bin/busybox", "sh"],
    &["/busybox/sh"],
];

/// Returns the command line of the user's shell, or of another one if the user's cannot be executed.
pub(crate) fn shell() -> Result<Vec<String>, String> {
    let mut passwd = Vec::new();
    // A machine without this file has shells, too.
    if let Ok(file) = File::open("/etc/passwd") {
        let _ = file.take(PASSWD_BYTES_MAX).read_to_end(&mut passwd);
    }
    let passwd = String::from_utf8_lossy(&passwd);
    let own = of_user(&passwd, rustix::process::getuid().as_raw()).map(|shell| vec![shell.to_owned()]);
    let others = SHELLS.iter().map(|words| words.iter().map(|word| (*word).to_owned()).collect());
    let is_there = |words: &Vec<String>| access(Path::new(&words[0]), Access::EXEC_OK).is_ok();
    own.into_iter()
        .chain(others)
        .find(is_there)
        .ok_or_else(|| String::from("this machine has no shell; give a command after --"))
}

/// Returns the shell of a user in the text of `/etc/passwd` (passwd(5)). `None` for shells that refuse a login.
fn of_user(passwd: &str, uid: u32) -> Option<&str> {
    let uid = uid.to_string();
    let shells = passwd.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.len() == 7 && fields[2] == uid).then(|| fields[6])
    });
    let login =
        |shell: &&str| shell.starts_with('/') && !shell.ends_with("/nologin") && !shell.ends_with("/false");
    shells.take(1).find(login)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_is_that_of_the_user() {
        let passwd =
            "root:x:0:0:root:/root:/bin/zsh\nhalf:x:7\nredis:x:100:101::/var/lib/redis:/usr/sbin/nologin\n";
        assert_eq!(of_user(passwd, 0), Some("/bin/zsh"));
        assert_eq!(of_user(passwd, 100), None);
        assert_eq!(of_user(passwd, 7), None);
        assert!(shell().unwrap()[0].starts_with('/'));
    }
}
