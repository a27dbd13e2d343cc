//! Parses the mounts of a service (volumes, files of the project, filesystems in memory, configs and secrets), and
//! reads the files that are mounted.

use std::fs;
use std::path::Path;

use everett_input::file::{folder_of, in_words};

use super::document::Document;
use super::host_path::host_path;
use super::value::Value;
use crate::composed::{Bind, Tmpfs};
use crate::error::Error;
use crate::files::Reader;
use crate::node::FileEntry;
use crate::paths;

/// Folder in the guest to which Everett copies the content of binds, i.e. of the host's files and folders that a
/// service mounts.
const BINDS: &str = "/run/everett/binds";
/// Maximum number of files that a service mounts, those in folders included.
const FILES_MAX: usize = 4_096;
/// Maximum depth of a folder that a service mounts.
const DEPTH_MAX: usize = 32;
/// Maximum number of mounts of one service.
const MOUNTS_MAX: usize = 256;
/// Default permission bits of configs and secrets.
const CONFIG_MODE: u32 = 0o444;
/// Options of a volume in the short form `SOURCE:TARGET:OPTIONS`.
const OPTIONS: [&str; 9] = ["ro", "rw", "z", "Z", "nocopy", "cached", "delegated", "consistent", "rprivate"];
/// Options of tmpfs(5) that a service may set.
const TMPFS_OPTIONS: [&str; 5] = ["size", "mode", "uid", "gid", "nr_inodes"];

/// All mounts of a service.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    pub(super) volumes: Vec<String>,
    /// Named volumes that the service mounts. Each has its value in the compose file, so that errors can name the line.
    pub(super) named: Vec<(String, Value)>,
    pub(super) binds: Vec<Bind>,
    pub(super) files: Vec<FileEntry>,
    pub(super) tmpfs: Vec<Tmpfs>,
    targets: Vec<String>,
}

/// Reads all mounts of a service.
pub(super) fn read(document: &Document<'_>, service: &Value, reader: &mut Reader) -> Result<Mounts, Error> {
    let mut mounts = Mounts::default();
    if let Some(list) = service.get("volumes")? {
        for item in list.items()? {
            mounts.volume(document, &item, reader)?;
        }
    }
    if let Some(list) = service.get("tmpfs")? {
        for item in list.texts()? {
            let (path, options) = item.text()?.split_once(':').unwrap_or((item.text()?, ""));
            mounts.in_memory(&item, path, options)?;
        }
    }
    for (kind, folder) in [("configs", ""), ("secrets", "/run/secrets")] {
        let Some(list) = service.get(kind)? else { continue };
        for item in list.items()? {
            mounts.config(document, kind, folder, &item, reader)?;
        }
    }
    Ok(mounts)
}

impl Mounts {
    /// Checks a path at which something is mounted, and records it. Each path may occur once.
    fn target(&mut self, value: &Value, text: &str) -> Result<String, Error> {
        let path = paths::guest_text(text).map_err(|what| value.error(what))?;
        if path == "/run/everett" || path.starts_with("/run/everett/") {
            return Err(value.error("/run/everett is Everett's own"));
        }
        if path == "/run" {
            return Err(
                value.error("/run is in memory already, and has Everett's own programs; mount folders in it")
            );
        }
        if self.targets.contains(&path) {
            return Err(value.error(format!("two mounts have the path {path}")));
        }
        self.targets.push(path.clone());
        if self.targets.len() > MOUNTS_MAX {
            return Err(value.error(format!("more than {MOUNTS_MAX} mounts")));
        }
        Ok(path)
    }

