//! Downloads a mirror's files, with a bound on the length of each file.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use everett_remote::Access;
use everett_remote::http::{Client, Request, Rules};
use sha2::{Digest as _, Sha256};

use super::error::Error;
use crate::apt::ArchiveFile;

/// Time limit for establishing a connection and for receiving an answer's header.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Time limit for receiving each piece of a file.
const READ_WITHIN: Duration = Duration::from_secs(120);
/// Time limit for a whole file. At 85 KB/s, a file of 300 MB arrives within this limit.
const FILE_WITHIN: Duration = Duration::from_secs(3_600);
/// Maximum number of redirections of a request. Mirrors redirect to other mirrors.
const REDIRECTIONS_MAX: u32 = 5;
/// Length of the pieces in which a file is read, in bytes.
const PIECE_BYTES: usize = 1 << 18;

/// Downloader of an archive's files.
pub(super) struct Fetcher<'a> {
    pub(super) access: &'a dyn Access,
    /// Client that uses only https, even after a redirection.
    https: Box<dyn Client>,
    any: Box<dyn Client>,
}

impl<'a> Fetcher<'a> {
    pub(super) fn new(access: &'a dyn Access) -> Fetcher<'a> {
        let client = |https_only| {
            access.client(Rules {
                https_only,
                redirections_max: REDIRECTIONS_MAX,
                answer_within: ANSWER_WITHIN,
                read_within: READ_WITHIN,
                all_within: Some(FILE_WITHIN),
            })
        };
        Fetcher { access, https: client(true), any: client(false) }
    }

    /// Returns the content of a file. Fails if the file has more than `most` bytes.
    pub(super) fn read(&self, address: &str, most: u64) -> Result<Vec<u8>, Error> {
        let mut content = Vec::new();
        self.copy(address, most, &mut |piece| {
            content.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(content)
    }

    /// Downloads a file to `to`, and checks that it has the length and digest of `named`. Calls `progress` after each
    /// piece with the number of bytes so far.
    pub(super) fn fetch(
        &self,
        address: &str,
        named: &ArchiveFile,
        to: (&mut File, &Path),
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        let (file, path) = to;
        let mut hasher = Sha256::new();
        let mut bytes = 0;
        self.copy(address, named.bytes, &mut |piece| {
            hasher.update(piece);
            bytes += piece.len() as u64;
            progress(bytes);
            file.write_all(piece).map_err(super::error::file_error(path))
        })?;
        let differs = |what, expected: String, found: String| {
            Err(Error::Mismatch { address: address.to_owned(), what, expected, found })
        };
        if bytes != named.bytes {
            return differs("length", named.bytes.to_string(), bytes.to_string());
        }
        let found: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        if found != named.sha256 {
            return differs("SHA-256", named.sha256.clone(), found);
        }
        Ok(())
    }

    fn copy(
        &self,
        address: &str,
        most: u64,
        take: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let unreachable = |reason: String| Error::Unreachable { address: address.to_owned(), reason };
        let body: Box<dyn Read> = if let Some(path) = address.strip_prefix("file:") {
            let path = format!("/{}", path.trim_start_matches('/'));
            let opened = everett_input::file::open(Path::new(&path));
            Box::new(opened.map_err(|error| unreachable(error.reason.to_string()))?.0)
        } else {
            let client = if address.starts_with("https:") { &self.https } else { &self.any };
            let answer = client.send(&Request::get(address, most.saturating_add(1))).map_err(unreachable)?;
            if !answer.status.is_success() {
                return Err(unreachable(format!("the mirror answers {}", answer.status)));
            }
            answer.body
        };
        // Reads one byte more than the bound, to notice a file that is too long.
        let mut body = body.take(most.saturating_add(1));
        let (mut piece, mut bytes) = (vec![0; PIECE_BYTES], 0);
        loop {
            let length = body.read(&mut piece).map_err(|error| unreachable(error.to_string()))?;
            bytes += length as u64;
            if bytes > most {
                return Err(Error::TooLong { address: address.to_owned(), most });
            }
            match length {
                0 => return Ok(()),
                length => take(&piece[..length])?,
            }
        }
    }
}
