//! Errors with their causes, as one text.
//!
//! An error's own text never repeats its cause: [`Error::source`] returns the cause. Code that shows an error to a person,
//! or stores its text, therefore goes through [`with_causes`]. A test in `lint/` checks the texts of the errors.

use std::error::Error;
use std::fmt;

/// Text between an error and its cause.
const JOINT: &str = ": ";

/// Returns the text of an error and of all its causes, joined by `": "`. Errors of other libraries often repeat their
/// cause at their end. Such a cause is left out.
pub fn with_causes<'a>(error: &'a (dyn Error + 'static)) -> impl fmt::Display + 'a {
    WithCauses(error)
}

struct WithCauses<'a>(&'a (dyn Error + 'static));

impl fmt::Display for WithCauses<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut effect = self.0.to_string();
        f.write_str(&effect)?;
        let mut next = self.0.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            if !effect.ends_with(&text) {
                f.write_str(JOINT)?;
                f.write_str(&text)?;
                effect = text;
            }
            next = cause.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read {path}")]
    struct Own {
        path: &'static str,
        source: Middle,
    }

    #[derive(Debug, thiserror::Error)]
    #[error("its record {number} is damaged")]
    struct Middle {
        number: u32,
        #[source]
        why: io::Error,
    }

    /// Error of another library, whose text repeats its cause.
    #[derive(Debug)]
    struct Foreign(io::Error);

    impl fmt::Display for Foreign {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "it failed: {}", self.0)
        }
    }

    impl Error for Foreign {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn each_cause_is_told_once() {
        let why = || io::Error::other("no end");
        let own = Own { path: "a/b", source: Middle { number: 7, why: why() } };
        assert_eq!(with_causes(&own).to_string(), "cannot read a/b: its record 7 is damaged: no end");
        assert_eq!(with_causes(&Foreign(why())).to_string(), "it failed: no end");
        assert_eq!(with_causes(&why()).to_string(), "no end");
    }
}
