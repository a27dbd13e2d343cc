//! The command line of the shim.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use crate::Failure;

/// Program to start, with the settings of its process.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Environment variables in the order of the command line. A later value replaces an earlier one.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// User with an optional group, by name or number. `None` stands for root.
    pub(crate) user: Option<String>,
    /// Working folder. `None` stands for `/`.
    pub(crate) cwd: Option<PathBuf>,
    /// Volumes: the name (a number) of the volume's folder on the volume disk, and the mount point.
    pub(crate) volumes: Vec<(u32, PathBuf)>,
    /// Files and folders of the host to mount.
    pub(crate) binds: Vec<Bind>,
    /// Filesystems in memory (tmpfs): mount options and mount point.
    pub(crate) tmpfs: Vec<(OsString, PathBuf)>,
    /// Resource limits: name, soft limit, hard limit. `None` means unlimited.
    pub(crate) ulimits: Vec<(String, Option<u64>, Option<u64>)>,
    /// Kernel settings (sysctl) by name.
    pub(crate) sysctls: Vec<(String, OsString)>,
    /// Changes of the set of capabilities, in order. True adds the capability, false removes it.
    pub(crate) capabilities: Vec<(bool, String)>,
    /// Program and arguments.
    pub(crate) argv: Vec<OsString>,
}

/// File or folder of the host, which the shim mounts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bind {
    /// Number of the mount. If it is writable, its content is in the volume `bind-NUMBER`.
    pub(crate) number: u32,
    /// True if programs may change the content.
    pub(crate) writable: bool,
    /// Path in the guest to which Everett has copied the content.
    pub(crate) from: PathBuf,
    /// Path at which programs find the content.
    pub(crate) path: PathBuf,
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = OsString>) -> Result<Options, Failure> {
        let mut options = Options::default();
        let wrong = |what: &str| Failure::new(format!("wrong use of the shim: {what}"));
        loop {
            let word = words.next().ok_or_else(|| wrong("no program"))?;
            let name = word.to_str().ok_or_else(|| wrong("an option that is not text"))?;
            if name == "--" {
                break;
            }
            let value = words.next().ok_or_else(|| wrong(&format!("{name} needs a value")))?;
            match name {
                "--env" => {
                    options.env.push(split(&value, b'=').ok_or_else(|| wrong("--env needs NAME=VALUE"))?)
                }
                "--user" => options.user = Some(value.to_string_lossy().into_owned()),
                "--cwd" => options.cwd = Some(value.into()),
                "--volume" => {
                    let (number, path) =
                        split(&value, b':').ok_or_else(|| wrong("--volume needs NUMBER:PATH"))?;
                    let number = number.to_str().and_then(|number| number.parse().ok());
                    let number = number.ok_or_else(|| wrong("--volume needs a number"))?;
                    options.volumes.push((number, path.into()));
                }
                "--bind" => options
                    .binds
                    .push(bind(&value).ok_or_else(|| wrong("--bind needs NUMBER:MODE:FROM:PATH"))?),
                "--tmpfs" => {
                    let (how, path) =
                        split(&value, b':').ok_or_else(|| wrong("--tmpfs needs OPTIONS:PATH"))?;
                    options.tmpfs.push((how, path.into()));
                }
                "--ulimit" => options
                    .ulimits
                    .push(ulimit(&value).ok_or_else(|| wrong("--ulimit needs NAME=SOFT:HARD"))?),
                "--sysctl" => {
                    let (name, value) =
                        split(&value, b'=').ok_or_else(|| wrong("--sysctl needs NAME=VALUE"))?;
                    options.sysctls.push((name.to_string_lossy().into_owned(), value));
                }
                "--cap-add" | "--cap-drop" => {
                    options.capabilities.push((name == "--cap-add", value.to_string_lossy().into_owned()));
                }
                other => return Err(wrong(&format!("there is no option {other}"))),
            }
        }
        options.argv = words.collect();
        if options.argv.first().is_none_or(|program| program.is_empty()) {
            return Err(wrong("no program"));
        }
        Ok(options)
    }
}

fn bind(text: &OsStr) -> Option<Bind> {
    let (number, rest) = split(text, b':')?;
    let (mode, rest) = split(&rest, b':')?;
    let (from, path) = split(&rest, b':')?;
    let number = number.to_str()?.parse().ok()?;
    Some(Bind { number, writable: mode == "rw", from: from.into(), path: path.into() })
}

fn ulimit(text: &OsStr) -> Option<(String, Option<u64>, Option<u64>)> {
    let (name, limits) = text.to_str()?.split_once('=')?;
    let (soft, hard) = limits.split_once(':')?;
    let limit = |text: &str| match text {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    };
    Some((name.to_owned(), limit(soft)?, limit(hard)?))
}

fn split(text: &OsStr, at: u8) -> Option<(OsString, OsString)> {
    let bytes = text.as_bytes();
    let place = bytes.iter().position(|&byte| byte == at)?;
    let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    Some((part(&bytes[..place]), part(&bytes[place + 1..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options, String> {
        Options::parse(words.iter().map(OsString::from)).map_err(|failure| failure.text)
    }

    #[test]
    fn options_end_before_the_program() {
        let options = parse(&[
            "--env", "A=b=c", "--env", "B=", "--user", "x:y", "--cwd", "/w", "--volume", "3:/a:b", "--",
            "--env", "-x",
        ])
        .unwrap();
        let env = [("A", "b=c"), ("B", "")].map(|(name, value)| (name.into(), value.into()));
        let wanted = Options {
            env: env.to_vec(),
            user: Some("x:y".to_owned()),
            cwd: Some("/w".into()),
            volumes: vec![(3, "/a:b".into())],
            argv: vec!["--env".into(), "-x".into()],
            ..Options::default()
        };
        assert_eq!(options, wanted);
    }

    #[test]
    fn options_of_compose_files() {
        let options = parse(&[
            "--bind",
            "0:ro:/from:/to:x",
            "--tmpfs",
            "size=1m:/t",
            "--ulimit",
            "nofile=1:unlimited",
            "--sysctl",
            "net.a=1 2",
            "--cap-drop",
            "ALL",
            "--cap-add",
            "CHOWN",
            "--",
            "p",
        ])
        .unwrap();
        let bind = Bind { number: 0, writable: false, from: "/from".into(), path: "/to:x".into() };
        assert_eq!(options.binds, [bind]);
        assert_eq!(options.tmpfs, [("size=1m".into(), "/t".into())]);
        assert_eq!(options.ulimits, [("nofile".to_owned(), Some(1), None)]);
        assert_eq!(options.sysctls, [("net.a".to_owned(), "1 2".into())]);
        assert_eq!(options.capabilities, [(false, "ALL".to_owned()), (true, "CHOWN".to_owned())]);
    }

    #[test]
    fn wrong_options_are_named() {
        for (words, what) in [
            (&[][..], "no program"),
            (&["--"], "no program"),
            (&["--", ""], "no program"),
            (&["--user"], "--user needs a value"),
            (&["--what", "x", "--", "y"], "there is no option --what"),
            (&["--env", "x", "--", "y"], "--env needs NAME=VALUE"),
            (&["--volume", "x:/a", "--", "y"], "--volume needs a number"),
            (&["--bind", "0:ro:/a", "--", "y"], "--bind needs NUMBER:MODE:FROM:PATH"),
            (&["--ulimit", "nofile=x:1", "--", "y"], "--ulimit needs NAME=SOFT:HARD"),
        ] {
            assert_eq!(parse(words).unwrap_err(), format!("wrong use of the shim: {what}"));
        }
    }
}
