//! Errors with their causes, as one text.
//!
//! An error's own text never repeats its cause: [`Error::source`] returns the cause. Code that shows an error to a person,
//! or stores its text, therefore goes through [`with_causes`]. A test in `lint/` checks the texts of the errors.

use std::error::Error;

/// Text between an error and its cause.
const JOINT: &str = ": ";

/// Returns the text of an error and of all its causes, joined by `": "`. Errors of other libraries often repeat their
/// cause at their end. Such a cause is left out.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut effect = error.to_string();
    let (mut all, mut next) = (effect.clone(), error.source());
    while let Some(cause) = next {
        let text = cause.to_string();
        if !effect.ends_with(&text) {
            all += JOINT;
            all += &text;
            effect = text;
        }
        next = cause.source();
    }
    all
}

#[cfg(test)]
mod tests {
    use std::{fmt, io};

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
        assert_eq!(with_causes(&own), "cannot read a/b: its record 7 is damaged: no end");
        assert_eq!(with_causes(&Foreign(why())), "it failed: no end");
        assert_eq!(with_causes(&why()), "no end");
    }
}
