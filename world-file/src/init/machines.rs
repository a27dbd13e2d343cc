//! Writes drafts of world files for machines with images, packages and programs.

use std::fmt::Write as _;
use std::path::Path;

use everett_elf::Needs;
use everett_image_origin::ImageOrigin;

use super::common::{Answering, faults, head, image_table, properties, ready, workload};
use super::elf;
use super::error::Error;
use super::servers::{self, IMAGE_MEMORY, NODES, STATE, Server, Start};
use super::subject::program;
use super::text::{label, list, quoted};
use super::{ImageFacts, Parts, Wanted, named_from};
use crate::image::is_package;

/// Memory of a machine whose server Everett does not know.
pub(super) const MEMORY: &str = "256M";
/// Time within which an image's server must become ready. Many entrypoints create a database at the first start.
const IMAGE_READY_TIMEOUT: &str = "180s";
/// Time within which a server with state must become ready at its first start.
const STATE_READY_TIMEOUT: &str = "180s";
/// Comment in a draft above the first machine, if there are several machines.
pub(super) const HAS_PEERS: &str = "# Machines reach each other by their names.\n";

/// Comment in a draft for a machine without a disk.
pub(super) const MAY_HAVE_DISK: &str = "# disk = { path = \"/data\", size = \"256M\", owner = \"USER\" } \
                                        # files there survive a power loss\n";

/// Returns the names of the machines: `base`, or `base` with numbers if there are several.
pub(super) fn names(base: &str, wanted: &Wanted) -> Vec<String> {
    match wanted.nodes {
        None | Some(1) => vec![base.to_owned()],
        Some(count) => (1..=count).map(|number| format!("{base}-{number}")).collect(),
    }
}

/// Returns, for each machine, the server to which a check connects.
fn answering<'s>(names: &'s [String], port: u16, server: Option<&'static Server>) -> Vec<Answering<'s>> {
    names.iter().map(|node| Answering { node, port, server }).collect()
}

/// Returns a draft of machines with a Debian package.
pub(super) fn of_package(name: &str, wanted: &Wanted) -> Result<Parts, Error> {
    if !is_package(name) {
        return Err(Error::Package(name.to_owned()));
    }
    let Some(server) = servers::of_package(name) else { return Ok(of_unknown_package(name, wanted)) };
    let names = names(&label(name.split('=').next().unwrap_or(name)), wanted);
    let port = wanted.port.unwrap_or(server.port);
    let mut text = head("A server from a Debian package.") + &image_table();
    for node in &names {
        if node == &names[0] && names.len() > 1 {
            text += HAS_PEERS;
        }
        let _ = write!(
            text,
            "[[node]]\nname = {}\nmemory = \"{}\"\npackages = {}\n",
            quoted(node),
            server.memory,
            list(&[name])
        );
        if let Some(size) = server.state {
            let owner = server.user.map_or(String::new(), |user| format!(", owner = \"{user}\""));
            let _ = writeln!(
                text,
                "disk = {{ path = \"{STATE}\", size = \"{size}\"{owner} }} # its files survive a power loss"
            );
        }
        text += "\n[[node.service]]\nname = \"server\"\n";
        match server.start {
            // Every known server with a package has a command line or a script, so this does not occur.
            Start::None => {}
            Start::Argv(argv) => drop(writeln!(text, "argv = {}", list(argv))),
            Start::Script(script) => {
                let script = script.replace(NODES, &names.join(" "));
                let _ = writeln!(text, "argv = [\"sh\", \"-c\", '''{script}''']");
            }
        }
        for (variable, value) in server.env {
            let _ = writeln!(text, "env.{variable} = {}", quoted(value));
        }
        if let Some(user) = server.user {
            let _ = writeln!(text, "user = {}", quoted(user));
        }
        let _ = writeln!(
            text,
            "ready = {} # the service is ready when this check passes",
            ready(port, Some(server))
        );
        if server.state.is_some() {
            let _ = writeln!(text, "ready_timeout = \"{STATE_READY_TIMEOUT}\"");
        }
        text.push('\n');
    }
    let load = Some((names[0].as_str(), server.load)).filter(|(_, argv)| !argv.is_empty());
    text += &workload(&answering(&names, port, Some(server)), load);
    text += &faults(names.len() > 1, server.state.is_some());
    text += &properties(&["server".to_owned()]);
    Ok(Parts { text, notes: Vec::new() })
}

