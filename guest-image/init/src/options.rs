//! The command lines of this program.

/// Request on the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Options {
    /// Supervise a program, which is the service.
    Run {
        /// Name of the service.
        unit: String,
        /// True if the supervisor, and not the service, behaves like process 1 of a container.
        init: bool,
        /// Program of the service, and its arguments.
        argv: Vec<String>,
    },
    /// Become the service. The supervisor starts its child with this request.
    Become {
        /// True if the supervisor, and not the service, behaves like process 1 of a container.
        init: bool,
        /// Program of the service, and its arguments.
        argv: Vec<String>,
    },
    /// Send a signal to a service.
    Signal {
        /// Name of the service.
        unit: String,
        /// Number of the signal.
        number: i32,
    },
}

/// First word of the command line of [`Options::Become`].
pub(crate) const BECOME: &str = "become";
/// Option that makes the supervisor behave like process 1 of a container.
pub(crate) const INIT: &str = "--init";

impl Options {
    pub(crate) fn parse(words: &[String]) -> Result<Options, String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let program = |argv: &[&str]| argv.iter().map(|&word| word.to_owned()).collect();
        match words.as_slice() {
            ["run", unit, "--", argv @ ..] if is_unit(unit) && !argv.is_empty() => {
                Ok(Options::Run { unit: (*unit).to_owned(), init: false, argv: program(argv) })
            }
            ["run", unit, INIT, "--", argv @ ..] if is_unit(unit) && !argv.is_empty() => {
                Ok(Options::Run { unit: (*unit).to_owned(), init: true, argv: program(argv) })
            }
            [BECOME, "--", argv @ ..] if !argv.is_empty() => {
                Ok(Options::Become { init: false, argv: program(argv) })
            }
            [BECOME, INIT, "--", argv @ ..] if !argv.is_empty() => {
                Ok(Options::Become { init: true, argv: program(argv) })
            }
            ["signal", unit, number] if is_unit(unit) => match number.parse() {
                Ok(number) => Ok(Options::Signal { unit: (*unit).to_owned(), number }),
                Err(_) => Err(format!("wrong use of the init program: {number:?} is no signal")),
            },
            _ => Err(String::from(
                "wrong use of the init program: expected run UNIT [--init] -- PROGRAM or signal UNIT NUMBER",
            )),
        }
    }
}

/// True if the name is safe as a part of a file name.
fn is_unit(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn requests_are_read() {
        let argv = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let run = |init| Options::Run { unit: "web-1".to_owned(), init, argv: argv(&["p", "--init"]) };
        assert_eq!(parse("run web-1 -- p --init"), Ok(run(false)));
        assert_eq!(parse("run web-1 --init -- p --init"), Ok(run(true)));
        assert_eq!(parse("become -- p"), Ok(Options::Become { init: false, argv: argv(&["p"]) }));
        assert_eq!(parse("become --init -- p"), Ok(Options::Become { init: true, argv: argv(&["p"]) }));
        assert_eq!(parse("signal web-1 15"), Ok(Options::Signal { unit: "web-1".to_owned(), number: 15 }));
    }

    #[test]
    fn wrong_requests_are_refused() {
        for line in [
            "",
            "run",
            "run a",
            "run a --",
            "run a/b -- p",
            "become --",
            "signal a",
            "signal ../a 15",
            "signal a TERM",
        ] {
            assert!(parse(line).unwrap_err().starts_with("wrong use of the init program: "), "{line}");
        }
    }
}
