//! A compose file after four steps: variables are replaced, `extends` is resolved, later files are merged over it, and
//! services in inactive profiles are removed.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use everett_input::file::{self as input, Reason, folder_of};

use super::host_path::host_path;
use super::keys;
use super::merge;
use super::value::Value;
use super::variables::{self, Variables};
use super::yaml::{self, KeyPath, Kind, Node, Origin, Parsed};
use crate::error::Error;
use crate::{FILE_BYTES_MAX, confinement, seal};

/// Maximum number of services in a chain of `extends`.
const EXTENDS_MAX: usize = 16;
/// Maximum length of a file that sets variables, in bytes.
const VARIABLES_BYTES_MAX: u64 = 1 << 20;
/// Name of the variable that lists the active profiles.
const PROFILES: &str = "COMPOSE_PROFILES";
/// Key of the block with Everett's own settings.
const OWN: &str = "x-everett";
/// Top-level keys of a compose file whose values may contain variables.
const PARTS: [&str; 6] = ["name", "services", "volumes", "networks", "configs", "secrets"];

/// Path and text of a compose file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'t> {
    pub(crate) file: &'t Path,
    pub(crate) text: &'t str,
}

/// A compose file, or several compose files merged into one.
pub(super) struct Document<'p> {
    /// Path of the first file. The file's folder is the project's folder.
    pub(super) file: Rc<Path>,
    /// Name of the project: the value of `name`, or else derived from the folder's name.
    pub(super) project: String,
    pub(super) variables: Variables<'p>,
    /// Services without a profile or in an active profile, in the order of the file.
    pub(super) services: Vec<(String, Value)>,
    /// Names of all services, including services in inactive profiles.
    pub(super) all: Vec<String>,
    /// Mapping `volumes` of the file. The next three fields are its mappings `networks`, `configs` and `secrets`.
    pub(super) volumes: Value,
    pub(super) networks: Value,
    pub(super) configs: Value,
    pub(super) secrets: Value,
    /// The block `x-everett`. Variables in it are not replaced.
    pub(super) own: Option<Rc<Node>>,
    /// Keys that have no effect, each with the reason.
    pub(super) ignored: BTreeMap<String, &'static str>,
}

