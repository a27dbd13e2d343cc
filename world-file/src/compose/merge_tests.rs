//! Tests of merged files: positions of errors, tags, paths, and lists of files. Tests in `everett/tests/` compare the
//! result with that of the compose command.

use std::path::PathBuf;

use everett_streams::Seed;

use super::tests::Project;
use crate::{World, load};

const FIRST: &str = "services:\n  a:\n    image: i\n    volumes: [\"./f:/f\"]\n";

/// Reads a project whose files are `compose.yaml` and, merged over it, `more.yaml`.
fn both(project: &Project, first: &str, more: &str) -> Result<World, String> {
    project.write("f", "1").write("compose.yaml", first).write("more.yaml", more);
    read(project, &["compose.yaml", "more.yaml"])
}

fn read(project: &Project, names: &[&str]) -> Result<World, String> {
    let files: Vec<PathBuf> = names.iter().map(|name| project.0.path().join(name)).collect();
    load(&crate::listed(files.iter().map(PathBuf::as_path))).map_err(|error| {
        let error = error.to_string();
        assert!(!error.contains('\n'), "{error}");
        error.replace(&format!("{}/", project.0.path().display()), "")
    })
}

#[test]
fn errors_name_the_file_that_is_wrong() {
    let project = Project::new();
    for (more, what) in [
        (
            "services:\n  a:\n    imge: j\n",
            "more.yaml:3: services.a.imge: unknown key; did you mean \"image\"?",
        ),
        ("services:\n  a:\n    user: [x]\n", "more.yaml:3: services.a.user: expected a text, found a list"),
        ("services:\n  b: {}\n", "more.yaml:2: services.b: \"image\" is missing"),
        ("servces: {}\n", "more.yaml:1: servces: unknown key; did you mean \"services\"?"),
        ("services:\n  a: { user: !reset\n", "more.yaml:3: not YAML"),
        ("services:\n  a:\n    !reset user: x\n", "more.yaml:3: the key has the tag \"!reset\""),
        ("services:\n  a:\n    user: !other x\n", "more.yaml:3: the tag \"!other\" has no meaning here"),
        ("!reset\nservices: {}\n", "the whole file is reset"),
        ("services: !reset\n", "a compose file needs at least one service"),
        (
            "x-everett: { fauts: {} }\nservices: {}\n",
            "more.yaml:1: x-everett.fauts: unknown key; did you mean \"faults\"?",
        ),
    ] {
        let said = both(&project, FIRST, more).expect_err(more);
        assert!(said.contains(what), "{more}: {said}");
    }
    // An error in the first file keeps its position.
    let said =
        both(&project, "services:\n  a: { image: i, user: [x] }\n", "services: { a: { hostname: h } }\n");
    assert!(said.unwrap_err().starts_with("compose.yaml:2: services.a.user"));
    let said = read(&project, &["compose.yaml", "none.yaml"]).unwrap_err();
    assert_eq!(said, "none.yaml: no such file or folder");
    let many = vec!["compose.yaml"; 17];
    assert!(read(&project, &many).unwrap_err().ends_with("17 compose files; at most 16 are merged"));
}

#[test]
fn tags_reset_and_replace() {
    let project = Project::new();
    let command = |more: &str| {
        let world = both(&project, "services: { a: { image: i, environment: { A: 1, B: 2 } } }", more);
        let world = world.unwrap_or_else(|error| panic!("{error}"));
        let env = &world.nodes[0].services[0].command.env;
        env.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(command("services: { a: { environment: { B: 3, C: 4 } } }"), "A=1 B=3 C=4");
    assert_eq!(command("services: { a: { environment: !override { C: 4 } } }"), "C=4");
    assert_eq!(command("services: { a: { environment: !reset { C: 4 } } }"), "");
    assert_eq!(command("services: { a: { environment: { A: !reset null, C: 4 } } }"), "B=2 C=4");
    assert_eq!(command("services: { a: !override { image: j, environment: { D: 5 } } }"), "D=5");
    // In a single file, a value with `!reset` is left out.
    let alone = project.world("services: { a: { image: i, user: !reset x, hostname: !override h } }");
    assert_eq!(alone.nodes[0].services[0].command.user, None);
    let said = project.read(
        "services: { a: { image: i, environment: !reset &e { A: 1 } }, b: { image: i, environment: *e } }",
    );
    assert!(said.unwrap_err().contains("this alias refers to a value that contains it, or that is reset"));
}

#[test]
fn the_block_of_the_last_file_replaces_that_of_the_first() {
    let project = Project::new();
    let with = |name: &str| format!("services: {{ a: {{ image: i }} }}\nx-everett:\n  seed: {name}\n");
    assert_eq!(both(&project, &with("1"), &with("2")).unwrap().seed, Some(Seed::new(2)));
    assert_eq!(both(&project, &with("1"), "services: {}\n").unwrap().seed, Some(Seed::new(1)));
    let said = both(&project, &with("1"), "\n\nx-everett:\n  seed: x\n").unwrap_err();
    assert!(said.starts_with("more.yaml:4: x-everett.seed"), "{said}");
}

#[test]
fn relative_paths_start_in_the_folder_of_the_first_file() {
    let project = Project::new();
    project.write("compose.yaml", FIRST).write("f", "1").write("deploy/g", "wrong").write("g", "right");
    project.write("deploy/prod.yaml", "services: { a: { volumes: [\"./g:/g\"] } }\n");
    let world =
        read(&project, &["compose.yaml", "deploy/prod.yaml"]).unwrap_or_else(|error| panic!("{error}"));
    let contents: Vec<&[u8]> = world.nodes[0].files.iter().map(|file| &*file.content).collect();
    assert_eq!(contents, [&b"1"[..], b"right"]);
    assert_eq!(world.files().count(), 2);
}

#[test]
fn a_colon_in_a_name_is_no_separator() {
    let project = Project::new();
    project.write("a:b.yaml", "services: { a: { image: i } }\n");
    assert_eq!(read(&project, &["a:b.yaml"]).unwrap().nodes.len(), 1);
    assert!(read(&project, &["a:c.yaml"]).unwrap_err().ends_with("a:c.yaml: no such file or folder"));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(512))]
    #[test]
    fn merging_never_panics(
        first in "(services|x-a|volumes): *\\{ ?[a-c]: \\{ ?(image|environment|volumes|build|extra_hosts): (!reset |!override )?[\\[{]?[a-c=: ,]{0,9}[\\]}]? ?\\} ?\\}",
        second in "(services|x-a|volumes): *(!reset |!override )?\\{ ?[a-c]: (!reset )?\\{ ?(image|environment|volumes|build|extra_hosts): (!reset |!override )?[\\[{]?[a-c=: ,]{0,9}[\\]}]? ?\\} ?\\}",
    ) {
        let _ = both(&Project::new(), &first, &second);
    }
}
