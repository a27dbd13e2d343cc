//! Names of models, i.e. of the kinds of objects that servers implement, and the initial values of the models' keys.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::line::make_exact;

/// Model of the object behind each key of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ModelKind {
    /// A single value that can be read and written.
    Register,
    /// A register with compare-and-set.
    Cas,
    /// A key of a key-value store: a `cas` that can also be deleted. A deleted key has the value null.
    Kv,
    /// A queue, first in, first out.
    Queue,
    /// A set.
    Set,
    /// A lock, which at most one process can hold.
    Lock,
}

impl ModelKind {
    /// Returns the name that world files use.
    pub(super) fn name(self) -> &'static str {
        match self {
            ModelKind::Register => "register",
            ModelKind::Cas => "cas",
            ModelKind::Kv => "kv",
            ModelKind::Queue => "queue",
            ModelKind::Set => "set",
            ModelKind::Lock => "lock",
        }
    }
}

impl fmt::Display for ModelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Model and the initial value of its keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Form")]
pub struct Spec {
    model: ModelKind,
    initial: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    model: ModelKind,
    #[serde(default)]
    initial: Value,
}

/// Error for an invalid initial value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoInitial {
    /// The model has no initial value.
    #[error("a {0} has no initial value; only a register and a cas have one")]
    Model(ModelKind),
    /// A number in the value is too large to be exact.
    #[error("the initial value has a number that is not exact; write it as a text")]
    Inexact,
}

impl Spec {
    /// Returns the model with this initial value for each key. Returns an error if the model has no initial value, or
    /// if a number in the value cannot be represented exactly.
    pub(super) fn with_initial(model: ModelKind, mut initial: Value) -> Result<Spec, NoInitial> {
        if !initial.is_null() && !matches!(model, ModelKind::Register | ModelKind::Cas) {
            return Err(NoInitial::Model(model));
        }
        if !make_exact(&mut initial) {
            return Err(NoInitial::Inexact);
        }
        Ok(Spec { model, initial })
    }

    /// Returns the model.
    pub(super) fn kind(&self) -> ModelKind {
        self.model
    }

    /// Returns the initial value of each key.
    pub(super) fn initial(&self) -> &Value {
        &self.initial
    }
}

impl TryFrom<Form> for Spec {
    type Error = NoInitial;

    fn try_from(Form { model, initial }: Form) -> Result<Spec, NoInitial> {
        Spec::with_initial(model, initial)
    }
}
