//! `everett completions`, `everett man` and the Debian package: bash accepts the completions, and each command has a
//! man page.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use clap::CommandFactory;
use everett::commands::Cli;

fn everett(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_everett")).args(args).output().expect("the program starts")
}

fn commands() -> BTreeSet<String> {
    let cli = Cli::command();
    cli.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| c.get_name().to_owned()).collect()
}

/// Script that asks the completion function for completions of the word `expl`.
const ASK_BASH: &str =
    "\nCOMP_WORDS=(everett expl); COMP_CWORD=1; _everett everett expl everett; echo \"${COMPREPLY[@]}\"\n";

#[test]
fn completions_name_each_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = everett(&["completions", shell]);
        assert!(output.status.success(), "{shell}: {output:?}");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        for command in commands() {
            assert!(text.contains(&command), "{shell}: no `{command}`");
        }
    }
}

#[test]
fn bash_reads_its_completions() {
    let text = everett(&["completions", "bash"]).stdout;
    let mut bash = Command::new("bash")
        .arg("-s")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bash");
    let mut stdin = bash.stdin.take().expect("a pipe");
    stdin.write_all(&text).expect("bash reads");
    stdin.write_all(ASK_BASH.as_bytes()).expect("bash reads");
    drop(stdin);
    let output = bash.wait_with_output().expect("bash ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "explore\n", "{output:?}");
}

#[test]
fn each_command_has_a_man_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("man1");
    let output = everett(&["man", pages.to_str().expect("UTF-8")]);
    assert!(output.status.success(), "{output:?}");
    let names: BTreeSet<String> = fs::read_dir(&pages)
        .expect("the folder was made")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    for command in commands() {
        let page = format!("everett-{command}.1");
        assert!(names.contains(&page), "no {page} in {names:?}");
        let text = fs::read_to_string(pages.join(&page)).expect("a page");
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{page}: {text}");
    }
    assert!(names.contains("everett.1"), "{names:?}");
}

#[test]
fn a_file_in_the_place_of_the_folder_is_an_error_of_one_line() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_str().expect("UTF-8");
    let output = everett(&["man", path]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(error.lines().count() == 1 && error.contains(path), "{error}");
}

/// Runs a command that must succeed. Returns its standard output.
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Installs the package in a separate root, uses its files, and removes it.
#[test]
fn the_debian_package_has_the_program_completions_and_pages() {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        eprintln!("skipped: the host has no dpkg-deb");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/deb");
    let program = env!("CARGO_BIN_EXE_everett");
    let package = done(Command::new(script).arg("-o").arg(folder.path()).args(["--program", program]));
    let package = package.trim_end();

    let root = folder.path().join("root");
    let state = root.join("var/lib/dpkg");
    fs::create_dir_all(state.join("updates")).expect("a folder");
    fs::create_dir_all(state.join("info")).expect("a folder");
    fs::write(state.join("status"), "").expect("a file");
    let dpkg = |action: &[&str]| {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg("--root").arg(&root).arg("--log=/dev/null");
        // The root has none of the packages that Everett depends on, and the test may run without privileges.
        done(dpkg.args(["--force-depends", "--force-not-root", "--force-bad-path"]).args(action))
    };
    dpkg(&["--install", package]);

    let version = done(Command::new(root.join("usr/bin/everett")).arg("--version"));
    assert_eq!(version, done(Command::new(program).arg("--version")));
    let completions = root.join("usr/share/bash-completion/completions/everett");
    let ask = format!(". '{}'{ASK_BASH}", completions.display());
    assert_eq!(done(Command::new("bash").args(["-c", &ask])), "explore\n");
    for file in ["zsh/vendor-completions/_everett", "fish/vendor_completions.d/everett.fish"] {
        let text = fs::read_to_string(root.join("usr/share").join(file)).expect("completions");
        assert!(text.contains("explore"), "{file}");
    }
    for command in commands() {
        let page = root.join(format!("usr/share/man/man1/everett-{command}.1.gz"));
        assert!(done(Command::new("gzip").arg("-dc").arg(page)).contains(".SH SYNOPSIS"), "{command}");
    }
    let documents = root.join("usr/share/doc/everett");
    for file in ["README.md", "docs/guide.md", "docs/design/cpu.md", "copyright", "changelog.gz"] {
        assert!(documents.join(file).is_file(), "{file}");
    }

    dpkg(&["--purge", "everett"]);
    assert!(!root.join("usr/bin/everett").exists() && !documents.exists());
}
