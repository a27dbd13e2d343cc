//! Types of values in a line of a fault plan: numbers, durations, distributions, groups of nodes, and links.

use everett_fault::{Distribution, Group, Links};
use everett_input::text::quoted;
use everett_input::units::{parse_duration_ns, write_duration_ns};

use super::fields::{FieldPath, Fields, Value};
use super::json::Json;
use crate::plan::error::Problem;

/// Maximum length of a duration's text, in bytes.
const DURATION_BYTES_MAX: usize = 40;

/// Duration in nanoseconds. JSON has it as a string with a unit, or as a number of nanoseconds.
pub(super) struct Ns(pub(super) u64);

impl Value for Ns {
    fn stand_in() -> Ns {
        Ns(0)
    }

    fn read(json: &Json, place: &mut FieldPath<'_>) -> Ns {
        let ns = match json {
            Json::Whole(ns) => whole(*ns),
            Json::Text(text) if text.trim_start().starts_with('-') => Err(Problem::Negative),
            Json::Text(text) => duration(text),
            _ => Err(Problem::Type { expected: "a duration", found: json.kind() }),
        };
        Ns(place.value(ns).unwrap_or(0))
    }

    fn write(&self) -> Json {
        Json::Text(write_duration_ns(self.0))
    }
}

/// Duration with a sign, in nanoseconds.
pub(super) struct SignedNs(pub(super) i64);

impl Value for SignedNs {
    fn stand_in() -> SignedNs {
        SignedNs(0)
    }

    fn read(json: &Json, place: &mut FieldPath<'_>) -> SignedNs {
        let ns = match json {
            Json::Whole(ns) => Ok(*ns),
            Json::Text(text) => match text.trim_start().strip_prefix('-') {
                Some(rest) => duration(rest).map(|ns| -i128::from(ns)),
                None => duration(text).map(i128::from),
            },
            _ => Err(Problem::Type { expected: "a duration", found: json.kind() }),
        };
        let ns = ns.and_then(|ns| i64::try_from(ns).map_err(|_| Problem::TooLarge));
        SignedNs(place.value(ns).unwrap_or(0))
    }

    fn write(&self) -> Json {
        let sign = if self.0 < 0 { "-" } else { "" };
        Json::Text(format!("{sign}{}", write_duration_ns(self.0.unsigned_abs())))
    }
}

fn duration(text: &str) -> Result<u64, Problem> {
    // Refuse these texts before they are parsed. A parser's error quotes its text unchanged, but must fit on one line.
    if text.len() > DURATION_BYTES_MAX || text.chars().any(|c| c.is_control() || c == '"') {
        return Err(Problem::NoDuration(quoted(text)));
    }
    Ok(parse_duration_ns(text)?)
}

fn whole<T: TryFrom<i128>>(number: i128) -> Result<T, Problem> {
    T::try_from(number).map_err(|_| if number < 0 { Problem::Negative } else { Problem::TooLarge })
}

impl FieldPath<'_> {
    fn value<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|what| self.fail(what)).ok()
    }
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Value for $type {
            fn stand_in() -> $type {
                0
            }

            fn read(json: &Json, place: &mut FieldPath<'_>) -> $type {
                let number = match json {
                    Json::Whole(number) => whole(*number),
                    _ => Err(Problem::Type { expected: "a whole number", found: json.kind() }),
                };
                place.value(number).unwrap_or(0)
            }

            fn write(&self) -> Json {
                Json::Whole((*self).into())
            }
        }
    )*};
}

numbers!(u32, u64);

impl Value for i32 {
    fn stand_in() -> i32 {
        0
    }

    fn read(json: &Json, place: &mut FieldPath<'_>) -> i32 {
        let number = match json {
            Json::Whole(number) => i32::try_from(*number).map_err(|_| Problem::TooLarge),
            _ => Err(Problem::Type { expected: "a whole number", found: json.kind() }),
        };
        place.value(number).unwrap_or(0)
    }

    fn write(&self) -> Json {
        Json::Whole((*self).into())
    }
}

impl Value for bool {
    fn stand_in() -> bool {
        false
    }

    fn read(json: &Json, place: &mut FieldPath<'_>) -> bool {
        if let Json::Bool(value) = json {
            return *value;
        }
        place.expected("true or false", json);
        false
    }

    fn write(&self) -> Json {
        Json::Bool(*self)
    }
}

impl Value for String {
    fn stand_in() -> String {
        String::new()
    }

    fn read(json: &Json, place: &mut FieldPath<'_>) -> String {
        if let Json::Text(text) = json {
            return text.clone();
        }
        place.expected("a string", json);
        String::new()
    }

    fn write(&self) -> Json {
        Json::Text(self.clone())
    }
}

