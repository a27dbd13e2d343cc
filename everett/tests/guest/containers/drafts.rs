//! Boots the first world files (drafts) that `everett init` makes from an image and from a compose file.
//! `everett/tests/guest/drafts.rs` does the same for packages.

use std::fs;
use std::path::Path;

use super::tools::program_image;
use crate::drafts::booted_with;

/// Server that appends a byte to a file in its volume when it starts, and sends `hello` to each client.
const SERVER: &str = r#"
use std::io::Write as _;
fn main() {
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open("/data/starts").unwrap();
    file.write_all(b"+").unwrap();
    let listener = std::net::TcpListener::bind("0.0.0.0:7000").unwrap();
    println!("serving");
    for client in listener.incoming() { let _ = client.unwrap().write_all(b"hello\n"); }
}
"#;

/// Makes an OCI image layout. Its image contains the server and declares the port and the volume of the server.
fn layout(folder: &Path) {
    let program = ["--config.entrypoint", "/program"];
    let told = ["--config.exposedports", "7000/tcp", "--config.volume", "/data"];
    program_image(folder, &folder.join("layout"), "box", SERVER, &[&program[..], &told].concat());
}

const COMPOSE: &str = r#"
services:
  front:
    image: own/box:1
    ports: ["8080:7000"]
    depends_on: [back]
  back:
    image: own/box:1
    expose: [7000]
"#;

/// Asserts that a process printed a line. `said` is the output of `everett run` with several machines.
fn assert_printed(said: &str, unit: &str, line: &str) {
    let of_unit = |shown: &str| shown.trim_end().ends_with(&format!("/{unit}"));
    let is_there =
        |shown: &str| shown.split_once(" | ").is_some_and(|(by, text)| text == line && of_unit(by));
    assert!(said.lines().any(is_there), "{unit}: {line}: {said}");
}

#[test]
fn an_image_and_a_compose_file_become_worlds_that_answer() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    layout(folder);
    let (draft, said) = booted_with(folder, &["--image", "oci:layout:box", "--nodes", "2"], "");
    assert!(draft.contains("\nready = { tcp = 7000 }"), "{draft}");
    for node in ["box-1", "box-2"] {
        assert_printed(&said, node, "serving");
        assert_printed(&said, &format!("{node}-answers"), "hello");
    }

    // Renames the draft, because `everett init` does not overwrite files.
    fs::rename(folder.join("world.toml"), folder.join("image.toml")).unwrap();
    fs::write(folder.join("compose.yaml"), COMPOSE).unwrap();
    let images = "\n[images]\n\"own/box:1\" = \"oci:layout:box\"\n";
    let (draft, said) = booted_with(folder, &[], images);
    for service in ["back", "front"] {
        assert!(draft.contains(&format!("\n\"{service}\" = {{ tcp = 7000 }}\n")), "{draft}");
        assert_printed(&said, service, "serving");
    }
    assert_printed(&said, "front-answers", "hello");
    assert!(!said.contains("back-answers"), "no port of back is published: {said}");
}
