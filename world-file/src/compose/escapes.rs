//! Tests of compose files that try to read files outside of their folder. Everett refuses all of them.

use std::fs;

use super::tests::Project;

#[test]
fn nothing_outside_of_the_project_is_read() {
    let outside = tempfile::NamedTempFile::new().unwrap();
    let project = Project::new();
    std::os::unix::fs::symlink(outside.path(), project.0.path().join("link")).unwrap();
    project.write("folder/f", "x");
    std::os::unix::fs::symlink(outside.path(), project.0.path().join("folder/link")).unwrap();
    let read = |lines: &str| project.read(&format!("services:\n  a:\n    image: i\n{lines}")).unwrap_err();
    for source in ["../x", "/etc/passwd", "~/x", "./a/../../x", "./link"] {
        let said = read(&format!("    volumes: [\"{source}:/x\"]\n"));
        assert_eq!(
            said,
            format!(
                "compose.yaml:4: services.a.volumes[0]: \"{source}\" is outside of the compose file's folder"
            )
        );
    }
    for source in ["../x", "/etc/passwd", "link"] {
        let said = read(&format!("    env_file: {source}\n"));
        assert!(said.ends_with("is outside of the compose file's folder"), "{said}");
    }
    let said = read("    volumes: [\"./folder:/x\"]\n");
    assert!(said.ends_with("leads out of the compose file's folder"), "{said}");
    let said = read("    volumes: [\"/var/run/docker.sock:/var/run/docker.sock\"]\n");
    assert!(said.ends_with("so there is no engine to talk to"), "{said}");
    let said = read("    build: ../x\n");
    assert!(said.ends_with("is outside of the compose file's folder"), "{said}");
}

#[test]
fn images_and_extended_files_outside_of_the_project_are_refused() {
    let other = Project::new();
    other.write("common.yaml", "services: { b: { image: secret } }").write("image.tar", "");
    other.write("layout/oci-layout", "{}").write("layout/index.json", "{}").write("Dockerfile", "FROM a");
    other.write("env", "A=secret").write("layout/blobs/sha256/00", "");
    let at = |path: &str| other.0.path().join(path).display().to_string();
    let project = Project::new();
    for name in ["common.yaml", "image.tar", "layout"] {
        std::os::unix::fs::symlink(at(name), project.0.path().join(name)).unwrap();
    }
    let outside = "is outside of the compose file's folder";
    let refused = |text: &str, what: &str| {
        let said = project.read(text).expect_err(text);
        assert!(
            said.starts_with("compose.yaml") && said.ends_with(what) && !said.contains("secret"),
            "{said}"
        );
    };
    for file in [at("common.yaml"), "../common.yaml".to_owned(), "common.yaml".to_owned()] {
        refused(&format!("services:\n  a: {{ extends: {{ file: \"{file}\", service: b }} }}\n"), outside);
    }
    // Paths of images, also in the block `x-everett`.
    let elsewhere = "an image outside of the compose file's folder; name it under [images] of a world file";
    let images = [
        at("image.tar"),
        format!("oci:{}:tag", at("layout")),
        format!("oci-archive:{}", at("image.tar")),
        format!("docker-archive:{}", at("image.tar")),
    ];
    for image in &images {
        refused(&format!("services:\n  a: {{ image: \"{image}\" }}\n"), elsewhere);
        refused(
            &format!("services:\n  a: {{ image: i }}\nx-everett:\n  images: {{ i: \"{image}\" }}\n"),
            elsewhere,
        );
    }
    for image in ["../image.tar", "oci:../layout:tag"] {
        refused(&format!("services:\n  a: {{ image: \"{image}\" }}\n"), elsewhere);
    }
    // Links in the project that lead out of it.
    for image in ["./image.tar", "oci:layout", "oci-archive:image.tar", "layout"] {
        project.read(&format!("services:\n  a: {{ image: \"{image}\" }}\n")).expect_err(image);
    }
    for (key, path) in [("kernel", "image.tar"), ("rootfs", "layout")] {
        let block =
            format!("services:\n  a: {{ image: i }}\nx-everett:\n  image: {{ {key}: \"{}\" }}\n", at(path));
        refused(&block, "leads out of the compose file's folder");
    }
    let mirror = "services:\n  a: { image: i }\nx-everett:\n  image: { mirror: \"file:/x\" }\n";
    refused(mirror, "a mirror outside of the compose file's folder; name it in a world file");
    // Links in place of files that Everett or a builder reads: `.env`, a Dockerfile, the files of an image.
    let leads = "leads out of the compose file's folder";
    let link = |from: &str, name: &str| {
        let path = project.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(at(from), path).unwrap();
    };
    link("Dockerfile", "built/Dockerfile");
    refused("services:\n  a: { build: built }\n", leads);
    link("Dockerfile", "built/other");
    refused("services:\n  a: { build: { context: built, dockerfile: other } }\n", leads);
    project.write("ours/Dockerfile", "FROM a");
    link("env", "ours/.dockerignore");
    refused("services:\n  a: { build: ours }\n", leads);
    project.write("mine/oci-layout", "{}").write("mine/blobs/sha256/11", "");
    link("layout/index.json", "mine/index.json");
    refused("services:\n  a: { image: \"oci:mine\" }\n", leads);
    project
        .write("yours/oci-layout", "{}")
        .write("yours/index.json", "{}")
        .write("yours/blobs/sha256/11", "");
    link("layout/blobs/sha256/00", "yours/blobs/sha256/00");
    refused("services:\n  a: { image: \"oci:yours\" }\n", leads);
    link("env", ".env");
    refused("services:\n  a: { image: i }\n", leads);
}

#[test]
fn images_of_the_project_may_be_named_by_absolute_paths() {
    let project = Project::new();
    project.write("image.tar", "").write("layout/oci-layout", "{}").write("layout/index.json", "{}");
    project.write("layout/blobs/sha256/00", "").write("common.yaml", "services: { b: { image: i } }");
    let at = |path: &str| project.0.path().join(path).display().to_string();
    for image in [at("image.tar"), format!("oci:{}", at("layout"))] {
        project.world(&format!("services:\n  a: {{ image: \"{image}\" }}\n"));
    }
    let file = at("common.yaml");
    project.world(&format!("services:\n  a: {{ extends: {{ file: \"{file}\", service: b }} }}\n"));
    // The operator wrote the world file, so it may name files elsewhere.
    project.write("compose.yaml", "services: { a: { image: i } }");
    let other = Project::new();
    other.write("image.tar", "");
    let image = other.0.path().join("image.tar");
    let text = format!("compose = \"compose.yaml\"\n[images]\ni = {:?}\n", image.display().to_string());
    crate::parse(&text, &project.0.path().join("world.toml")).unwrap();
}