impl<T: Value> Value for Vec<T> {
    fn stand_in() -> Vec<T> {
        Vec::new()
    }

    fn read(json: &Json, place: &mut FieldPath<'_>) -> Vec<T> {
        let Json::List(list) = json else {
            place.expected("a list", json);
            return Vec::new();
        };
        list.iter().enumerate().map(|(i, element)| T::read(element, &mut place.element(i))).collect()
    }

    fn write(&self) -> Json {
        Json::List(self.iter().map(T::write).collect())
    }
}

/// JSON array of two values.
impl<A: Value, B: Value> Value for (A, B) {
    fn stand_in() -> (A, B) {
        (A::stand_in(), B::stand_in())
    }

    fn read(json: &Json, place: &mut FieldPath<'_>) -> (A, B) {
        match json {
            Json::List(list) if list.len() == 2 => {
                (A::read(&list[0], &mut place.element(0)), B::read(&list[1], &mut place.element(1)))
            }
            _ => {
                place.expected("a list of two", json);
                Self::stand_in()
            }
        }
    }

    fn write(&self) -> Json {
        Json::List(vec![self.0.write(), self.1.write()])
    }
}

/// JSON object with exactly one form of distribution, or a duration alone, which stands for a constant time.
impl Value for Distribution {
    fn stand_in() -> Distribution {
        Distribution::Constant(0)
    }

    fn read(json: &Json, place: &mut FieldPath<'_>) -> Distribution {
        let Json::Object(entries) = json else {
            return Distribution::Constant(Ns::read(json, place).0);
        };
        let mut fields = Fields::inside(entries, place);
        let constant = fields.maybe("constant").map(|Ns(ns)| Distribution::Constant(ns));
        let uniform = fields.maybe("uniform").map(|(Ns(a), Ns(b))| Distribution::Uniform(a, b));
        let quantiles = fields.maybe("quantiles").map(|points: Vec<(u32, Ns)>| {
            Distribution::Quantiles(points.into_iter().map(|(ppm, Ns(ns))| (ppm, ns)).collect())
        });
        fields.finish();
        let mut given = [constant, uniform, quantiles].into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(one), None) => one,
            _ => {
                place.fail(Problem::DistributionForm);
                Self::stand_in()
            }
        }
    }

    fn write(&self) -> Json {
        let (form, values) = match self {
            Distribution::Constant(ns) => return Ns(*ns).write(),
            Distribution::Uniform(a, b) => ("uniform", (Ns(*a), Ns(*b)).write()),
            Distribution::Quantiles(points) => {
                let points: Vec<(u32, Ns)> = points.iter().map(|(ppm, ns)| (*ppm, Ns(*ns))).collect();
                ("quantiles", points.write())
            }
        };
        Json::Object(vec![(form.to_owned(), values)])
    }
}

/// The string `"all"` or an array of nodes.
impl Value for Group {
    fn stand_in() -> Group {
        Group::All
    }

    fn read(json: &Json, place: &mut FieldPath<'_>) -> Group {
        match json {
            Json::Text(text) if text == "all" => Group::All,
            Json::List(_) => {
                let names = Vec::<String>::read(json, place);
                let mut nodes = std::collections::BTreeSet::new();
                for (i, name) in names.into_iter().enumerate() {
                    if !nodes.insert(name) {
                        place.element(i).fail(Problem::Twice);
                    }
                }
                Group::Nodes(nodes)
            }
            _ => {
                place.expected("\"all\" or a list of nodes", json);
                Group::All
            }
        }
    }

    fn write(&self) -> Json {
        match self {
            Group::All => Json::Text("all".to_owned()),
            Group::Nodes(nodes) => Json::List(nodes.iter().map(String::write).collect()),
        }
    }
}

/// The string `"all"`, or an object with senders and receivers.
impl Value for Links {
    fn stand_in() -> Links {
        Links::all()
    }

    fn read(json: &Json, place: &mut FieldPath<'_>) -> Links {
        match json {
            Json::Text(text) if text == "all" => Links::all(),
            Json::Object(entries) => {
                let mut fields = Fields::inside(entries, place);
                let links = Links {
                    from: fields.take("from"),
                    to: fields.take("to"),
                    both_ways: fields.take_or("both_ways", true),
                };
                fields.finish();
                links
            }
            _ => {
                place.expected("\"all\" or an object with \"from\" and \"to\"", json);
                Links::all()
            }
        }
    }

    fn write(&self) -> Json {
        if *self == Links::all() {
            return Json::Text("all".to_owned());
        }
        let Links { from, to, both_ways } = self;
        let fields = [("from", from.write()), ("to", to.write()), ("both_ways", both_ways.write())];
        Json::Object(fields.map(|(name, value)| (name.to_owned(), value)).into())
    }
}