/// Returns a draft of machines with a Debian package that Everett does not know. The machines boot, and the operator
/// adds the service.
fn of_unknown_package(name: &str, wanted: &Wanted) -> Parts {
    let names = names(&label(name.split('=').next().unwrap_or(name)), wanted);
    let mut text =
        head("A Debian package. Everett does not know how its server starts: complete [[node.service]].")
            + &image_table();
    let port = wanted.port.map_or_else(|| "PORT".to_owned(), |port| port.to_string());
    for node in &names {
        if node == &names[0] && names.len() > 1 {
            text += HAS_PEERS;
        }
        let _ = write!(
            text,
            "[[node]]\nname = {}\nmemory = \"{MEMORY}\"\npackages = {}\n{MAY_HAVE_DISK}\n\
             # Start the server in the foreground, and let it listen at 0.0.0.0.\n\
             # [[node.service]]\n# argv = [\"PROGRAM\", \"ARGUMENT\"]\n# user = \"USER\"\n\
             # ready = {{ tcp = {port} }}\n\n",
            quoted(node),
            list(&[name])
        );
    }
    text += &workload(&[], None);
    text += &faults(names.len() > 1, false);
    text += &properties(&[]);
    let notes =
        vec![format!("Everett does not know the server in {name}: write its command into [[node.service]]")];
    Parts { text, notes }
}

/// Returns a draft of machines with a container image.
pub(super) fn of_image(
    image: &ImageOrigin,
    words: &str,
    facts: &ImageFacts,
    wanted: &Wanted,
) -> Result<Parts, Error> {
    let (named, words) = match image {
        ImageOrigin::Layout { path, tag } => of_path(wanted, "oci", path, tag.as_deref())?,
        ImageOrigin::Archive { path, tag } => of_path(wanted, "oci-archive", path, tag.as_deref())?,
        _ => (words.to_owned(), words.to_owned()),
    };
    let server = servers::of_image(&words);
    // The usual port of a well-known server, if the image declares this port or no port at all.
    let usual =
        server.map(|server| server.port).filter(|port| facts.ports.is_empty() || facts.ports.contains(port));
    let port = wanted.port.or(usual).or(facts.ports.first().copied());
    let server = server.filter(|server| port == Some(server.port));
    let base = label(servers::image_name(&words));
    // The service of an image has the name of its node. The pattern `{base}-*` matches the names of several nodes.
    let unit = if wanted.nodes.is_some_and(|count| count > 1) { format!("{base}-*") } else { base.clone() };
    let names = names(&base, wanted);
    let memory = server.map_or(IMAGE_MEMORY, |server| server.image_memory);
    let mut text = head("A server from a container image.");
    let mut notes = Vec::new();
    for node in &names {
        if node == &names[0] && names.len() > 1 {
            text += HAS_PEERS;
        }
        let _ = write!(
            text,
            "[[node]]\nname = {}\nimage = {}\nmemory = \"{memory}\"\nvolumes = \"1G\"                   # size of the disk for the image's \
             volumes; its files survive a power loss\n\n\
             # The service runs the image's command. The keys argv, env, user and cwd change it.\n[[node.service]]\n",
            quoted(node),
            quoted(&named)
        );
        for (variable, value) in server.map_or(&[][..], |server| server.image_env) {
            let _ = writeln!(text, "env.{variable} = {}", quoted(value));
        }
        if let Some(argv) = server.map(|server| server.image_command).filter(|argv| !argv.is_empty()) {
            let _ = writeln!(
                text,
                "command = {} # the image's own command serves only its own machine",
                list(argv)
            );
        }
        match (facts.has_healthcheck && wanted.port.is_none(), port) {
            (true, _) => text += "# The image's healthcheck tells when the service is ready.\n",
            (false, Some(port)) => {
                let _ = writeln!(
                    text,
                    "ready = {} # the service is ready when this check passes",
                    ready(port, server)
                );
            }
            (false, None) => {
                text += "# ready = { tcp = PORT }           # without this key, the service counts as ready when it has started\n"
            }
        }
        let _ = writeln!(text, "ready_timeout = \"{IMAGE_READY_TIMEOUT}\"\n");
    }
    if port.is_none() {
        notes.push(
            "the image declares no port, so nothing checks whether its server answers; give --port, or write a [[workload.check]]".to_owned(),
        );
    }
    text += &workload(&port.map_or_else(Vec::new, |port| answering(&names, port, server)), None);
    text += &faults(names.len() > 1, true);
    text += &properties(&[unit]);
    Ok(Parts { text, notes })
}

