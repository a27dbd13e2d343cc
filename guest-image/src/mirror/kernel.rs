//! Chooses a kernel package, by the rules of apt.

use std::cmp::Ordering;

use super::list::Listed;
use crate::apt::Exact;
use crate::debian::version::compare;

/// Prefix of the names of kernel packages.
pub(super) const PREFIX: &str = "linux-image-";

/// Returns the kernel package on which `requested` depends, or else `requested` itself. `None` if `packages` lacks
/// `requested`, or lacks every version of the kernel package that `requested` allows.
pub(super) fn choose<'l>(packages: &[&'l Listed], requested: &str, pins: &[Exact]) -> Option<&'l Listed> {
    let candidate = |name: &str, fits: &dyn Fn(&str) -> bool| {
        let all =
            || packages.iter().copied().filter(|one| one.package.name == name && fits(&one.package.version));
        let pinned = all().find(|one| pins.contains(&one.package));
        pinned.or_else(|| all().max_by(|left, right| compare(&left.package.version, &right.package.version)))
    };
    let top = candidate(requested, &|_| true)?;
    let mut dependencies = top.depends.split(',').filter_map(Dependency::parse);
    match dependencies.find(|one| one.name.starts_with(PREFIX)) {
        Some(dependency) => candidate(dependency.name, &|version| dependency.is_met(version)),
        None => Some(top),
    }
}

/// A dependency on a package. If the dependency has several alternatives, only the first is kept.
#[derive(Debug, PartialEq, Eq)]
struct Dependency<'t> {
    name: &'t str,
    /// Relation and version, for example `>=` and `1.2`.
    relation: Option<(&'t str, &'t str)>,
}

impl<'t> Dependency<'t> {
    /// Parses `NAME [(RELATION VERSION)] [| …]`. Ignores all alternatives after the first.
    fn parse(text: &'t str) -> Option<Dependency<'t>> {
        let first = text.split('|').next()?.trim();
        let (name, rest) = first.split_once([' ', '(']).unwrap_or((first, ""));
        let name = name.split_once(':').map_or(name, |(name, _)| name);
        let relation = rest.trim_matches([' ', '(', ')']);
        let version = relation.trim_start_matches(['<', '=', '>']);
        let relation = match relation.strip_suffix(version) {
            Some(relation) if !relation.is_empty() => Some((relation, version.trim())),
            _ => None,
        };
        (!name.is_empty()).then_some(Dependency { name, relation })
    }

    fn is_met(&self, version: &str) -> bool {
        let Some((relation, wanted)) = self.relation else { return true };
        let order = compare(version, wanted);
        match relation {
            "<<" => order == Ordering::Less,
            "<=" => order != Ordering::Greater,
            "=" => order == Ordering::Equal,
            ">=" => order != Ordering::Less,
            ">>" => order == Ordering::Greater,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apt::ArchiveFile;

    fn listed(name: &str, version: &str, depends: &str) -> Listed {
        Listed {
            package: Exact { name: name.to_owned(), version: version.to_owned() },
            architecture: "amd64".to_owned(),
            depends: depends.to_owned(),
            file: ArchiveFile { path: "pool/x".to_owned(), bytes: 1, sha256: "0".repeat(64) },
        }
    }

    #[test]
    fn the_newest_kernel_is_chosen() {
        let all = [
            listed("linux-image-cloud-amd64", "6.1.9-1", "linux-image-6.1.0-9-cloud-amd64 (= 6.1.9-1)"),
            listed(
                "linux-image-cloud-amd64",
                "6.1.10-1",
                "x | y, linux-image-6.1.0-10-cloud-amd64 (= 6.1.10-1)",
            ),
            listed("linux-image-6.1.0-9-cloud-amd64", "6.1.9-1", "kmod, linux-base (>= 4.3~)"),
            listed("linux-image-6.1.0-10-cloud-amd64", "6.1.10-1", "kmod"),
            listed("linux-image-6.1.0-10-cloud-amd64", "6.1.11-1", "kmod"),
        ];
        let all: Vec<&Listed> = all.iter().collect();
        let chosen = |requested: &str, pins: &[Exact]| {
            choose(&all, requested, pins).map(|one| format!("{} {}", one.package.name, one.package.version))
        };
        let newest = Some("linux-image-6.1.0-10-cloud-amd64 6.1.10-1".to_owned());
        assert_eq!(chosen("linux-image-cloud-amd64", &[]), newest);
        // Here the dependency excludes the pinned version, so the pin has no effect.
        let pin =
            Exact { name: "linux-image-6.1.0-10-cloud-amd64".to_owned(), version: "6.1.11-1".to_owned() };
        assert_eq!(chosen("linux-image-cloud-amd64", &[pin]), newest);
        let pin = Exact { name: "linux-image-cloud-amd64".to_owned(), version: "6.1.9-1".to_owned() };
        let older = Some("linux-image-6.1.0-9-cloud-amd64 6.1.9-1".to_owned());
        assert_eq!(chosen("linux-image-cloud-amd64", &[pin]), older);
        assert_eq!(chosen("linux-image-6.1.0-9-cloud-amd64", &[]), older);
        assert_eq!(chosen("linux-image-none", &[]), None);
    }

    #[test]
    fn dependencies_are_read() {
        let of = |text: &'static str| Dependency::parse(text).unwrap();
        assert_eq!(of(" a "), Dependency { name: "a", relation: None });
        assert_eq!(of("a:any (>= 1:2~) | b"), Dependency { name: "a", relation: Some((">=", "1:2~")) });
        assert_eq!(of("a (= 1)"), Dependency { name: "a", relation: Some(("=", "1")) });
        assert_eq!(of("a(<<2)"), Dependency { name: "a", relation: Some(("<<", "2")) });
        assert_eq!(Dependency::parse(" "), None);
        let is_met = |text: &'static str, version: &str| of(text).is_met(version);
        assert!(is_met("a (<< 2)", "1") && !is_met("a (<< 2)", "2") && is_met("a (<= 2)", "2"));
        assert!(is_met("a (>> 2)", "3") && !is_met("a (>= 2)", "1") && is_met("a", "1"));
    }
}
