//! The JSON documents of images (OCI image specification 1.1: index, manifest, descriptor, configuration).
//!
//! The types contain only the fields that Everett reads. Unknown fields are ignored, as the specification demands. A
//! list may be `null`, because Docker writes `null` for an empty list.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// Media type of indexes.
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of manifests.
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of Docker's lists of manifests.
const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
/// Media type of Docker's manifests.
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// A list of images, one for each platform.
#[derive(Debug, Deserialize)]
pub(super) struct Index {
    pub(super) manifests: Vec<Descriptor>,
}

/// References to the configuration and the layers of an image.
#[derive(Debug, Deserialize)]
pub(super) struct Manifest {
    pub(super) config: Descriptor,
    pub(super) layers: Vec<Descriptor>,
}

/// Reference to a blob.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) media_type: String,
    pub(super) digest: String,
    /// Length of the blob in bytes.
    pub(super) size: u64,
    pub(super) platform: Option<Platform>,
    pub(super) annotations: Option<BTreeMap<String, String>>,
}

impl Descriptor {
    /// Returns true if the blob is an index.
    pub(super) fn is_index(&self) -> bool {
        matches!(&self.media_type[..], INDEX | DOCKER_LIST)
    }

    /// Returns true if the blob is a manifest.
    pub(super) fn is_manifest(&self) -> bool {
        matches!(&self.media_type[..], MANIFEST | DOCKER_MANIFEST)
    }
}

/// Operating system and architecture, by the names that the Go toolchain uses.
#[derive(Debug, Deserialize)]
pub(super) struct Platform {
    pub(super) architecture: String,
    pub(super) os: String,
}

impl Platform {
    /// Returns true for linux on amd64, the platform of Everett's guests.
    pub(super) fn is_ours(&self) -> bool {
        self.os == "linux" && self.architecture == "amd64"
    }
}

impl std::fmt::Display for Platform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)
    }
}

/// The configuration of an image.
#[derive(Debug, Deserialize)]
pub(super) struct Configuration {
    pub(super) architecture: String,
    pub(super) os: String,
    #[serde(default)]
    pub(super) config: Option<Process>,
    pub(super) rootfs: RootFs,
}

/// Digests of the layers of an image.
#[derive(Debug, Deserialize)]
pub(super) struct RootFs {
    /// Digests of the layers' uncompressed tar archives, the lowest layer first.
    pub(super) diff_ids: Vec<String>,
}

/// Settings with which a container engine starts the image's process.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Process {
    pub(super) entrypoint: Option<Vec<String>>,
    pub(super) cmd: Option<Vec<String>>,
    pub(super) env: Option<Vec<String>>,
    pub(super) user: Option<String>,
    pub(super) working_dir: Option<String>,
    pub(super) volumes: Option<BTreeMap<String, IgnoredAny>>,
    pub(super) stop_signal: Option<String>,
    pub(super) exposed_ports: Option<BTreeMap<String, IgnoredAny>>,
    /// Docker's extension of the OCI specification.
    pub(super) healthcheck: Option<Healthcheck>,
}

/// A healthcheck in Docker's form. Times are in nanoseconds, and 0 means the default.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Healthcheck {
    pub(super) test: Option<Vec<String>>,
    pub(super) interval: i64,
    pub(super) timeout: i64,
    pub(super) start_period: i64,
    pub(super) retries: i64,
}
