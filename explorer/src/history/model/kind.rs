//! Which models there are, by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::history::line::exact;
use crate::plan::problem::quoted;

/// What the keys of a history are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// One value, read and written.
    Register,
    /// A register with compare-and-set.
    Cas,
    /// A key of a key-value store: a `cas` that can be deleted, and is null then.
    Kv,
    /// A queue, first in, first out.
    Queue,
    /// A set.
    Set,
    /// A lock that one process holds at a time.
    Lock,
}

impl ModelKind {
    /// All of them.
    pub const ALL: [ModelKind; 6] = [Self::Register, Self::Cas, Self::Kv, Self::Queue, Self::Set, Self::Lock];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
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

/// A name that no model has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no model {0}; they are register, cas, kv, queue, set and lock")]
pub struct NoModel(String);

impl FromStr for ModelKind {
    type Err = NoModel;

    fn from_str(name: &str) -> Result<ModelKind, NoModel> {
        ModelKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| NoModel(quoted(name)))
    }
}

/// A model and what its keys start with.
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

/// An initial value that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoInitial {
    /// The model has none.
    #[error("a {0} has no initial value; a register and a cas have")]
    Model(ModelKind),
    /// A number in it cannot be told from its neighbours.
    #[error("the initial value has a number that is not exact; write it as a text")]
    Inexact,
}

impl Spec {
    /// The model, with null or with nothing in it.
    #[must_use]
    pub fn new(model: ModelKind) -> Spec {
        Spec { model, initial: Value::Null }
    }

    /// The model, with this value in each key.
    ///
    /// # Errors
    /// The model has no initial value, or the value is not exact.
    pub fn with_initial(model: ModelKind, initial: Value) -> Result<Spec, NoInitial> {
        if !initial.is_null() && !matches!(model, ModelKind::Register | ModelKind::Cas) {
            return Err(NoInitial::Model(model));
        }
        Ok(Spec { model, initial: exact(initial).ok_or(NoInitial::Inexact)? })
    }

    /// The model.
    #[must_use]
    pub fn kind(&self) -> ModelKind {
        self.model
    }

    /// What its keys start with.
    #[must_use]
    pub fn initial(&self) -> &Value {
        &self.initial
    }
}

impl TryFrom<Form> for Spec {
    type Error = NoInitial;

    fn try_from(Form { model, initial }: Form) -> Result<Spec, NoInitial> {
        Spec::with_initial(model, initial)
    }
}