impl<'p> Document<'p> {
    /// Reads the files of a project. Each file is merged over the files before it.
    pub(super) fn new(
        files: &[Text<'_>],
        process: &'p dyn Fn(&str) -> Option<String>,
    ) -> Result<Document<'p>, Error> {
        let first = files.first().map_or(Path::new(""), |one| one.file);
        let mut variables = Variables::new(process);
        let dotenv = folder_of(first).join(".env");
        seal::note(&dotenv, Path::new(".env"));
        if dotenv.is_file() {
            confinement::check(folder_of(first), &dotenv).map_err(|what| Error::whole(first, what))?;
            let found = read_variables(&dotenv, Some(&variables))?;
            variables.extend(found);
        }
        let mut ignored = BTreeMap::new();
        let mut known = Files { project: first, files: BTreeMap::new() };
        let mut whole: Option<Rc<Node>> = None;
        for one in files {
            let Parsed { root, cleared } = yaml::parse(one.text, &Origin::within(one.file, first))?;
            keys::check(&Value { node: Rc::clone(&root), path: String::new() }, &keys::TOP, &mut ignored)?;
            let root = replaced(&root, &variables)?;
            let own = known.all_extended(one.file, &root, &cleared, &variables)?;
            whole = Some(match whole {
                None => own,
                Some(base) => merge::file(&merge::without(&base, &cleared), &own)?,
            });
        }
        let node = whole.ok_or_else(|| Error::whole(first, "there is no compose file"))?;
        let root = Value { node, path: String::new() };
        let part = |name: &str| -> Result<Value, Error> {
            let none = || Rc::new(Node::new(root.at().clone(), Kind::Map(Vec::new())));
            let node = root.get(name)?.map_or_else(none, |value| value.node);
            Ok(Value { node, path: name.to_owned() })
        };
        let project = match root.get("name")? {
            Some(value) => value.text()?.to_owned(),
            None => project_of(first),
        };
        let services = part("services")?;
        let mut all = Vec::new();
        let mut active = Vec::new();
        let entries = services.entries()?;
        if entries.is_empty() {
            return Err(services.error("a compose file needs at least one service"));
        }
        let wanted = variables.get(PROFILES).unwrap_or_default();
        for (key, value) in entries {
            all.push(key.name.clone());
            if is_on(&value, &wanted)? {
                active.push((key.name, value));
            }
        }
        // Each service becomes at least one machine, except a service without replicas. A file with more services than
        // a world may have machines is an error here, before any service is parsed.
        if active.len() > crate::NODES_MAX {
            let (count, most) = (active.len(), crate::NODES_MAX);
            return Err(services.error(format!("{count} services; a world has at most {most} machines")));
        }
        if active.is_empty() {
            return Err(services.error(format!("no service is on; name their profiles in {PROFILES}")));
        }
        let (volumes, networks) = (part("volumes")?, part("networks")?);
        let (configs, secrets) = (part("configs")?, part("secrets")?);
        let own = root.get(OWN)?.map(|value| value.node);
        Ok(Document {
            file: Rc::from(first),
            project,
            variables,
            services: active,
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

/// Replaces the variables in a file, except in extensions such as the block `x-everett`.
fn replaced(root: &Rc<Node>, variables: &Variables<'_>) -> Result<Rc<Node>, Error> {
    let Kind::Map(entries) = &root.kind else { return Ok(Rc::clone(root)) };
    let mut all = Vec::new();
    for (key, value) in entries {
        let value = if PARTS.contains(&key.name.as_str()) {
            variables.replace(value, &key.name)?
        } else {
            Rc::clone(value)
        };
        all.push((key.clone(), value));
    }
    Node::new(root.at.clone(), Kind::Map(all)).bounded()
}

/// Reads a text file. Errors name the file.
fn read_text(path: &Path, most: u64) -> Result<String, Error> {
    input::read_text(path, most).map_err(|error| match error.reason {
        Reason::NotText(line) => Error { line: Some(line), ..Error::whole(path, "not UTF-8 text") },
        reason => Error::whole(path, reason.to_string()),
    })
}

/// Reads a file that sets variables.
pub(super) fn read_variables(
    path: &Path,
    variables: Option<&Variables<'_>>,
) -> Result<Vec<(String, String)>, Error> {
    let text = read_text(path, VARIABLES_BYTES_MAX)?;
    variables::of_file(&text, variables)
        .map_err(|(line, what)| Error { line: Some(line), ..Error::whole(path, what) })
}

/// Returns the name that docker compose would give to the project in the file's folder.
fn project_of(file: &Path) -> String {
    let folder = folder_of(file).canonicalize().unwrap_or_default();
    let name = folder.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
    let name = name.trim_start_matches(['-', '_']);
    if name.is_empty() { "project".to_owned() } else { name.to_owned() }
}

/// Returns true if a service has no profile, or if `wanted`, a list with commas, contains one of its profiles or `*`.
fn is_on(service: &Value, wanted: &str) -> Result<bool, Error> {
    let Some(profiles) = service.get("profiles")? else { return Ok(true) };
    let profiles = profiles.texts()?;
    let is_wanted = |name: &str| wanted.split(',').any(|one| one.trim() == name || one.trim() == "*");
    Ok(profiles.is_empty() || profiles.iter().any(|profile| profile.text().is_ok_and(is_wanted)))
}

/// The services of a file, and the paths of values with `!reset` or `!override` in the file.
#[derive(Clone)]
struct Services {
    services: Value,
    cleared: Vec<KeyPath>,
}

impl Services {
    /// Returns the paths of values with `!reset` or `!override` in a service, relative to the service.
    fn cleared(&self, service: &str) -> Vec<KeyPath> {
        let of_service = self.cleared.iter().filter(|path| path.len() > 2 && path[0] == "services");
        of_service.filter(|path| path[1] == service).map(|path| path[2..].to_vec()).collect()
    }
}

/// Files that were read to resolve `extends`, by path.
struct Files<'f> {
    project: &'f Path,
    files: BTreeMap<std::path::PathBuf, Services>,
}

impl Files<'_> {
    /// Returns the root of a file after `extends` is resolved in all its services.
    fn all_extended(
        &mut self,
        file: &Path,
        root: &Rc<Node>,
        cleared: &[KeyPath],
        variables: &Variables<'_>,
    ) -> Result<Rc<Node>, Error> {
        let value = Value { node: Rc::clone(root), path: String::new() };
        let (Some(services), Kind::Map(parts)) = (value.get("services")?, &root.kind) else {
            return Ok(Rc::clone(root));
        };
        let known = Services { services: services.clone(), cleared: cleared.to_vec() };
        self.files.insert(file.to_owned(), known);
        let mut extended = Vec::new();
        for (key, service) in services.entries()? {
            let service = self.extended(&key.name, &service, variables, 0)?;
            extended.push((key, service));
        }
        let all = Node::new(services.at().clone(), Kind::Map(extended)).bounded()?;
        let with = |(key, value): &(yaml::Key, Rc<Node>)| {
            (key.clone(), Rc::clone(if key.name == "services" { &all } else { value }))
        };
        Node::new(root.at.clone(), Kind::Map(parts.iter().map(with).collect())).bounded()
    }

    /// Returns a service after its `extends` is resolved.
    fn extended(
        &mut self,
        own_name: &str,
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
        let own_file = service.at().origin.file.to_path_buf();
        let file = match file {
            None => own_file.clone(),
            Some(value) => host_path(&value, folder_of(self.project), value.text()?)?,
        };
        let services = self.services(&file, variables)?.services;
        let wanted = name.text()?;
        let base = services.get(wanted)?.ok_or_else(|| {
            name.error(format!("there is no service \"{}\" in {}", wanted.escape_debug(), file.display()))
        })?;
        let base = self.extended(wanted, &base, variables, depth + 1)?;
        let cleared = self.files.get(&own_file).map(|own| own.cleared(own_name)).unwrap_or_default();
        merge::service(&merge::without(&base, &cleared), &service.node)
    }

    fn services(&mut self, file: &Path, variables: &Variables<'_>) -> Result<Services, Error> {
        if let Some(known) = self.files.get(file) {
            return Ok(known.clone());
        }
        let Parsed { root, cleared } = yaml::parse(&read_text(file, FILE_BYTES_MAX)?, &Origin::new(file))?;
        let root = Value { node: root, path: String::new() };
        let services = root.get("services")?.ok_or_else(|| root.error("\"services\" is missing"))?;
        let node = variables.replace(&services.node, "services")?;
        let known = Services { services: Value { node, path: services.path }, cleared };
        self.files.insert(file.to_owned(), known.clone());
        Ok(known)
    }
}
