//! Parses the output of apt's commands.

use super::{Exact, Remote};

/// Parses the lines `Inst NAME (VERSION SUITE [ARCHITECTURE]) [...]` of a simulated installation. Returns each package
/// with its architecture.
pub(super) fn inst_lines(text: &str) -> Vec<(Exact, String)> {
    text.lines()
        .filter_map(|line| {
            let (name, rest) = line.strip_prefix("Inst ")?.split_once(' ')?;
            let rest = rest.split_once('(')?.1;
            let version = rest.split_once(' ')?.0;
            let architecture = rest.split_once(" [")?.1.split_once(']')?.0;
            let package = Exact { name: name.to_owned(), version: version.to_owned() };
            Some((package, architecture.to_owned()))
        })
        .collect()
}

/// Parses the lines `'URI' FILE BYTES SHA256:DIGEST` of `--print-uris`. FILE is `NAME_VERSION_ARCHITECTURE.deb`.
/// `path_of` turns a URI into a path below the base address of its archive.
pub(super) fn uri_lines(text: &str, path_of: impl Fn(&str) -> Option<String>) -> Vec<Remote> {
    text.lines()
        .filter_map(|line| {
            let (uri, rest) = line.strip_prefix('\'')?.split_once("' ")?;
            let mut words = rest.split(' ');
            let (file, bytes, digest) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
            let sha256 = digest.strip_prefix("SHA256:")?.to_owned();
            let mut parts = file.split('_');
            // In FILE, the colon after an epoch is percent-encoded.
            let (name, version) = (parts.next()?.to_owned(), parts.next()?.replace("%3a", ":"));
            let (file, path) = (file.to_owned(), path_of(uri));
            Some(Remote { package: Exact { name, version }, file, path, bytes, sha256 })
        })
        .collect()
}

/// Returns apt's first warning that the lists of a source could not be updated.
pub(super) fn failed_source(stderr: &str) -> Option<String> {
    // Messages of apt 1.8 to 3.0 in the C locale.
    const FAILURES: [&str; 5] = [
        "Failed to fetch ",
        "Some index files failed to download",
        "An error occurred during the signature verification",
        "GPG error: ",
        "OpenPGP signature verification failed: ",
    ];
    let warnings = stderr.lines().filter_map(|line| line.strip_prefix("W: "));
    let mut failed = warnings.filter(|line| FAILURES.iter().any(|failure| line.starts_with(failure)));
    failed.next().map(str::to_owned)
}

/// Returns apt's first error, or else its first warning, or else its first non-empty line. `None` if there is no line.
pub(super) fn complaint(stderr: &str) -> Option<String> {
    let starting = |mark: &str| stderr.lines().find_map(|line| line.strip_prefix(mark));
    let found = starting("E: ").or_else(|| starting("W: "));
    found.or_else(|| stderr.lines().find(|line| !line.trim().is_empty())).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{complaint, failed_source, inst_lines, uri_lines};

    #[test]
    fn simulated_installations_are_read() {
        let text = "Reading package lists...\n\
            Inst libc6 (2.36-9+deb12u14 Debian:12.15/oldstable [amd64]) []\n\
            Inst debconf (1.5.82 Debian:12.15/oldstable, Debian-Security:12/oldstable-security [all])\n\
            Conf libc6 (2.36-9+deb12u14 Debian:12.15/oldstable [amd64])\n";
        let lines = inst_lines(text);
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].0.name.as_str(), lines[0].0.version.as_str()), ("libc6", "2.36-9+deb12u14"));
        assert_eq!((lines[1].0.name.as_str(), lines[1].1.as_str()), ("debconf", "all"));
    }

    #[test]
    fn uri_lines_are_read_with_the_epoch_of_the_version() {
        let text = "'http://m/pool/redis_7.0.15-1%7edeb12u7_amd64.deb' redis-server_5%3a7.0.15-1~deb12u7_amd64.deb 73392 SHA256:1f43\nnoise\n";
        let [remote] = uri_lines(text, |uri| Some(uri.to_owned())).try_into().unwrap();
        assert_eq!(remote.package.version, "5:7.0.15-1~deb12u7");
        assert_eq!(remote.path.as_deref(), Some("http://m/pool/redis_7.0.15-1%7edeb12u7_amd64.deb"));
        assert_eq!((remote.bytes, remote.sha256.as_str()), (73_392, "1f43"));
    }

    #[test]
    fn errors_take_precedence_over_warnings() {
        assert_eq!(complaint("W: one\nE: two\n").as_deref(), Some("two"));
        assert_eq!(complaint("W: one\n").as_deref(), Some("one"));
        assert_eq!(complaint("\nplain\n").as_deref(), Some("plain"));
        assert_eq!(complaint(""), None);
    }

    #[test]
    fn warnings_about_outdated_lists_are_found() {
        let old = "W: Failed to fetch http://m/InRelease  Could not connect\nW: Some index files failed to download.\n";
        assert_eq!(
            failed_source(old).as_deref(),
            Some("Failed to fetch http://m/InRelease  Could not connect")
        );
        // Messages of apt 3.0, which verifies signatures with sqv.
        for failure in [
            "An error occurred during the signature verification. The repository is not updated and the previous index files \
             will be used. OpenPGP signature verification failed: http://m InRelease: Sub-process /usr/bin/sqv returned an \
             error code (1)",
            "OpenPGP signature verification failed: http://m InRelease: Sub-process /usr/bin/sqv returned an error code (1)",
        ] {
            assert_eq!(failed_source(&format!("W: {failure}\n")).as_deref(), Some(failure));
        }
        assert_eq!(
            failed_source("W: http://m/InRelease: Key is stored in legacy trusted.gpg keyring\n"),
            None
        );
    }
}