/// Returns the text with which a world file refers to an image in a file or folder, and a name for the image's machine.
fn of_path(
    wanted: &Wanted,
    transport: &str,
    path: &Path,
    tag: Option<&str>,
) -> Result<(String, String), Error> {
    let place = named_from(&wanted.output, path)?;
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
    Ok(match tag {
        Some(tag) => (format!("{transport}:{place}:{tag}"), tag.to_owned()),
        // A path that starts with neither a dot nor a slash could be taken for an image's name.
        None if place.starts_with('/') => (place, stem),
        None => (format!("./{place}"), stem),
    })
}

/// Dynamic linker of programs that use glibc.
const GLIBC: &str = "/lib64/ld-linux-x86-64.so.2";
/// Dynamic linker of programs that use musl.
const MUSL: &str = "/lib/ld-musl-x86_64.so.1";
/// Names of libraries, each with the package of Debian bookworm that contains the library. The package is "" if every
/// root filesystem contains the library.
const LIBRARIES: [(&str, &str); 16] = [
    ("ld-linux-x86-64.so.2", ""),
    ("libc.so.6", ""),
    ("libm.so.6", ""),
    ("libpthread.so.0", ""),
    ("libdl.so.2", ""),
    ("librt.so.1", ""),
    ("libresolv.so.2", ""),
    ("libutil.so.1", ""),
    ("libgcc_s.so.1", "libgcc-s1"),
    ("libstdc++.so.6", "libstdc++6"),
    ("libssl.so.3", "libssl3"),
    ("libcrypto.so.3", "libssl3"),
    ("libz.so.1", "zlib1g"),
    ("libzstd.so.1", "libzstd1"),
    ("libsqlite3.so.0", "libsqlite3-0"),
    ("libc.musl-x86_64.so.1", "musl"),
];

