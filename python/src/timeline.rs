//! Things that happened on a timeline: events, messages, violations, results of commands.

use everett_protocol::Exit;
use everett_scripting::fork::{self, End};
use everett_scripting::judged;
use everett_session::world::event::{self, What};
use everett_vmm::wire::log::{FrameStep, FrameStepKind};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Returns nanoseconds as seconds.
pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// An event.
#[pyclass(frozen, module = "everett")]
pub(crate) struct Event(event::Event);

impl From<&event::Event> for Event {
    fn from(event: &event::Event) -> Event {
        Event(event.clone())
    }
}

#[pymethods]
impl Event {
    #[getter]
    fn vtime(&self) -> f64 {
        seconds(self.0.vtime_ns)
    }

    #[getter]
    fn vtime_ns(&self) -> u64 {
        self.0.vtime_ns
    }

    #[getter]
    fn node(&self) -> Option<&str> {
        Some(&*self.0.node).filter(|node| !node.is_empty())
    }

    #[getter]
    fn kind(&self) -> String {
        let value = serde_json::to_value(&self.0.what).unwrap_or_default();
        value.get("kind").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    }

    #[getter]
    fn unit(&self) -> Option<&str> {
        match &self.0.what {
            What::Line { unit, .. } | What::Start { unit, .. } | What::Exit { unit, .. } => Some(unit),
            What::Kernel { .. } => Some("kernel"),
            _ => None,
        }
    }

    #[getter]
    fn text(&self) -> Option<&str> {
        match &self.0.what {
            What::Line { text, .. }
            | What::Kernel { text }
            | What::History { text, .. }
            | What::Sdk { text }
            | What::Effect { text }
            | What::Finding { text, .. }
            | What::Fault { line: text, .. }
            | What::Exit { status: text, .. } => Some(text),
            _ => None,
        }
    }

    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = serde_json::to_string(&self.0.what).unwrap_or_else(|_| "null".to_owned());
        py.import("json")?.call_method1("loads", (text,))
    }

    fn __repr__(&self) -> String {
        let place = [self.node(), self.unit()].into_iter().flatten().collect::<Vec<_>>().join("/");
        let text = self.text().unwrap_or_default();
        format!("Event({:.9} {} {place} {text:?})", self.vtime(), self.kind())
    }
}

/// Outcome of a frame on the wire between two nodes.
#[pyclass(frozen, get_all, module = "everett")]
pub(crate) struct Message {
    vtime: f64,
    vtime_ns: u64,
    sent_ns: u64,
    sender: String,
    receiver: Option<String>,
    outcome: &'static str,
    reason: Option<&'static str>,
    length: u32,
    summary: String,
}

impl Message {
    pub(crate) fn of(step: &FrameStep, nodes: &[String]) -> Message {
        let name = |port: u8| nodes.get(usize::from(port)).cloned().unwrap_or_else(|| "?".to_owned());
        let (outcome, reason) = match step.kind {
            FrameStepKind::Deliver => ("deliver", None),
            FrameStepKind::Duplicate => ("duplicate", None),
            FrameStepKind::Drop { why } => ("drop", Some(why.name())),
            FrameStepKind::Timeout => ("timeout", None),
        };
        Message {
            vtime: seconds(step.vtime),
            vtime_ns: step.vtime,
            sent_ns: step.sent_at,
            sender: name(step.from),
            receiver: step.to.map(name),
            outcome,
            reason,
            length: step.len,
            summary: step.summary.to_string(),
        }
    }
}

#[pymethods]
impl Message {
    fn __repr__(&self) -> String {
        let receiver = self.receiver.as_deref().unwrap_or("nowhere");
        format!(
            "Message({:.9} {} -> {receiver} {} {:?})",
            self.vtime, self.sender, self.outcome, self.summary
        )
    }
}

/// Violation of a property.
#[pyclass(frozen, get_all, module = "everett")]
pub(crate) struct Violation {
    property: String,
    signature: String,
    text: String,
    vtime: f64,
    vtime_ns: u64,
    node: Option<String>,
}

impl From<judged::Violation> for Violation {
    fn from(violation: judged::Violation) -> Violation {
        Violation {
            property: violation.property,
            signature: violation.signature,
            text: violation.text,
            vtime: seconds(violation.vtime_ns),
            vtime_ns: violation.vtime_ns,
            node: violation.node,
        }
    }
}

#[pymethods]
impl Violation {
    fn __repr__(&self) -> String {
        format!("Violation({:.9} {:?}: {:?})", self.vtime, self.property, self.text)
    }
}

/// Verdict of the properties of a world on a timeline.
#[pyclass(frozen, module = "everett")]
pub(crate) struct Judged {
    #[pyo3(get)]
    violations: Vec<Py<Violation>>,
    #[pyo3(get)]
    sometimes: Vec<String>,
}

impl Judged {
    pub(crate) fn of(py: Python<'_>, judged: judged::Judged) -> PyResult<Judged> {
        let violations = judged.violations.into_iter().map(|one| Py::new(py, Violation::from(one)));
        Ok(Judged { violations: violations.collect::<PyResult<_>>()?, sometimes: judged.sometimes })
    }
}

#[pymethods]
impl Judged {
    fn __repr__(&self) -> String {
        format!("Judged({} violations, sometimes={:?})", self.violations.len(), self.sometimes)
    }
}

/// Result of a command.
#[pyclass(frozen, module = "everett")]
pub(crate) struct Finished(fork::Finished);

impl From<fork::Finished> for Finished {
    fn from(finished: fork::Finished) -> Finished {
        Finished(finished)
    }
}

#[pymethods]
impl Finished {
    /// Exit status, or the negative number of the signal that ended the command.
    #[getter]
    fn returncode(&self) -> Option<i32> {
        match self.0.end {
            End::Exited(Exit::Code(code)) => Some(code),
            End::Exited(Exit::Signal(signal)) => Some(signal.saturating_neg()),
            End::Limit | End::NoAnswer => None,
        }
    }

    #[getter]
    fn stdout<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.stdout)
    }

    #[getter]
    fn stderr<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.stderr)
    }

    #[getter]
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    #[getter]
    fn truncated(&self) -> bool {
        self.0.is_cut
    }

    fn __repr__(&self) -> String {
        let (out, errors) = (self.0.stdout.len(), self.0.stderr.len());
        let status = self.returncode().map_or_else(|| "None".to_owned(), |status| status.to_string());
        format!("Finished(returncode={status}, {out} bytes of stdout, {errors} bytes of stderr)")
    }
}
