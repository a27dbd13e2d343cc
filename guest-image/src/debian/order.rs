//! Decides in which order the packages of a first installation are configured.
//!
//! dpkg configures a package's pre-dependencies before it runs the package's preinst script (Debian Policy 7.2).
//! Everett unpacks all files first, so the programs of most pre-dependencies work before they are configured. Nearly
//! all preinst scripts can therefore run first. Programs of a package with configuration files may not work, because
//! dpkg puts these files in place when it configures the package. A preinst script whose pre-dependencies have
//! configuration files runs in a later [`Stage`].

use std::collections::{BTreeMap, BTreeSet};

use super::package::Package;

/// A step of a first installation: scripts, and then configuration.
#[derive(Debug)]
pub(crate) struct Stage<'p> {
    /// Packages whose preinst scripts run in this stage, in this order.
    pub(crate) preinst: Vec<&'p Package>,
    /// Packages that are configured after the scripts. The list is empty in the last stage, after whose scripts dpkg
    /// configures all packages that remain.
    pub(crate) configure: Vec<&'p Package>,
}

/// Returns the stages that install packages on a base that is already configured.
pub(crate) fn stages(packages: &[Package]) -> Vec<Stage<'_>> {
    let provided = provided(packages);
    let needs: Vec<BTreeSet<usize>> =
        packages.iter().map(|package| needed(package, &["Pre-Depends", "Depends"], &provided)).collect();
    let has_preinst = |number: &usize| packages[*number].file("preinst").is_some();
    let mut scripts: Vec<usize> = (0..packages.len()).filter(has_preinst).collect();
    let mut open: BTreeSet<usize> = (0..packages.len()).collect();
    let mut stages = Vec::new();
    loop {
        let is_late = |number: &usize| {
            let before = needed(&packages[*number], &["Pre-Depends"], &provided);
            before
                .iter()
                .any(|one| one != number && open.contains(one) && !packages[*one].conffiles().is_empty())
        };
        let (mut late, mut now): (Vec<usize>, Vec<usize>) =
            scripts.iter().partition(|number| is_late(number));
        let before: BTreeSet<usize> = open.difference(&dependents(&late, &needs)).copied().collect();
        if before.is_empty() {
            // Each package that is not configured yet has a script in `late`, or depends on a package with a script in
            // `late`. No package can therefore be configured before these scripts have run. The scripts run now, and
            // dpkg orders the configuration.
            now.append(&mut late);
        }
        let of =
            |numbers: &mut dyn Iterator<Item = &usize>| numbers.map(|number| &packages[*number]).collect();
        let preinst = of(&mut now.iter());
        if late.is_empty() {
            stages.push(Stage { preinst, configure: Vec::new() });
            return stages;
        }
        stages.push(Stage { preinst, configure: of(&mut before.iter()) });
        open.retain(|number| !before.contains(number));
        scripts = late;
    }
}

/// Returns these packages and all packages that depend on them, directly or indirectly.
fn dependents(of: &[usize], needs: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let mut found: BTreeSet<usize> = of.iter().copied().collect();
    let mut known = 0;
    while known < found.len() {
        known = found.len();
        let more = (0..needs.len()).filter(|number| !needs[*number].is_disjoint(&found));
        found = more.chain(found.iter().copied()).collect();
    }
    found
}

/// Returns the index of each package, by its name and by the names that it provides.
fn provided(packages: &[Package]) -> BTreeMap<&str, usize> {
    let mut provided = BTreeMap::new();
    for (number, package) in packages.iter().enumerate() {
        for name in names(package.control.field("Provides").unwrap_or_default()) {
            provided.entry(name).or_insert(number);
        }
    }
    // A package that has a name takes precedence over packages that only provide the name.
    provided.extend(packages.iter().enumerate().map(|(number, package)| (package.name.as_str(), number)));
    provided
}

/// Returns the packages that these fields of `package` name. From alternatives, takes the first that is present.
fn needed(package: &Package, fields: &[&str], provided: &BTreeMap<&str, usize>) -> BTreeSet<usize> {
    let groups = fields.iter().flat_map(|field| package.control.field(field).unwrap_or_default().split(','));
    groups
        .filter_map(|group| group.split('|').flat_map(names).find_map(|name| provided.get(name).copied()))
        .collect()
}

/// Returns the names in a list of packages: `a (>= 1), b:any [amd64]` gives a and b.
pub(crate) fn names(list: &str) -> impl Iterator<Item = &str> {
    let name = |item: &'_ str| item.trim().len();
    list.split(',').filter(move |item| name(item) > 0).map(|item| {
        let item = item.trim();
        item.split(|c: char| c.is_whitespace() || matches!(c, ':' | '(' | '[')).next().unwrap_or(item)
    })
}

#[cfg(test)]
mod tests {
    use super::{Stage, stages};
    use crate::debian::package::Package;
    use crate::debian::package::tests::package;

    fn shown(stages: &[Stage<'_>]) -> Vec<(Vec<String>, Vec<String>)> {
        let names = |packages: &[&Package]| packages.iter().map(|package| package.name.clone()).collect();
        stages.iter().map(|stage| (names(&stage.preinst), names(&stage.configure))).collect()
    }

    fn all(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    const SCRIPT: (&str, &str) = ("preinst", "#!/bin/sh\n");

    #[test]
    fn a_script_waits_for_a_pre_dependency_with_configuration_files() {
        let packages = [
            package("server", "Pre-Depends: users (>= 1), debconf\nDepends: lib\n", &[SCRIPT]),
            package("client", "Depends: server | other\n", &[SCRIPT]),
            package("users", "Depends: lib\n", &[("conffiles", "/etc/users.conf\n")]),
            package("lib", "", &[SCRIPT]),
        ];
        assert_eq!(
            shown(&stages(&packages)),
            [(all(&["client", "lib"]), all(&["users", "lib"])), (all(&["server"]), all(&[]))]
        );
    }

    #[test]
    fn other_scripts_run_first() {
        let packages = [
            package("python", "Pre-Depends: python-minimal\n", &[SCRIPT]),
            package("python-minimal", "", &[SCRIPT]),
        ];
        assert_eq!(shown(&stages(&packages)), [(all(&["python", "python-minimal"]), all(&[]))]);
    }

    #[test]
    fn a_circle_ends() {
        let packages = [
            package("a", "Pre-Depends: b\n", &[SCRIPT, ("conffiles", "/etc/a\n")]),
            package("b", "Pre-Depends: a\n", &[SCRIPT, ("conffiles", "/etc/b\n")]),
        ];
        assert_eq!(shown(&stages(&packages)), [(all(&["a", "b"]), all(&[]))]);
    }
}