    fn volume(&mut self, document: &Document<'_>, item: &Value, reader: &mut Reader) -> Result<(), Error> {
        if item.is_map() {
            return self.long_volume(document, item, reader);
        }
        let text = item.text()?;
        let parts: Vec<&str> = text.split(':').collect();
        let (source, target, options) = match parts[..] {
            [target] => return self.anonymous(item, target),
            [source, target] => (source, target, ""),
            [source, target, options] => (source, target, options),
            _ => return Err(item.error(format!("\"{}\" is not SOURCE:TARGET[:ro]", text.escape_debug()))),
        };
        let options: Vec<&str> = options.split(',').filter(|option| !option.is_empty()).collect();
        if let Some(other) = options.iter().find(|option| !OPTIONS.contains(option)) {
            return Err(item.error(format!("there is no option \"{}\" of a volume", other.escape_debug())));
        }
        if source.starts_with(['.', '/', '~']) {
            let writable = !options.contains(&"ro");
            return self.bind(document, item, source, target, writable, true, reader);
        }
        self.named_volume(document, item, source, target)
    }

    fn long_volume(
        &mut self,
        document: &Document<'_>,
        item: &Value,
        reader: &mut Reader,
    ) -> Result<(), Error> {
        item.only(&["type", "source", "target", "read_only", "bind", "volume", "tmpfs", "consistency"])?;
        let kind = item.get("type")?.ok_or_else(|| item.error("\"type\" is missing"))?;
        let target_value = item.get("target")?.ok_or_else(|| item.error("\"target\" is missing"))?;
        let target = target_value.text()?;
        let source = item.get("source")?;
        let read_only = item.get("read_only")?.map(|value| value.bool()).transpose()?.unwrap_or(false);
        match kind.text()? {
            "volume" => {
                if let Some(options) = item.get("volume")? {
                    options.only(&["nocopy", "labels"])?;
                }
                match source {
                    None => self.anonymous(&target_value, target),
                    Some(name) => self.named_volume(document, &name, name.text()?, target),
                }
            }
            "bind" => {
                let source = source.ok_or_else(|| item.error("\"source\" is missing"))?;
                let options = item.get("bind")?;
                let make = match options {
                    None => false,
                    Some(options) => {
                        options.only(&["propagation", "create_host_path", "selinux", "recursive"])?;
                        options.get("create_host_path")?.map(|v| v.bool()).transpose()?.unwrap_or(false)
                    }
                };
                self.bind(document, &source, source.text()?, target, !read_only, make, reader)
            }
            "tmpfs" => {
                let mut options = Vec::new();
                if let Some(values) = item.get("tmpfs")? {
                    values.only(&["size", "mode"])?;
                    if let Some(size) = values.get("size")? {
                        options.push(format!("size={}", size.size_bytes()?));
                    }
                    if let Some(mode) = values.get("mode")? {
                        options.push(format!("mode={:o}", octal(&mode)?));
                    }
                }
                self.in_memory(&target_value, target, &options.join(","))
            }
            other => Err(kind.error(format!(
                "refused: a mount of the type \"{}\" needs a host; there are volume, bind and tmpfs",
                other.escape_debug()
            ))),
        }
    }

    fn anonymous(&mut self, value: &Value, target: &str) -> Result<(), Error> {
        let path = self.target(value, target)?;
        self.volumes.push(path);
        Ok(())
    }

    fn named_volume(
        &mut self,
        document: &Document<'_>,
        value: &Value,
        name: &str,
        target: &str,
    ) -> Result<(), Error> {
        let Some((_, volume)) = document.volumes.entries()?.into_iter().find(|(key, _)| key.name == name)
        else {
            return Err(value.error(format!("there is no volume \"{}\" in volumes", name.escape_debug())));
        };
        check_volume(&volume)?;
        self.named.push((name.to_owned(), value.clone()));
        self.anonymous(value, target)
    }

