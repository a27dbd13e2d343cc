//! Reads the tables `[[link]]`: the network between nodes.

use everett_fault::Distribution;
use everett_input::causes::with_causes;
use everett_input::units;
use everett_vmm::wire::{
    BITS_PER_S_MAX, BITS_PER_S_MIN, LATENCY_NS_MIN, LinkConfig, LinkOverride, QUEUE_BYTES_MAX,
    QUEUE_BYTES_MIN,
};
use serde::Serialize;

use super::cursor::{Item, Table};
use super::error::Error;
use super::node::Node;

/// Maximum number of links in a world file.
pub(super) const LINKS_MAX: usize = 4096;

/// Settings of the links between nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Links {
    /// Settings of all links that have no settings of their own.
    pub usual: LinkConfig,
    /// Links with settings of their own.
    pub others: Vec<LinkOverride>,
    /// Pairs of nodes without a link. They cannot reach each other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<(String, String)>,
}

/// Reads all links. A table without `from` and `to` sets the defaults of all links. The table of one link can replace
/// them.
pub(super) fn read(
    items: Option<Vec<Item<'_>>>,
    nodes: &[Node],
    apart: Vec<(String, String)>,
) -> Result<Links, Error> {
    let mut links = Links { apart, ..Links::default() };
    let mut usual_seen = false;
    let tables = items.unwrap_or_default().into_iter().map(|item| item.table());
    let tables: Vec<Table<'_>> = tables.collect::<Result<_, _>>()?;
    let is_usual = |table: &&Table<'_>| table.get("from").is_none() && table.get("to").is_none();
    for table in tables.iter().filter(is_usual) {
        if std::mem::replace(&mut usual_seen, true) {
            return Err(
                table.error("a second link without \"from\" and \"to\"; only one may set the defaults")
            );
        }
        table.only(&["latency", "bits_per_s", "queue"], &[])?;
        links.usual = link(table, &LinkConfig::default())?;
    }
    for table in tables.iter().filter(|table| !is_usual(table)) {
        table.only(&["from", "to", "both_ways", "latency", "bits_per_s", "queue"], &[])?;
        let (from, to) = (node(table, "from", nodes)?, node(table, "to", nodes)?);
        if from == to {
            return Err(table.error(format!("a link from {from} to itself")));
        }
        if links.apart.iter().any(|(a, b)| (a, b) == (&from, &to) || (a, b) == (&to, &from)) {
            return Err(table.error(format!("{from} and {to} have no network in common")));
        }
        let both_ways = table.get("both_ways").map(|item| item.bool()).transpose()?.unwrap_or(true);
        let same = |a: &LinkOverride| {
            (&a.from, &a.to) == (&from, &to) || (a.both_ways || both_ways) && (&a.from, &a.to) == (&to, &from)
        };
        if links.others.iter().any(same) {
            return Err(table.error(format!("the link from {from} to {to} is described twice")));
        }
        links.others.push(LinkOverride { from, to, both_ways, link: link(table, &links.usual)? });
    }
    Ok(links)
}

fn node(table: &Table<'_>, key: &str, nodes: &[Node]) -> Result<String, Error> {
    let item = table.require(key)?;
    let name = item.str()?;
    if !nodes.iter().any(|node| node.name == name) {
        return Err(item.error(format!("there is no node \"{name}\"")));
    }
    Ok(name.to_owned())
}

fn link(table: &Table<'_>, usual: &LinkConfig) -> Result<LinkConfig, Error> {
    let latency = match table.get("latency") {
        None => usual.latency.clone(),
        Some(item) => latency(&item)?,
    };
    let bits_per_s = match table.get("bits_per_s") {
        None => usual.bits_per_s,
        Some(item) => bounded(&item, item.u64()?, BITS_PER_S_MIN, BITS_PER_S_MAX)?,
    };
    let queue_bytes = match table.get("queue") {
        None => usual.queue_bytes,
        Some(item) => {
            let bytes = item.size_bytes()?;
            let bytes = bounded(&item, bytes, QUEUE_BYTES_MIN.into(), QUEUE_BYTES_MAX.into())?;
            u32::try_from(bytes).unwrap_or(QUEUE_BYTES_MAX)
        }
    };
    Ok(LinkConfig { latency, bits_per_s, queue_bytes })
}

/// Reads one latency, or a list of the minimum and the maximum latency.
fn latency(item: &Item<'_>) -> Result<Distribution, Error> {
    let time = |item: &Item<'_>| item.duration_ns();
    let distribution = match &item.list(2) {
        Ok(ends) => match &ends[..] {
            [least, most] => Distribution::Uniform(time(least)?, time(most)?),
            _ => return Err(item.error("expected two times: the least and the greatest")),
        },
        Err(_) => Distribution::Constant(time(item)?),
    };
    distribution.check().map_err(|error| item.error(with_causes(&error)))?;
    if distribution.least() < LATENCY_NS_MIN {
        let least = units::show_duration_ns(LATENCY_NS_MIN);
        return Err(item.error(format!("the latency of a link is at least {least}")));
    }
    Ok(distribution)
}

fn bounded(item: &Item<'_>, value: u64, least: u64, most: u64) -> Result<u64, Error> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(item.error(format!("{value} is not between {least} and {most}")))
}
