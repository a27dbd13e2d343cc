//! Errors of calls. Each is one line.

use everett_input::causes::with_causes;
use everett_session::explore::path_runner::Interrupted;
use everett_session::inside::fork::ForkError;
use everett_session::probes::at_rest::NoValue;
use everett_session::probes::expression::evaluate::Absent;

/// Error of a call.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An argument of the call is invalid.
    #[error("{0}")]
    Argument(String),
    /// The run, the world or the machine has no such thing.
    #[error("{0}")]
    Missing(String),
    /// Memory is not mapped.
    #[error("{0}")]
    Unmapped(String),
    /// The call was interrupted.
    #[error("interrupted")]
    Interrupted,
    /// Everything else.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// Returns the error for the name of a node that is not among `nodes`.
    pub(crate) fn no_node(node: &str, nodes: &[String]) -> Error {
        Error::Missing(format!("no node of this world is named {node:?}; its nodes are {}", nodes.join(", ")))
    }
}

impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Error {
        if error.is::<Interrupted>() || error.to_string() == Interrupted.to_string() {
            return Error::Interrupted;
        }
        Error::Failed(with_causes(error.as_ref()))
    }
}

impl From<everett_inspect::Error> for Error {
    fn from(error: everett_inspect::Error) -> Error {
        let text = with_causes(&error);
        match error {
            everett_inspect::Error::Unmapped(_) => Error::Unmapped(text),
            _ => Error::Failed(text),
        }
    }
}

impl From<NoValue> for Error {
    fn from(error: NoValue) -> Error {
        match error {
            NoValue::Guest(error) => error.into(),
            NoValue::Absent(absent @ Absent::Unmapped) => Error::Unmapped(absent.to_string()),
            NoValue::Absent(absent @ (Absent::NoVariable(_) | Absent::NoMember(_) | Absent::NoElement)) => {
                Error::Missing(absent.to_string())
            }
            NoValue::Absent(absent) => Error::Failed(absent.to_string()),
        }
    }
}

impl From<ForkError> for Error {
    fn from(error: ForkError) -> Error {
        match error {
            ForkError::Interrupted => Error::Interrupted,
            ForkError::Fault(why) => Error::Argument(why.to_string()),
            error => Error::Failed(with_causes(&error)),
        }
    }
}
