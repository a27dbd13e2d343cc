//! Lists with a maximum length, for reading untrusted files. A list that is too long is refused while it is read.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

/// List of at most `MOST` values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct BoundedList<T, const MOST: usize>(pub(super) Vec<T>);

impl<T: Serialize, const MOST: usize> Serialize for BoundedList<T, MOST> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for BoundedList<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(List(PhantomData))
    }
}

struct List<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for List<T, MOST> {
    type Value = BoundedList<T, MOST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {MOST} values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self::Value, A::Error> {
        // Reserve room for at most 1,024 values, because the file may claim a false length. The list grows as values
        // are read.
        let room = values.size_hint().unwrap_or(0).min(MOST).min(1 << 10);
        let mut list = Vec::with_capacity(room);
        while let Some(value) = values.next_element()? {
            if list.len() >= MOST {
                return Err(A::Error::invalid_length(list.len() + 1, &self));
            }
            list.push(value);
        }
        Ok(BoundedList(list))
    }
}
