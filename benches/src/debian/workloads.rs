//! Workloads of the Debian guest, with the packages and files that they need.

use super::packages::{BUSYBOX, UNPACKER};

/// Name of the script that runs workloads. Its arguments are their names.
pub(super) const RUN: &str = "run.sh";
/// Packages for the start of workloads, in guests and on the host.
const OWN_PACKAGES: [&str; 2] = [BUSYBOX, UNPACKER];

/// Piece of text that a script needs, as the name and the content of a file.
type File = (&'static str, &'static str);

/// Program, or a server with its client, that does a fixed amount of work.
#[derive(Debug, PartialEq)]
pub struct Workload {
    /// Name by which an operator chooses the workload. Its script is the file `NAME.sh`.
    pub name: &'static str,
    /// Parts that are measured separately, in the order of execution. The guest prints these names in marks, i.e. lines
    /// that say when a part begins or ends.
    pub parts: &'static [&'static str],
    packages: &'static [&'static str],
    /// Script and its input.
    files: &'static [File],
}

/// Returns the name and the content of files in the folder `workloads`.
macro_rules! files {
    ($($name:literal),+) => { &[$(($name, include_str!(concat!("workloads/", $name)))),+] };
}

/// All workloads, in the order of execution.
pub const WORKLOADS: [Workload; 7] = [
    Workload { name: "sha256", parts: &["sha256"], packages: &[], files: files!["sha256.sh"] },
    Workload {
        name: "sqlite3",
        parts: &["sqlite3"],
        packages: &["sqlite3"],
        files: files!["sqlite3.sh", "sqlite3.sql"],
    },
    Workload {
        name: "redis",
        parts: &["redis"],
        packages: &["redis-server", "redis-tools"],
        files: files!["redis.sh"],
    },
    Workload {
        name: "python",
        parts: &["python_start", "python_objects", "python_floats"],
        packages: &["python3"],
        files: files!["python.sh", "objects.py", "floats.py"],
    },
    Workload {
        name: "postgres",
        parts: &["postgres_initdb", "postgres_load", "postgres_transactions"],
        packages: &["postgresql-15"],
        files: files!["postgres.sh"],
    },
    Workload {
        name: "jvm",
        parts: &["jvm_start", "jvm_h2"],
        packages: &["default-jre-headless", "libh2-java"],
        files: files!["jvm.sh", "h2.sql"],
    },
    Workload {
        name: "node",
        parts: &["node_start", "node_objects"],
        packages: &["nodejs"],
        files: files!["node.sh", "objects.js"],
    },
];

/// Returns the workloads with these names, in the order of execution. Without names, returns all workloads.
///
/// # Errors
/// Returns a one-line message if there is no workload with one of the names.
pub fn chosen(names: &[String]) -> Result<Vec<&'static Workload>, String> {
    if let Some(unknown) = names.iter().find(|&name| !WORKLOADS.iter().any(|workload| workload.name == name))
    {
        let all = WORKLOADS.map(|workload| workload.name).join(", ");
        return Err(format!("there is no workload {unknown:?}; choose from: {all}"));
    }
    let wanted = |workload: &&Workload| names.is_empty() || names.iter().any(|name| name == workload.name);
    Ok(WORKLOADS.iter().filter(wanted).collect())
}

/// Returns the packages of all workloads. An image has all of them, so any choice of workloads needs the same image.
pub(super) fn packages() -> Vec<String> {
    let packages = WORKLOADS.iter().flat_map(|workload| workload.packages);
    OWN_PACKAGES.iter().chain(packages).map(|&package| package.to_owned()).collect()
}

/// Returns the scripts of all workloads and their input.
pub(super) fn files() -> Vec<File> {
    let run = (RUN, include_str!("workloads/run.sh"));
    let files = WORKLOADS.iter().flat_map(|workload| workload.files);
    std::iter::once(run).chain(files.copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::{WORKLOADS, chosen};

    #[test]
    fn each_script_runs_the_parts_of_its_workload_in_their_order() {
        for workload in &WORKLOADS {
            let script = workload.files.iter().find(|(name, _)| *name == format!("{}.sh", workload.name));
            let (_, text) = script.expect("a script");
            let calls = text.lines().filter_map(|line| line.strip_prefix("part "));
            assert_eq!(calls.collect::<Vec<_>>(), workload.parts);
        }
    }

    #[test]
    fn scripts_name_the_files_that_they_have() {
        for workload in &WORKLOADS {
            let (_, script) = workload.files[0];
            let named = script.split("$here/").skip(1).filter_map(|rest| rest.split('"').next());
            let others: Vec<_> = workload.files[1..].iter().map(|(name, _)| *name).collect();
            assert_eq!(named.collect::<Vec<_>>(), others);
        }
    }

    #[test]
    fn a_choice_is_in_the_order_of_execution() {
        let names = |only: &[&str]| {
            let only: Vec<_> = only.iter().map(|&name| name.to_owned()).collect();
            chosen(&only).map(|workloads| workloads.iter().map(|workload| workload.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["redis", "sha256", "redis"]), Ok(vec!["sha256", "redis"]));
        assert_eq!(names(&[]).map(|all| all.len()), Ok(WORKLOADS.len()));
        let error = names(&["sha256", "go"]).expect_err("an unknown name");
        assert!(error.starts_with("there is no workload \"go\"; choose from: sha256, sqlite3"), "{error}");
    }
}
