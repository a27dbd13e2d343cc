//! The command line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use crate::Failure;

/// What to start, and how.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Environment, in the order given; a later value replaces an earlier one.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// User with an optional group, by name or number; root if `None`.
    pub(crate) user: Option<String>,
    /// Working folder; `/` if `None`.
    pub(crate) cwd: Option<PathBuf>,
    /// Volumes: each one's number on the disk of volumes, and its path.
    pub(crate) volumes: Vec<(u32, PathBuf)>,
    /// Program and arguments.
    pub(crate) argv: Vec<OsString>,
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
        };
        assert_eq!(options, wanted);
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
        ] {
            assert_eq!(parse(words).unwrap_err(), format!("wrong use of the shim: {what}"));
        }
    }
}
