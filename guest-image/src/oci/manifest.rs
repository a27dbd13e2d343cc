//! Chooses an image from indexes and manifests.
//!
//! The formats are those of the OCI image specification. Docker's "Image Manifest V2, Schema 2" has the same structure.

use serde::Deserialize;

use super::blobs::{self, Blobs};
use super::digest::Digest;
use super::documents::{Descriptor, Index, Manifest, Platform};
use super::error::Problem;
use super::limits::LAYERS_MAX;
use super::resolved_image::{LayerBlob, ResolvedImage};
use super::{CONFIG_BYTES_MAX, digest};

/// Maximum length of an index or a manifest, in bytes. Registries have the same bound.
pub(super) const MANIFEST_BYTES_MAX: u64 = 4 << 20;

/// Maximum number of entries of an index.
const INDEX_ENTRIES_MAX: usize = 1_000;

/// Maximum number of nested indexes between a layout and its manifests.
const INDEX_DEPTH_MAX: usize = 4;

/// Annotation with the image's name in a layout.
const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// Annotation with the image's full name. containerd and Docker write it.
const IMAGE_NAME: &str = "io.containerd.image.name";

/// Returns the image with the name `tag` in an index. Without a name, returns the only image.
pub(super) fn of_index(
    blobs: &mut dyn Blobs,
    index: &[u8],
    tag: Option<&str>,
) -> Result<ResolvedImage, Problem> {
    let index = parse_index(index)?;
    let images = || images(&index);
    let names = || {
        let mut names: Vec<String> = images().filter_map(|one| name_of(one).map(str::to_owned)).collect();
        names.dedup();
        names
    };
    let chosen: Vec<&Descriptor> = match tag {
        Some(tag) => images().filter(|one| is_named(one, tag)).collect(),
        None => images().collect(),
    };
    if let (Some(tag), true) = (tag, chosen.is_empty()) {
        return Err(Problem::NoTag { tag: tag.to_owned(), names: names() });
    }
    let chosen = for_this_platform(&chosen)?;
    let mut digests: Vec<&str> = chosen.iter().map(|one| &one.digest[..]).collect();
    digests.dedup();
    match (chosen.first(), digests.len()) {
        (Some(only), 1) => of_descriptor(blobs, only, INDEX_DEPTH_MAX),
        _ => Err(Problem::Several { transport: blobs.transport(), names: names() }),
    }
}

/// Returns the images for linux on amd64. If there are none, returns the images that name no platform.
fn for_this_platform<'a>(images: &[&'a Descriptor]) -> Result<Vec<&'a Descriptor>, Problem> {
    let is_ours = |one: &&&Descriptor| one.platform.as_ref().is_some_and(Platform::is_ours);
    let ours: Vec<&Descriptor> = images.iter().filter(is_ours).copied().collect();
    if !ours.is_empty() {
        return Ok(ours);
    }
    let silent: Vec<&Descriptor> = images.iter().filter(|one| one.platform.is_none()).copied().collect();
    if silent.is_empty() {
        let platform = |one: &&Descriptor| one.platform.as_ref().map(ToString::to_string);
        let mut names: Vec<String> = images.iter().filter_map(platform).collect();
        names.sort();
        names.dedup();
        return Err(Problem::Platform(names));
    }
    Ok(silent)
}

/// Returns the entries of an index that are images or nested indexes.
fn images(index: &Index) -> impl Iterator<Item = &Descriptor> {
    index.manifests.iter().filter(|one| one.is_index() || one.is_manifest())
}

fn name_of(descriptor: &Descriptor) -> Option<&str> {
    let annotations = descriptor.annotations.as_ref()?;
    annotations.get(IMAGE_NAME).or_else(|| annotations.get(REF_NAME)).map(String::as_str)
}

fn is_named(descriptor: &Descriptor, tag: &str) -> bool {
    let Some(annotations) = &descriptor.annotations else { return false };
    [REF_NAME, IMAGE_NAME].iter().any(|key| annotations.get(*key).is_some_and(|name| is_same_name(name, tag)))
}

/// Prefixes that container engines put before short names.
const LONG_STARTS: [&str; 3] = ["docker.io/library/", "docker.io/", "localhost/"];

