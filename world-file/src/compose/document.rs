//! A compose file with its variables replaced, its services' `extends` carried out, and its profiles applied.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use everett_input::file::{self as input, Reason};

use super::below::below;
use super::keys;
use super::merge;
use super::value::Value;
use super::variables::{self, Variables};
use super::yaml::{self, Kind, Node};
use crate::error::Error;
use crate::{FILE_BYTES_MAX, confines, paths, seal};

/// Maximum length of a chain of `extends`.
const EXTENDS_MAX: usize = 16;
/// Maximum length of a file of variables, in bytes.
const VARIABLES_BYTES_MAX: u64 = 1 << 20;
/// Variable with the names of the profiles that are on.
const PROFILES: &str = "COMPOSE_PROFILES";

/// A compose file.
pub(super) struct Document<'p> {
    pub(super) file: Rc<Path>,
    /// Name of the project: that of the file's folder unless the file has another.
    pub(super) project: String,
    pub(super) variables: Variables<'p>,
    /// Services that are on, in the file's order.
    pub(super) services: Vec<(String, Value)>,
    /// Names of all services, also of those that are off.
    pub(super) all: Vec<String>,
    /// The mappings `volumes`, `networks`, `configs` and `secrets`.
    pub(super) volumes: Value,
    pub(super) networks: Value,
    pub(super) configs: Value,
    pub(super) secrets: Value,
    /// The block `x-everett`, in which no variables are replaced.
    pub(super) own: Option<Rc<Node>>,
    /// Keys without effect, with their reasons.
    pub(super) ignored: BTreeMap<String, &'static str>,
}

impl<'p> Document<'p> {
    /// Reads a compose file from its text.
    pub(super) fn new(
        text: &str,
        file: &Path,
        process: &'p dyn Fn(&str) -> Option<String>,
    ) -> Result<Document<'p>, Error> {
        let shared: Rc<Path> = Rc::from(file);
        let tree = yaml::parse(text, &shared)?;
        let mut variables = Variables::new(process);
        let dotenv = paths::folder_of(file).join(".env");
        seal::note(&dotenv, Path::new(".env"));
        if dotenv.is_file() {
            confines::check(paths::folder_of(file), &dotenv).map_err(|what| Error::whole(file, what))?;
            let found = read_variables(&dotenv, Some(&variables))?;
            variables.extend(found);
        }
        let root = Value { node: tree, path: String::new() };
        let mut ignored = BTreeMap::new();
        keys::check(&root, &keys::TOP, &mut ignored)?;
        let part = |name: &str| -> Result<Value, Error> {
            let node = match root.get(name)? {
                Some(value) => variables.replace(&value.node, name)?,
                None => Rc::new(Node::new(root.at().clone(), Kind::Map(Vec::new()))),
            };
            Ok(Value { node, path: name.to_owned() })
        };
        let project = match root.get("name")? {
            Some(value) => variables.text(value.text()?).map_err(|what| value.error(what))?,
            None => project_of(file),
        };
        let services = part("services")?;
        let mut known = Files { project: file, files: BTreeMap::new() };
        known.files.insert(file.to_owned(), services.clone());
        let mut all = Vec::new();
        let mut active = Vec::new();
        let entries = services.entries()?;
        if entries.is_empty() {
            return Err(services.error("a compose file needs at least one service"));
        }
        let wanted = variables.get(PROFILES).unwrap_or_default();
        for (key, value) in entries {
            all.push(key.name.clone());
            let node = known.extended(&value, &variables, 0)?;
            let value = Value { node, path: value.path };
            if is_on(&value, &wanted)? {
                active.push((key.name, value));
            }
            // Each has a machine at least; a longer list is refused before each of them is looked at.
            if active.len() > crate::NODES_MAX {
                let count = services.entries()?.len();
                let most = crate::NODES_MAX;
                return Err(services.error(format!("{count} services; a world has at most {most} machines")));
            }
        }
        if active.is_empty() {
            return Err(services.error(format!("no service is on; name their profiles in {PROFILES}")));
        }
        let (volumes, networks) = (part("volumes")?, part("networks")?);
        let (configs, secrets) = (part("configs")?, part("secrets")?);
        let own = root.get("x-everett")?.map(|value| value.node);
        let services = active;
        Ok(Document {
            file: shared,
            project,
            variables,
            services,
            all,
            volumes,
            networks,
            configs,
            secrets,
            own,
            ignored,
        })
    }
}