/// Returns a draft of machines with a program of the host.
pub(super) fn of_program(path: &Path, arguments: &[String], wanted: &Wanted) -> Result<Parts, Error> {
    let content = program(path)?;
    let needs = elf::read(&content).map_err(|source| Error::Program { path: path.to_owned(), source })?;
    let from = named_from(&wanted.output, path)?;
    let file = from.rsplit('/').next().unwrap_or(&from);
    let names = names(&label(file), wanted);
    let (packages, mut notes) = packages_of(&needs);
    notes.extend(too_new(&needs));
    let kind =
        if needs.interpreter.is_some() { "a program with shared libraries" } else { "a static program" };
    let mut text = head(&format!("A server of this host: {kind}.")) + &image_table();
    let guest = format!("/opt/{file}");
    let argv: Vec<&str> =
        std::iter::once(guest.as_str()).chain(arguments.iter().map(String::as_str)).collect();
    for node in &names {
        if node == &names[0] && names.len() > 1 {
            text += HAS_PEERS;
        }
        let _ = writeln!(text, "[[node]]\nname = {}\nmemory = \"{MEMORY}\"", quoted(node));
        if !packages.is_empty() {
            let _ = writeln!(text, "packages = {} # packages with the program's libraries", list(&packages));
        }
        let _ = write!(
            text,
            "files = {{ {} = {} }} # Everett copies the file into the machine\n\
             disk = {{ path = \"/data\", size = \"256M\" }} # its files survive a power loss\n\n\
             [[node.service]]\nname = \"server\"\nargv = {}\ncwd = \"/data\"\n",
            quoted(&guest),
            quoted(&from),
            list(&argv)
        );
        match wanted.port {
            Some(port) => {
                let _ = writeln!(text, "ready = {{ tcp = {port} }}\n");
            }
            None => {
                text += "# ready = { tcp = PORT }           # without this key, the service counts as ready when it has started\n\n"
            }
        }
    }
    text += &workload(&[], None);
    if let Some(port) = wanted.port {
        let _ = write!(
            text,
            "# Everett connects over the network. This needs a server that listens at 0.0.0.0.\n# [[workload.check]]\n# name = \"answers\"\n# node = {}\n# tcp = \
             {port}\n\n",
            quoted(&names[0])
        );
    }
    text += &faults(names.len() > 1, true);
    text += &properties(&["server".to_owned()]);
    Ok(Parts { text, notes })
}

/// Newest symbol versions in the libraries of Debian bookworm, by prefix: glibc 2.36, and libstdc++ of GCC 12.
const SYMBOLS: [(&str, &[u32], &str); 2] =
    [("GLIBC_", &[2, 36], "glibc 2.36"), ("GLIBCXX_", &[3, 4, 30], "the libstdc++ of GCC 12")];

/// Returns a message for the operator if a program needs newer symbol versions than the machines' libraries have.
fn too_new(needs: &Needs<'_>) -> Option<String> {
    SYMBOLS.iter().find_map(|(prefix, most, library)| {
        let number = |version: &&str| -> Option<Vec<u32>> {
            version.strip_prefix(prefix)?.split('.').map(|part| part.parse().ok()).collect()
        };
        let newest = needs.versions.iter().filter_map(number).max()?;
        if newest.as_slice() <= *most {
            return None;
        }
        let newest: Vec<String> = newest.iter().map(u32::to_string).collect();
        Some(format!(
            "the program needs {prefix}{}, but machines of suite bookworm have {library} and cannot start it; build it on \
             bookworm or statically, or set a newer suite in [image]",
            newest.join(".")
        ))
    })
}

/// Returns the packages that contain a program's libraries and dynamic linker. Also returns lines for the operator
/// about libraries and linkers that Everett does not know.
fn packages_of(needs: &Needs<'_>) -> (Vec<&'static str>, Vec<String>) {
    let known =
        |name: &&str| LIBRARIES.iter().find(|(library, _)| library == name).map(|(_, package)| *package);
    let mut packages: Vec<&str> =
        needs.libraries.iter().filter_map(known).filter(|name| !name.is_empty()).collect();
    let mut notes = Vec::new();
    match needs.interpreter {
        None | Some(GLIBC) => {}
        Some(MUSL) => packages.push("musl"),
        Some(other) => notes
            .push(format!("Everett does not know the program's dynamic linker, {other:?}; add its package")),
    }
    packages.sort_unstable();
    packages.dedup();
    let unknown: Vec<String> =
        needs.libraries.iter().filter(|name| known(name).is_none()).map(|name| format!("{name:?}")).collect();
    if !unknown.is_empty() {
        notes.push(format!("add the Debian packages of these libraries to packages: {}", unknown.join(", ")));
    }
    (packages, notes)
}