/// Returns true if the name `wanted`, which an operator wrote, means the image `known`. For example, `redis` means
/// `redis:latest` and `docker.io/library/redis:latest`.
fn is_same_name(known: &str, wanted: &str) -> bool {
    let has_tag = wanted.rsplit('/').next().is_some_and(|last| last.contains(':'));
    let is_wanted =
        |known: &str| known == wanted || !has_tag && known.strip_suffix(":latest") == Some(wanted);
    is_wanted(known) || LONG_STARTS.iter().any(|start| known.strip_prefix(start).is_some_and(is_wanted))
}

fn parse_index(text: &[u8]) -> Result<Index, Problem> {
    let document = |problem: String| Problem::Document { what: "the index", problem };
    let index: Index = serde_json::from_slice(text).map_err(|error| document(error.to_string()))?;
    if index.manifests.len() > INDEX_ENTRIES_MAX {
        return Err(document(format!("more than {INDEX_ENTRIES_MAX} manifests")));
    }
    Ok(index)
}

/// Returns the image of the manifest or index that a descriptor refers to. `depth` is the number of nested indexes that
/// are still allowed.
fn of_descriptor(
    blobs: &mut dyn Blobs,
    descriptor: &Descriptor,
    depth: usize,
) -> Result<ResolvedImage, Problem> {
    let digest: Digest = descriptor.digest.parse()?;
    let of_list = descriptor.is_index();
    let what = if of_list { "the index" } else { "the manifest" };
    let text = {
        let reader = blobs.open_manifest(&digest.to_string())?;
        blobs::read(reader, &digest, Some(descriptor.size), what, MANIFEST_BYTES_MAX)?
    };
    if of_list {
        return of_nested(blobs, &text, depth);
    }
    of_manifest(blobs, &text)
}

fn of_nested(blobs: &mut dyn Blobs, text: &[u8], depth: usize) -> Result<ResolvedImage, Problem> {
    let Some(depth) = depth.checked_sub(1) else {
        let problem = format!("more than {INDEX_DEPTH_MAX} indexes within one another");
        return Err(Problem::Document { what: "the index", problem });
    };
    let index = parse_index(text)?;
    let images: Vec<&Descriptor> = images(&index).collect();
    // Variants of an architecture are listed from general to special. The first, the most general, runs everywhere.
    match for_this_platform(&images)?.first() {
        Some(first) => of_descriptor(blobs, first, depth),
        None => Err(Problem::Platform(Vec::new())),
    }
}

/// Returns the image of a document that may be an index or a manifest.
pub(super) fn of_either(blobs: &mut dyn Blobs, text: &[u8]) -> Result<ResolvedImage, Problem> {
    /// The fields that tell an index from a manifest.
    #[derive(Deserialize)]
    struct Either {
        manifests: Option<serde::de::IgnoredAny>,
        layers: Option<serde::de::IgnoredAny>,
        #[serde(rename = "schemaVersion")]
        version: Option<u64>,
    }
    let document = |problem: String| Problem::Document { what: "the manifest", problem };
    let either: Either = serde_json::from_slice(text).map_err(|error| document(error.to_string()))?;
    match either {
        Either { manifests: Some(_), .. } => of_nested(blobs, text, INDEX_DEPTH_MAX),
        Either { layers: Some(_), .. } => of_manifest(blobs, text),
        Either { version, .. } => Err(document(format!(
            "it has neither layers nor manifests (its schema version is {})",
            version.unwrap_or_default()
        ))),
    }
}

/// Returns the image of a manifest. The caller has verified the digest of `text`.
fn of_manifest(blobs: &mut dyn Blobs, text: &[u8]) -> Result<ResolvedImage, Problem> {
    let document = |problem: String| Problem::Document { what: "the manifest", problem };
    let manifest: Manifest = serde_json::from_slice(text).map_err(|error| document(error.to_string()))?;
    if manifest.layers.len() > LAYERS_MAX {
        return Err(Problem::Layers);
    }
    let digest: Digest = manifest.config.digest.parse()?;
    let bytes = Some(manifest.config.size);
    let config = {
        let reader = blobs.open(&digest.to_string())?;
        blobs::read(reader, &digest, bytes, "the configuration", CONFIG_BYTES_MAX)?
    };
    let layer = |layer: &Descriptor| {
        let digest: Digest = layer.digest.parse()?;
        Ok(LayerBlob { blob: digest.to_string(), digest: Some(digest), bytes: Some(layer.size) })
    };
    let layers = manifest.layers.iter().map(layer).collect::<Result<_, Problem>>()?;
    Ok(ResolvedImage { config, layers })
}

