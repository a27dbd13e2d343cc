//! Finds the package sources of a suite: the host's own mirrors if it has any, otherwise Debian's.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::archive_file::{decoded, encoded, is_path};

/// Address of Debian's mirrors, for hosts that have no source of the suite.
const MIRROR: &str = "http://deb.debian.org/debian";
const SECURITY_MIRROR: &str = "http://deb.debian.org/debian-security";
/// Paths at which the package debian-archive-keyring installs the keys of Debian's archives.
pub const KEYRINGS: [&str; 2] =
    ["/usr/share/keyrings/debian-archive-keyring.gpg", "/usr/share/keyrings/debian-archive-keyring.pgp"];

/// Start of all package paths in Debian's archives of security updates.
const SECURITY_POOL: &str = "pool/updates/";

/// Maximum length of a sources file, in bytes.
const SOURCES_BYTES_MAX: u64 = 1 << 20;

/// A source of packages (sources.list(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Base address of the archive.
    pub uri: String,
    /// Names of the suites at that address.
    pub suites: Vec<String>,
    /// Path of the file with the keys that sign the lists, or the keys themselves. If absent, apt uses its default
    /// keys.
    pub signed_by: Option<String>,
}

/// All sources of one suite, with the settings to reach them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    /// Name of the suite, for example `bookworm`.
    pub suite: String,
    /// Archives with packages of the suite.
    pub sources: Vec<Source>,
    /// apt's settings for proxies and certificates, and for checks of the dates of package lists.
    pub transport: Vec<(String, String)>,
}

impl Sources {
    /// Returns the host's sources of this suite, or Debian's if the host has none. If `mirror` is given, returns only
    /// this mirror.
    #[must_use]
    pub fn of_host(suite: &str, mirror: Option<&str>) -> Self {
        let sources = match mirror {
            Some(uri) => vec![source(uri, &[suite])],
            None => {
                let mut sources = Vec::new();
                for (name, text) in host_files(Path::new("/etc/apt")) {
                    sources.extend(if name.ends_with(".sources") {
                        deb822(&text, suite)
                    } else {
                        lines(&text, suite)
                    });
                }
                if sources.is_empty() { debian(suite) } else { sources }
            }
        };
        Sources { suite: suite.to_owned(), sources, transport: transport() }
    }

    /// Returns the addresses at which an archive's file may be, the most probable first. `path` is below the archive's
    /// base address. Only archives that are reached over http or https have addresses.
    pub(crate) fn addresses(&self, path: &str) -> Vec<String> {
        let is_http = |uri: &&str| uri.starts_with("http://") || uri.starts_with("https://");
        let mut bases: Vec<&str> = Vec::new();
        for base in self.sources.iter().map(|source| source.uri.trim_end_matches('/')).filter(is_http) {
            if !bases.contains(&base) {
                bases.push(base);
            }
        }
        let of_security = path.starts_with(SECURITY_POOL);
        bases.sort_by_key(|base| base.contains("security") != of_security);
        bases.into_iter().map(|base| format!("{base}/{}", encoded(path))).collect()
    }

    /// Returns the path of `uri` below the base address of its archive. `None` if `uri` is in no source's archive, or
    /// if the rest of `uri` is not a valid path.
    pub(crate) fn path_of(&self, uri: &str) -> Option<String> {
        let bases = self.sources.iter().map(|source| source.uri.trim_end_matches('/'));
        let rests = bases.filter_map(|base| uri.strip_prefix(base)?.strip_prefix('/'));
        let path = decoded(rests.min_by_key(|rest| rest.len())?)?;
        is_path(&path).then_some(path)
    }
}

