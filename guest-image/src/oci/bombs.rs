//! Tests with hostile images that would fill the host's memory or disk.

use std::fs;

use super::ImageOrigin;
use super::digest::{Digest, Hashed};
use super::limits::LAYERS_MAX;
use super::tests::{Lab, Layer, Parts, digest, gzip};
use crate::compression::expansion::{EXPANSION_MAX, FREE_BYTES};
use crate::space::RESERVE_BYTES;
use crate::space::tests::on_disk_with;

#[test]
fn bombs_are_refused() {
    let lab = Lab::new();
    // A stream of zeros is an archive without files. Everett decompresses the stream before it can know that.
    let zeros = || std::io::Read::take(std::io::repeat(0), 2 * FREE_BYTES);
    let bomb = zstd::encode_all(zeros(), 1).unwrap();
    assert!((bomb.len() as u64) < FREE_BYTES / EXPANSION_MAX, "{} bytes", bomb.len());
    // The layer's digest is right, so only the bound can refuse the layer.
    let mut whole = Hashed::new(zeros(), Digest::sha256_hasher());
    std::io::copy(&mut whole, &mut std::io::sink()).unwrap();
    let parts = Parts::packed(vec![(bomb.clone(), whole.finish().to_string())]);
    let layer = digest(&bomb);
    assert_eq!(
        lab.refused(&parts),
        format!("the layer {layer}: it unpacks to more than 1100 times its length and 256 MiB")
    );
    // The archive of an image can itself be a decompression bomb.
    let path = lab.path("image.tar.zst");
    fs::write(&path, &bomb).unwrap();
    let error = lab.get(&ImageOrigin::Archive { path, tag: None }).unwrap_err();
    assert!(
        error.ends_with("image.tar.zst: it unpacks to more than 1100 times its length and 256 MiB"),
        "{error}"
    );
    let mut many = Parts::of(&[Layer::new().done()]);
    many.layers = vec![many.layers[0].clone(); LAYERS_MAX + 1];
    assert_eq!(lab.refused(&many), "more than 256 layers");
    // Indexes are nested without end.
    let path = lab.layout("nested", &Parts::of(&[]));
    let mut index = fs::read_to_string(path.join("index.json")).unwrap();
    for _ in 0..6 {
        let digest = digest(index.as_bytes());
        fs::write(path.join("blobs/sha256").join(&digest["sha256:".len()..]), &index).unwrap();
        index = format!(
            "{{\"schemaVersion\":2,\"manifests\":[{{\"mediaType\":\"application/vnd.oci.image.index.v1+json\",\
             \"digest\":\"{digest}\",\"size\":{}}}]}}",
            index.len()
        );
    }
    fs::write(path.join("index.json"), index).unwrap();
    let error = lab.get_layout(&path).unwrap_err();
    assert!(error.ends_with("more than 4 indexes within one another"), "{error}");
}

#[test]
fn unpacking_leaves_space_on_the_disk() {
    let lab = Lab::new();
    let layer = Layer::new().file("a", &vec![7; 65 << 20]).done();
    let packed = gzip(&layer);
    let parts = Parts::packed(vec![(packed.clone(), digest(&layer))]);
    let full = |error: &str| error.ends_with("temporary; Everett leaves 256 MiB of the disk free");
    let error = on_disk_with(RESERVE_BYTES - 1, || lab.refused(&parts));
    assert!(error.starts_with("no space left in ") && full(&error), "{error}");
    let path = lab.path("image.tar.gz");
    fs::write(&path, &packed).unwrap();
    let archive = ImageOrigin::Archive { path, tag: None };
    let error = on_disk_with(RESERVE_BYTES - 1, || lab.get(&archive).unwrap_err());
    assert!(full(&error), "{error}");
    assert_eq!(fs::read_dir(lab.cache.temporary()).unwrap().count(), 0);
}