    #[allow(clippy::too_many_arguments)]
    fn bind(
        &mut self,
        document: &Document<'_>,
        value: &Value,
        source: &str,
        target: &str,
        writable: bool,
        make: bool,
        reader: &mut Reader,
    ) -> Result<(), Error> {
        if source.ends_with("docker.sock") || source.ends_with("podman.sock") {
            return Err(
                value.error("refused: a world sees nothing of its host, so there is no engine to talk to")
            );
        }
        let confines = folder_of(&document.file);
        let host = host_path(value, confines, source)?;
        let path = self.target(value, target)?;
        let number = self.binds.len();
        let mut from = format!("{BINDS}/{number}");
        if host.is_dir() {
            let real = confines.canonicalize().map_err(|e| value.error(in_words(&e)))?;
            let mut found = Vec::new();
            walk(&host, &real, "", DEPTH_MAX, &mut found).map_err(|what| value.error(what))?;
            for (name, path) in found {
                let content = reader.read(&path).map_err(|what| value.error(what))?;
                self.files.push(FileEntry::of_root(format!("{from}{name}"), content));
            }
        } else if host.exists() {
            let name = host.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| value.error("a name of a file that is not UTF-8"))?;
            from = format!("{from}/{name}");
            let content = reader.read(&host).map_err(|what| value.error(what))?;
            self.files.push(FileEntry::of_root(from.clone(), content));
        } else if !make {
            return Err(value.error(format!("{}: no such file or folder", host.display())));
        }
        if self.files.len() > FILES_MAX {
            return Err(value.error(format!("more than {FILES_MAX} files")));
        }
        self.binds.push(Bind { from, path, writable });
        Ok(())
    }

    fn in_memory(&mut self, value: &Value, path: &str, options: &str) -> Result<(), Error> {
        let path = self.target(value, path)?;
        let mut kept = Vec::new();
        for option in options.split(',').filter(|option| !option.is_empty()) {
            let name = option.split_once('=').map_or(option, |(name, _)| name);
            match option.split_once('=') {
                Some((_, text)) if TMPFS_OPTIONS.contains(&name) => {
                    if text.is_empty()
                        || !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'%')
                    {
                        return Err(
                            value.error(format!("\"{}\" is not an option of tmpfs", option.escape_debug()))
                        );
                    }
                    kept.push(option.to_owned());
                }
                None if ["rw", "exec", "noexec", "suid", "nosuid", "dev", "nodev", "noatime"]
                    .contains(&name) => {}
                _ => {
                    return Err(value
                        .error(format!("there is no option \"{}\" of tmpfs here", option.escape_debug())));
                }
            }
        }
        self.tmpfs.push(Tmpfs { path, options: kept.join(",") });
        Ok(())
    }

    fn config(
        &mut self,
        document: &Document<'_>,
        kind: &str,
        folder: &str,
        item: &Value,
        reader: &mut Reader,
    ) -> Result<(), Error> {
        let (source, target) = if item.is_map() {
            item.only(&["source", "target", "uid", "gid", "mode"])?;
            let source = item.get("source")?.ok_or_else(|| item.error("\"source\" is missing"))?;
            (source, item.get("target")?)
        } else {
            (item.clone(), None)
        };
        let name = source.text()?;
        let all = if kind == "configs" { &document.configs } else { &document.secrets };
        let definition = all.entries()?.into_iter().find(|(key, _)| key.name == name);
        let Some((_, definition)) = definition else {
            return Err(source.error(format!("there is no \"{}\" in {kind}", name.escape_debug())));
        };
        let path = match &target {
            Some(value) if value.text()?.starts_with('/') => value.text()?.to_owned(),
            Some(value) => format!("{folder}/{}", value.text()?),
            None => format!("{folder}/{name}"),
        };
        let path = self.target(target.as_ref().unwrap_or(&source), &path)?;
        let last = path.rsplit('/').next().unwrap_or_default();
        let from = format!("{BINDS}/{}/{last}", self.binds.len());
        let number = |key: &str| -> Result<Option<String>, Error> {
            let Some(value) = (if item.is_map() { item.get(key)? } else { None }) else { return Ok(None) };
            let id = value.u64()?;
            if u32::try_from(id).is_err() {
                Err(value.error("a number of a user or group"))
            } else {
                Ok(Some(id.to_string()))
            }
        };
        let mode = match if item.is_map() { item.get("mode")? } else { None } {
            Some(value) => octal(&value)?,
            None => CONFIG_MODE,
        };
        self.files.push(FileEntry {
            guest_path: from.clone(),
            content: content(document, &definition, reader)?,
            owner: number("uid")?,
            group: number("gid")?,
            own_mode: Some(mode),
        });
        self.binds.push(Bind { from, path, writable: false });
        Ok(())
    }
}