/// Formats the sources as a file in the format of deb822(5).
impl fmt::Display for Sources {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Source { uri, suites, signed_by } in &self.sources {
            writeln!(out, "Types: deb\nURIs: {uri}\nSuites: {}\nComponents: main", suites.join(" "))?;
            if let Some(signed_by) = signed_by {
                writeln!(out, "Signed-By: {signed_by}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

/// True if this is a path at which the keys of Debian's archives are installed.
#[must_use]
pub fn is_keyring(signed_by: &str) -> bool {
    KEYRINGS.contains(&signed_by.trim())
}

fn source(uri: &str, suites: &[&str]) -> Source {
    let signed_by = KEYRINGS.iter().find(|path| Path::new(path).exists()).map(|&path| path.to_owned());
    Source { uri: uri.to_owned(), suites: suites.iter().map(ToString::to_string).collect(), signed_by }
}

fn debian(suite: &str) -> Vec<Source> {
    let (updates, security) = (format!("{suite}-updates"), format!("{suite}-security"));
    // Debian's rolling suite (`sid`, also called `unstable`) has no suite of updates and no security archive.
    if matches!(suite, "sid" | "unstable") {
        return vec![source(MIRROR, &[suite])];
    }
    vec![source(MIRROR, &[suite, &updates]), source(SECURITY_MIRROR, &[&security])]
}

/// True if `named`, the suite of a source, is `suite` itself, or its updates or security suite.
fn belongs(named: &str, suite: &str) -> bool {
    let rest = named.strip_prefix(suite);
    matches!(rest, Some("" | "-updates" | "-security" | "/updates"))
}

/// True if the address is a Debian archive. The address's path decides. The suite's name cannot decide, because an
/// archive of another organisation may have a suite of the same name.
fn is_debian(uri: &str) -> bool {
    let path = uri.trim_end_matches('/');
    let of_network =
        ["http:", "https:", "file:", "copy:", "mirror+"].iter().any(|kind| path.starts_with(kind));
    of_network
        && (path.ends_with("/debian")
            || path.ends_with("/debian-security")
            || path.contains("/archive/debian"))
}

fn host_files(folder: &Path) -> Vec<(String, String)> {
    let mut paths = vec![folder.join("sources.list")];
    if let Ok(entries) = fs::read_dir(folder.join("sources.list.d")) {
        paths.extend(entries.flatten().map(|entry| entry.path()));
    }
    paths.sort();
    let wanted = |name: &str| name.ends_with(".list") || name.ends_with(".sources");
    paths
        .into_iter()
        .filter_map(|path| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            // A file that this user cannot read is ignored. apt, run by the same user, could not read it either.
            if wanted(&name) {
                Some((name, everett_input::file::read_text(&path, SOURCES_BYTES_MAX).ok()?))
            } else {
                None
            }
        })
        .collect()
}

/// Parses one-line sources: `deb [options] URI SUITE COMPONENT...`.
fn lines(text: &str, suite: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some(rest) = line.strip_prefix("deb ").map(str::trim_start) else { continue };
        let (options, rest) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((options, rest)) => (options, rest),
            None => ("", rest),
        };
        let mut words = rest.split_whitespace();
        let (Some(uri), Some(named)) = (words.next(), words.next()) else { continue };
        if is_debian(uri) && belongs(named, suite) {
            let signed_by = options
                .split_whitespace()
                .find_map(|option| option.strip_prefix("signed-by="))
                .map(str::to_owned);
            sources.push(Source { uri: uri.to_owned(), suites: vec![named.to_owned()], signed_by });
        }
    }
    sources
}

/// Parses sources in the format of deb822(5): paragraphs of lines `Key: value`.
fn deb822(text: &str, suite: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    let text: String =
        text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    for paragraph in text.split("\n\n") {
        let field = |wanted: &str| {
            let mut value: Option<String> = None;
            for line in paragraph.lines() {
                match (&mut value, line.starts_with([' ', '\t'])) {
                    (Some(value), true) => {
                        value.push('\n');
                        value.push_str(line);
                    }
                    (Some(_), false) => break,
                    (None, _) => {
                        let (key, rest) = line.split_once(':').unwrap_or_default();
                        if key.eq_ignore_ascii_case(wanted) {
                            value = Some(rest.trim().to_owned());
                        }
                    }
                }
            }
            value.unwrap_or_default()
        };
        let enabled = !field("Enabled").eq_ignore_ascii_case("no");
        let binary = field("Types").split_whitespace().any(|kind| kind == "deb");
        if !enabled || !binary {
            continue;
        }
        let suites = field("Suites");
        let suites: Vec<String> =
            suites.split_whitespace().filter(|named| belongs(named, suite)).map(str::to_owned).collect();
        if suites.is_empty() {
            continue;
        }
        let signed_by = Some(field("Signed-By")).filter(|value| !value.is_empty());
        for uri in field("URIs").split_whitespace().filter(|uri| is_debian(uri)) {
            sources.push(Source {
                uri: uri.to_owned(),
                suites: suites.clone(),
                signed_by: signed_by.clone(),
            });
        }
    }
    sources
}

/// Returns the settings with which the host's apt reaches the network and checks the dates of package lists.
fn transport() -> Vec<(String, String)> {
    // A host without apt has no settings.
    let output = Command::new("apt-config").args(["dump", "--format", "%F %v%n", "Acquire"]).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    settings(&text)
}

fn settings(text: &str) -> Vec<(String, String)> {
    let kept = ["Acquire::http::", "Acquire::https::", "Acquire::Check-Valid-Until", "Acquire::Check-Date"];
    text.lines()
        .filter_map(|line| {
            let (key, value) = line.split_once(' ')?;
            let wanted = kept.iter().any(|prefix| key.starts_with(prefix));
            // Leaves out lists (`KEY::`), empty values, and values with a quotation mark, which apt's quoted strings
            // cannot contain.
            let plain = !key.ends_with("::") && !value.is_empty() && !value.contains('"');
            (wanted && plain).then(|| (key.to_owned(), value.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Source, Sources, deb822, debian, lines, settings};

    #[test]
    fn one_line_sources_are_read() {
        let text = "# deb http://x/debian bookworm main\n\
            deb [arch=amd64 signed-by=/k.gpg] http://mirror/debian bookworm main contrib # c\n\
            deb http://mirror/debian-security bookworm-security main\n\
            deb https://packages.other/apt bookworm main\ndeb-src http://mirror/debian bookworm main\n\
            deb http://mirror/debian trixie main\n";
        let sources = lines(text, "bookworm");
        assert_eq!(sources.len(), 2);
        assert_eq!(
            (sources[0].uri.as_str(), sources[0].signed_by.as_deref()),
            ("http://mirror/debian", Some("/k.gpg"))
        );
        assert_eq!(sources[1].suites, ["bookworm-security"]);
    }

    #[test]
    fn paragraphs_are_read() {
        let text = "Types: deb deb-src\n# a comment\nURIs: http://mirror/debian\n\
            Suites: bookworm bookworm-updates bookworm-backports\nComponents: main\nSigned-By:\n -----BEGIN\n .\n\n\
            Types: deb\nEnabled: no\nURIs: http://off/debian\nSuites: bookworm\n\n\
            Types: deb\nURIs: https://deb.nodesource.com/node_20.x\nSuites: nodistro\n";
        let sources = deb822(text, "bookworm");
        assert_eq!(sources.len(), 1);
        assert_eq!(sources[0].suites, ["bookworm", "bookworm-updates"]);
        assert_eq!(sources[0].signed_by.as_deref(), Some("\n -----BEGIN\n ."));
    }

    #[test]
    fn written_sources_are_read_back() {
        let sources =
            Sources { suite: String::from("trixie"), sources: debian("trixie"), transport: Vec::new() };
        assert_eq!(deb822(&sources.to_string(), "trixie"), sources.sources);
        assert_eq!(sources.sources[1].suites, ["trixie-security"]);
        assert_eq!(debian("sid").len(), 1);
    }

    #[test]
    fn paths_and_addresses_are_those_of_apt() {
        let all = |uris: &[&str]| {
            let source = |uri: &&str| Source { uri: (*uri).to_owned(), suites: Vec::new(), signed_by: None };
            let sources = uris.iter().map(source).collect();
            Sources { suite: String::from("bookworm"), sources, transport: Vec::new() }
        };
        let sources = all(&["http://m/debian", "http://m/debian-security/", "file:/m/debian"]);
        for (uri, path) in [
            ("http://m/debian/pool/main/g/g++_1%2b%7e%2525.deb", Some("pool/main/g/g++_1+~%25.deb")),
            ("http://m/debian-security/pool/updates/o.deb", Some("pool/updates/o.deb")),
            ("file:/m/debian/pool/x", Some("pool/x")),
            ("http://other/debian/pool/x", None),
            ("http://m/debian/pool/%2e%2e/x", None),
            ("http://m/debian/pool/x%2", None),
            ("http://m/debian/pool/x%zz", None),
            ("http://m/debian/pool/x%é", None),
            ("http://m/debian", None),
        ] {
            assert_eq!(sources.path_of(uri).as_deref(), path, "{uri}");
        }
        assert_eq!(
            sources.addresses("pool/main/g/g++_1+~%25.deb"),
            [
                "http://m/debian/pool/main/g/g%2b%2b_1%2b%7e%2525.deb",
                "http://m/debian-security/pool/main/g/g%2b%2b_1%2b%7e%2525.deb"
            ]
        );
        assert_eq!(sources.addresses("pool/updates/o.deb")[0], "http://m/debian-security/pool/updates/o.deb");
        // If one source's base address is below another's, `path_of` uses the longer base address. Two sources with the
        // same base address yield one address.
        assert_eq!(all(&["http://m", "http://m/a"]).path_of("http://m/a/pool/x").as_deref(), Some("pool/x"));
        let twice = all(&["https://m/", "http://m", "https://m"]);
        assert_eq!(twice.addresses("pool/x"), ["https://m/pool/x", "http://m/pool/x"]);
    }

    #[test]
    fn only_network_settings_are_copied_from_the_host() {
        let text = "Acquire::http::Proxy http://proxy:3128\nAcquire::Languages none\nAcquire::https:: x\n\
            Acquire::Check-Date false\nAcquire::http::User-Agent a\"b\n";
        let keys: Vec<String> = settings(text).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["Acquire::http::Proxy", "Acquire::Check-Date"]);
    }
}
