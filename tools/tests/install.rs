//! `everett completions` and `everett man`: bash accepts its completions, and each command has a man page.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use clap::CommandFactory;
use everett_tools::cli::Cli;

fn everett(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_everett")).args(args).output().expect("the program starts")
}

fn commands() -> BTreeSet<String> {
    let cli = Cli::command();
    cli.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| c.get_name().to_owned()).collect()
}

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
    // Calls the completion function for a first word `expl`.
    let ask = "\nCOMP_WORDS=(everett expl); COMP_CWORD=1; _everett everett expl everett; echo \"${COMPREPLY[@]}\"\n";
    stdin.write_all(ask.as_bytes()).expect("bash reads");
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