/// Returns the content of a config or a secret.
fn content(
    document: &Document<'_>,
    definition: &Value,
    reader: &mut Reader,
) -> Result<std::sync::Arc<[u8]>, Error> {
    definition.only(&["file", "content", "environment", "name", "external", "labels", "template_driver"])?;
    if definition.get("external")?.is_some_and(|value| value.text().is_ok_and(|text| text != "false")) {
        return Err(definition.error("refused: its content is outside of the compose file; give it a file"));
    }
    if let Some(value) = definition.get("file")? {
        let host = host_path(&value, folder_of(&document.file), value.text()?)?;
        return reader.read(&host).map_err(|what| value.error(what));
    }
    if let Some(value) = definition.get("content")? {
        return Ok(value.text()?.as_bytes().into());
    }
    if let Some(value) = definition.get("environment")? {
        let name = value.text()?;
        let text = document.variables.get(name);
        return Ok(text
            .ok_or_else(|| value.error(format!("the variable {name} must be set")))?
            .into_bytes()
            .into());
    }
    Err(definition.error("one of \"file\", \"content\" and \"environment\" is missing"))
}

/// Checks the definition of a volume in the mapping `volumes`.
fn check_volume(volume: &Value) -> Result<(), Error> {
    volume.only(&["driver", "driver_opts", "external", "labels", "name"])?;
    if let Some(value) = volume.get("driver")?
        && value.text()? != "local"
    {
        return Err(value.error("refused: only the host can give other drivers than \"local\""));
    }
    if let Some(value) = volume.get("driver_opts")?
        && !value.entries()?.is_empty()
    {
        return Err(value.error("refused: options of drivers are about the host's filesystems"));
    }
    if let Some(value) = volume.get("external")?
        && !value.text().is_ok_and(|text| text == "false")
    {
        return Err(value.error("refused: its content is outside of the compose file"));
    }
    Ok(())
}

/// Reads permission bits in octal digits.
fn octal(value: &Value) -> Result<u32, Error> {
    let text = value.text()?;
    let digits = text.strip_prefix("0o").unwrap_or(text);
    let mode = u32::from_str_radix(digits, 8).ok().filter(|mode| *mode <= 0o7777 && !digits.starts_with('+'));
    mode.ok_or_else(|| value.error(format!("\"{}\" is not a mode such as 0440", text.escape_debug())))
}

/// Adds the files below a folder to `found`: the path below the folder, with a leading slash (`/a/b`), and the path on
/// the host. A link to a file outside of the project, or to a folder, is an error.
fn walk(
    folder: &Path,
    confines: &Path,
    prefix: &str,
    depth: usize,
    found: &mut Vec<(String, std::path::PathBuf)>,
) -> Result<(), String> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(format!("{}: more than {DEPTH_MAX} folders deep", folder.display()));
    };
    let failed = |error: std::io::Error| format!("{}: {}", folder.display(), in_words(&error));
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        names.push(entry.map_err(failed)?.file_name());
        if names.len() > FILES_MAX {
            return Err(format!("{}: more than {FILES_MAX} files", folder.display()));
        }
    }
    names.sort();
    for name in names {
        let path = folder.join(&name);
        let name = name.to_str().ok_or_else(|| format!("{}: a name that is not UTF-8", path.display()))?;
        let real =
            path.canonicalize().map_err(|error| format!("{}: {}", path.display(), in_words(&error)))?;
        if !real.starts_with(confines) {
            return Err(format!("{} leads out of the compose file's folder", path.display()));
        }
        let name = format!("{prefix}/{name}");
        if real.is_dir() {
            if path.is_symlink() {
                return Err(format!("{} is a link to a folder", path.display()));
            }
            walk(&path, confines, &name, depth, found)?;
        } else {
            found.push((name, real));
        }
        if found.len() > FILES_MAX {
            return Err(format!("{}: more than {FILES_MAX} files", folder.display()));
        }
    }
    Ok(())
}