/// An entry of `manifest.json`, the list of images in Docker's own archive format.
#[derive(Debug, Deserialize)]
struct Saved {
    #[serde(rename = "Config")]
    config: String,
    #[serde(rename = "RepoTags", default)]
    tags: Option<Vec<String>>,
    #[serde(rename = "Layers")]
    layers: Vec<String>,
}

/// Returns the image that `manifest.json` describes. The file names each layer by its path in the archive, and the
/// configuration by a path that contains the digest.
pub(super) fn of_saved(
    blobs: &mut dyn Blobs,
    text: &[u8],
    tag: Option<&str>,
) -> Result<ResolvedImage, Problem> {
    let document = |problem: String| Problem::Document { what: "manifest.json", problem };
    let saved: Vec<Saved> = serde_json::from_slice(text).map_err(|error| document(error.to_string()))?;
    if saved.len() > INDEX_ENTRIES_MAX {
        return Err(document(format!("more than {INDEX_ENTRIES_MAX} images")));
    }
    let tags = |one: &Saved| one.tags.clone().unwrap_or_default();
    let names: Vec<String> = saved.iter().flat_map(tags).collect();
    let is_wanted = |one: &&Saved| tag.is_none_or(|tag| tags(one).iter().any(|name| is_same_name(name, tag)));
    let mut wanted = saved.iter().filter(is_wanted);
    let chosen = match (wanted.next(), wanted.next(), tag) {
        (Some(only), None, _) => only,
        (None, _, Some(tag)) => return Err(Problem::NoTag { tag: tag.to_owned(), names }),
        (None, ..) => return Err(Problem::NoImage),
        (Some(_), Some(_), _) => return Err(Problem::Several { transport: "docker-archive", names }),
    };
    if chosen.layers.len() > LAYERS_MAX {
        return Err(Problem::Layers);
    }
    let config = {
        let reader = blobs.open(&chosen.config)?;
        blobs::read_bounded(reader, "the configuration", CONFIG_BYTES_MAX)?
    };
    // Old versions of Docker named the configuration `HEX.json`; newer versions name it `blobs/sha256/HEX`.
    let stem = chosen.config.rsplit('/').next().unwrap_or_default();
    let hex = stem.strip_suffix(".json").unwrap_or(stem);
    if let Ok(expected) = format!("sha256:{hex}").parse::<digest::Digest>() {
        let mut hasher = expected.hasher();
        hasher.update(&config);
        let found = hasher.finish();
        if found != expected {
            let (expected, found) = (expected.to_string(), found.to_string());
            return Err(Problem::Digest { what: "the configuration".to_owned(), expected, found });
        }
    }
    let layer = |path: &String| LayerBlob { blob: path.clone(), digest: None, bytes: None };
    Ok(ResolvedImage { config, layers: chosen.layers.iter().map(layer).collect() })
}

#[cfg(test)]
mod tests {
    use super::is_same_name;

    #[test]
    fn short_names_mean_what_engines_make_of_them() {
        for (known, wanted) in [
            ("x:1", "x:1"),
            ("docker.io/library/x:1", "x:1"),
            ("docker.io/a/x:1", "a/x:1"),
            ("localhost/x:latest", "x"),
            ("docker.io/library/x:latest", "x"),
            ("latest", "latest"),
            ("h:5000/x:latest", "h:5000/x"),
        ] {
            assert!(is_same_name(known, wanted), "{known} {wanted}");
        }
        for (known, wanted) in [("x:1", "x"), ("a/x:1", "x:1"), ("quay.io/x:1", "x:1"), ("x", "x:latest")] {
            assert!(!is_same_name(known, wanted), "{known} {wanted}");
        }
    }
}
