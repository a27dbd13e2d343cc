//! Client of the DevTools protocol over pipes: JSON messages that end with a zero byte.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use base64::Engine as _;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Path of the browser's program in its root directory.
const PROGRAM: &str = "/usr/lib/chromium/chromium-headless-shell";
/// Shell script that runs the browser in its root directory, with the pipes of the protocol as descriptors 3 and 4. The
/// browser has its own mounts.
const ENTER: &str = "set -e; root=$1; shift; mount --rbind /proc \"$root/proc\"; mount --rbind /dev \"$root/dev\"; \
                     exec chroot \"$root\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";

/// Failure of the browser.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The host cannot run the browser.
    #[error("the browser cannot be started: {0}")]
    Start(String),
    /// The browser has ended, or its pipe is broken.
    #[error("the browser has ended: {0}")]
    Gone(String),
    /// The browser rejected a command, or a script failed.
    #[error("{method}: {reason}")]
    Refused {
        /// Method of the protocol that was called.
        method: String,
        /// The browser's message.
        reason: String,
    },
}

/// Browser with one page.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    session: Option<String>,
    next: u64,
    /// Events of the page since it was opened.
    events: Vec<Value>,
    /// Folder for pages and the browser's profile, inside the browser's root directory.
    place: TempDir,
    root: PathBuf,
}

impl Browser {
    /// Starts the browser in `root`, with a window of this size in pixels.
    ///
    /// # Errors
    /// Returns an error if the host cannot run the browser.
    pub fn start(root: &Path, width: u32, height: u32) -> Result<Browser, Failure> {
        Browser::with(root, (width, height), &["--net"])
    }

    /// Starts the browser with the host's network, so that it can reach servers on loopback.
    ///
    /// # Errors
    /// Returns an error if the host cannot run the browser.
    pub fn start_on_network(root: &Path, width: u32, height: u32) -> Result<Browser, Failure> {
        Browser::with(root, (width, height), &[])
    }

    fn with(root: &Path, (width, height): (u32, u32), apart: &[&str]) -> Result<Browser, Failure> {
        let start = |error: std::io::Error| Failure::Start(error.to_string());
        let place = tempfile::tempdir_in(root.join("tmp")).map_err(start)?;
        let profile = format!("--user-data-dir={}", inside(root, &place.path().join("profile")));
        let size = format!("--window-size={width},{height}");
        let mut child = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount"])
            .args(apart)
            .args(["sh", "-c", ENTER, "sh"])
            .arg(root)
            .args([
                PROGRAM,
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
            ])
            .args([
                "--no-first-run",
                "--no-proxy-server",
                "--hide-scrollbars",
                "--force-color-profile=srgb",
                &profile,
                &size,
                "about:blank",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(start)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = BufReader::new(output.ok_or_else(|| Failure::Start("it has no output".to_owned()))?);
        let root = root.to_owned();
        let (session, events) = (None, Vec::new());
        let mut browser = Browser { child, input, output, session, next: 0, events, place, root };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let target = target.map_err(|failure| Failure::Start(failure.to_string()))?;
        let attached = browser
            .call("Target.attachToTarget", &json!({ "targetId": target["targetId"], "flatten": true }))?;
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}))?;
        }
        Ok(browser)
    }

    /// Opens a page with this content, and waits until it has loaded.
    ///
    /// # Errors
    /// Returns an error if the browser cannot load the page.
    pub fn open(&mut self, html: &[u8]) -> Result<(), Failure> {
        let file = self.place.path().join("page.html");
        std::fs::write(&file, html).map_err(|error| Failure::Start(error.to_string()))?;
        self.visit(&format!("file://{}", inside(&self.root, &file)))
    }

    /// Opens an address, and waits until the page has loaded.
    ///
    /// # Errors
    /// Returns an error if the browser cannot load the page.
    pub fn visit(&mut self, url: &str) -> Result<(), Failure> {
        self.events.clear();
        self.call("Page.navigate", &json!({ "url": url }))?;
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let message = self.read()?;
            self.events.push(message);
        }
        Ok(())
    }

    /// Calls a method of the page, or of the browser if there is no page yet. Returns the result.
    ///
    /// # Errors
    /// Returns an error if the method fails.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        self.next += 1;
        let id = self.next;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let gone = |error: std::io::Error| Failure::Gone(error.to_string());
        let input = self.input.as_mut().ok_or_else(|| Failure::Gone("it has no input".to_owned()))?;
        input.write_all(message.to_string().as_bytes()).map_err(gone)?;
        input.write_all(&[0]).map_err(gone)?;
        input.flush().map_err(gone)?;
        loop {
            let answer = self.read()?;
            if answer["id"] != json!(id) {
                self.events.push(answer);
                continue;
            }
            if let Some(error) = answer.get("error") {
                return Err(Failure::Refused {
                    method: method.to_owned(),
                    reason: error["message"].to_string(),
                });
            }
            return Ok(answer["result"].clone());
        }
    }

    /// Evaluates an expression in the page, and waits for its promise.
    ///
    /// # Errors
    /// Returns an error if the expression throws.
    pub fn evaluate(&mut self, expression: &str) -> Result<Value, Failure> {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let result = self.call("Runtime.evaluate", &params)?;
        match result.get("exceptionDetails") {
            Some(details) => {
                let reason = details["exception"]["description"].as_str().unwrap_or("it threw").to_owned();
                Err(Failure::Refused { method: expression.chars().take(80).collect(), reason })
            }
            None => Ok(result["result"]["value"].clone()),
        }
    }

    /// Returns the events with this method since the page was opened.
    #[must_use]
    pub fn events(&self, method: &str) -> Vec<Value> {
        let of = |event: &&Value| event["method"] == method;
        self.events.iter().filter(of).map(|event| event["params"].clone()).collect()
    }

    /// Returns a picture of the visible part of the page, as PNG.
    ///
    /// # Errors
    /// Returns an error if the browser cannot make the picture.
    pub fn picture(&mut self) -> Result<Vec<u8>, Failure> {
        let made = self.call("Page.captureScreenshot", &json!({ "format": "png" }))?;
        let data = made["data"].as_str().unwrap_or_default();
        let failed = |error: base64::DecodeError| Failure::Gone(error.to_string());
        base64::engine::general_purpose::STANDARD.decode(data).map_err(failed)
    }

    fn read(&mut self) -> Result<Value, Failure> {
        let mut bytes = Vec::new();
        self.output.read_until(0, &mut bytes).map_err(|error| Failure::Gone(error.to_string()))?;
        if bytes.pop() != Some(0) {
            return Err(Failure::Gone("its output ends".to_owned()));
        }
        serde_json::from_slice(&bytes).map_err(|error| Failure::Gone(error.to_string()))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser ends when its pipe is closed.
        self.input = None;
        let _ = self.child.wait();
    }
}

/// Returns a path as the browser sees it in its root directory.
fn inside(root: &Path, path: &Path) -> String {
    format!("/{}", path.strip_prefix(root).unwrap_or(path).display())
}