/// Reads a text file; an error names it.
fn read_text(path: &Path, most: u64) -> Result<String, Error> {
    input::read_text(path, most).map_err(|error| match error.reason {
        Reason::NotText(line) => Error { line: Some(line), ..Error::whole(path, "not UTF-8 text") },
        reason => Error::whole(path, reason.to_string()),
    })
}

/// Reads a file of variables.
pub(super) fn read_variables(
    path: &Path,
    variables: Option<&Variables<'_>>,
) -> Result<Vec<(String, String)>, Error> {
    let text = read_text(path, VARIABLES_BYTES_MAX)?;
    variables::of_file(&text, variables)
        .map_err(|(line, what)| Error { line: Some(line), ..Error::whole(path, what) })
}

/// Returns the name that docker compose gives to the project in this folder.
fn project_of(file: &Path) -> String {
    let folder = paths::folder_of(file).canonicalize().unwrap_or_default();
    let name = folder.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
    let name = name.trim_start_matches(['-', '_']);
    if name.is_empty() { "project".to_owned() } else { name.to_owned() }
}

/// Returns true if a service has no profile, or one of those that are wanted.
fn is_on(service: &Value, wanted: &str) -> Result<bool, Error> {
    let Some(profiles) = service.get("profiles")? else { return Ok(true) };
    let profiles = profiles.texts()?;
    let is_wanted = |name: &str| wanted.split(',').any(|one| one.trim() == name || one.trim() == "*");
    Ok(profiles.is_empty() || profiles.iter().any(|profile| profile.text().is_ok_and(is_wanted)))
}

/// Files whose services are extended.
struct Files<'f> {
    project: &'f Path,
    /// Services of each file.
    files: BTreeMap<std::path::PathBuf, Value>,
}

impl Files<'_> {
    /// Returns a service with what it extends.
    fn extended(
        &mut self,
        service: &Value,
        variables: &Variables<'_>,
        depth: usize,
    ) -> Result<Rc<Node>, Error> {
        let Some(extends) = service.get("extends")? else { return Ok(Rc::clone(&service.node)) };
        if depth >= EXTENDS_MAX {
            return Err(extends
                .error(format!("services extend each other in a cycle, or more than {EXTENDS_MAX} deep")));
        }
        let (name, file) = if extends.is_map() {
            extends.only(&["file", "service"])?;
            let name = extends.get("service")?.ok_or_else(|| extends.error("\"service\" is missing"))?;
            (name, extends.get("file")?)
        } else {
            (extends.clone(), None)
        };
        let file = match file {
            None => service.at().file.to_path_buf(),
            Some(value) => below(&value, paths::folder_of(self.project), value.text()?)?,
        };
        let services = self.services(&file, variables)?;
        let wanted = name.text()?;
        let base = services.get(wanted)?.ok_or_else(|| {
            name.error(format!("there is no service \"{}\" in {}", wanted.escape_debug(), file.display()))
        })?;
        let base = self.extended(&base, variables, depth + 1)?;
        merge::service(&base, &service.node)
    }

    fn services(&mut self, file: &Path, variables: &Variables<'_>) -> Result<Value, Error> {
        if let Some(services) = self.files.get(file) {
            return Ok(services.clone());
        }
        let shared: Rc<Path> = Rc::from(file);
        let root =
            Value { node: yaml::parse(&read_text(file, FILE_BYTES_MAX)?, &shared)?, path: String::new() };
        let services = root.get("services")?.ok_or_else(|| root.error("\"services\" is missing"))?;
        let node = variables.replace(&services.node, "services")?;
        let services = Value { node, path: services.path };
        self.files.insert(file.to_owned(), services.clone());
        Ok(services)
    }
}
