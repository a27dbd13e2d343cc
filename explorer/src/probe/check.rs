//! Check of the probes that a world declares. Places and expressions are parsed elsewhere.

use everett_input::text::quoted;

use super::config::ProbeConfig;
use super::error::{ProbeError, ProbeProblem};
use super::limits::{NODES_MAX, PROBES_MAX};
use crate::plan::names::hint;
use crate::property::builtin;
use crate::property::limits::{NAME_BYTES_MAX, VIOLATED_BYTES_MAX};
use crate::text::head;

/// Checks the probes of a world with these properties and nodes.
///
/// # Errors
/// Returns an error for the first invalid declaration.
pub fn check(probes: &[ProbeConfig], properties: &[&str], nodes: &[String]) -> Result<(), ProbeError> {
    if probes.len() > PROBES_MAX {
        return Err(ProbeError::TooMany);
    }
    for (number, probe) in probes.iter().enumerate() {
        let wrong = |source| ProbeError::Probe { name: quoted(head(&probe.name, NAME_BYTES_MAX)), source };
        checked(probe, nodes).map_err(wrong)?;
        let is_taken = probes[..number].iter().any(|other| other.name == probe.name)
            || properties.contains(&&*probe.name)
            || builtin::names().any(|name| name == probe.name);
        if is_taken {
            return Err(wrong(ProbeProblem::NameTwice));
        }
    }
    Ok(())
}

fn checked(probe: &ProbeConfig, nodes: &[String]) -> Result<(), ProbeProblem> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b" -_.".contains(&byte);
    if !(1..=NAME_BYTES_MAX).contains(&probe.name.len()) || !probe.name.bytes().all(plain) {
        return Err(ProbeProblem::Name);
    }
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins_with_digit = probe.name.starts_with(|c: char| c.is_ascii_digit());
    if probe.state.is_some() && (begins_with_digit || !probe.name.bytes().all(is_word)) {
        return Err(ProbeProblem::VariableName);
    }
    if !(probe.is_property() || probe.sometimes || probe.state.is_some() || probe.log) {
        return Err(ProbeProblem::NoEffect);
    }
    if probe.value.is_none() {
        if probe.never_decreases.is_some() {
            return Err(ProbeProblem::NoValue("never_decreases"));
        }
        if probe.state.is_some() {
            return Err(ProbeProblem::NoValue("state"));
        }
    }
    if probe.never {
        let others = [
            ("always", probe.always.is_some()),
            ("never_decreases", probe.never_decreases.is_some()),
            ("sometimes", probe.sometimes),
        ];
        if let Some((key, _)) = others.into_iter().find(|(_, is_given)| *is_given) {
            return Err(ProbeProblem::Never(key));
        }
    }
    if let Some(violated) = &probe.violated {
        if !probe.is_property() {
            return Err(ProbeProblem::NeverViolated);
        }
        if !(1..=VIOLATED_BYTES_MAX).contains(&violated.len()) || violated.contains(char::is_control) {
            return Err(ProbeProblem::Violated);
        }
    }
    if let Some(of) = &probe.nodes {
        if !(1..=NODES_MAX).contains(&of.len()) {
            return Err(ProbeProblem::Nodes);
        }
        if let Some(name) = of.iter().find(|name| !nodes.contains(name)) {
            let hint = hint(name, nodes.iter().map(String::as_str), "the nodes are");
            return Err(ProbeProblem::NoNode { name: quoted(name), hint });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let probe: ProbeConfig = toml::from_str(&format!("at = \"a:f\"\n{text}")).unwrap();
        let checked = check(&[probe], &["taken"], &["n1".to_owned()]);
        checked.err().map_or_else(String::new, |error| match error {
            ProbeError::Probe { source, .. } => source.to_string(),
            ProbeError::TooMany => "too many".to_owned(),
        })
    }

    #[test]
    fn declarations_are_checked() {
        for fine in [
            "name = \"a b\"\nalways = \"x\"",
            "name = \"a\"\nvalue = \"x\"\nstate = \"relative\"\nnever_decreases = \"node\"\nnodes = [\"n1\"]",
            "name = \"a\"\nnever = true\nviolated = \"it fell\"",
        ] {
            assert_eq!(error(fine), "", "{fine}");
        }
        for (bad, why) in [
            ("name = \"\"\nlog = true", "name: 1 to 64"),
            ("name = \"a\"", "give \"always\""),
            ("name = \"taken\"\nlog = true", "name: a property"),
            ("name = \"service exit\"\nlog = true", "name: a property"),
            ("name = \"a b\"\nvalue = \"x\"\nstate = \"exact\"", "name: with \"state\""),
            ("name = \"a\"\nstate = \"exact\"", "value: \"state\" needs"),
            ("name = \"a\"\nnever_decreases = \"process\"", "value: \"never_decreases\" needs"),
            ("name = \"a\"\nnever = true\nalways = \"x\"", "never: \"always\""),
            ("name = \"a\"\nlog = true\nviolated = \"x\"", "violated: nothing"),
            ("name = \"a\"\nnever = true\nviolated = \"\"", "violated: 1 to"),
            ("name = \"a\"\nlog = true\nnodes = []", "nodes: 1 to"),
            ("name = \"a\"\nlog = true\nnodes = [\"n2\"]", "nodes: there is no node \"n2\""),
        ] {
            assert!(error(bad).starts_with(why), "{bad}: {}", error(bad));
        }
        let probe: ProbeConfig = toml::from_str("name = \"a\"\nat = \"a:f\"\nlog = true").unwrap();
        assert!(check(&[probe.clone(), probe.clone()], &[], &[]).is_err());
        assert_eq!(check(&vec![probe; PROBES_MAX + 1], &[], &[]), Err(ProbeError::TooMany));
    }
}
