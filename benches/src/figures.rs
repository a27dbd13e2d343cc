//! Samples, figures, and their output as a table or as JSON.

use serde::Serialize;

use crate::host;

/// Several measurements of one quantity.
#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<f64>);

impl From<Vec<f64>> for Samples {
    fn from(values: Vec<f64>) -> Samples {
        Samples(values)
    }
}

impl Samples {
    /// Adds a measurement.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }
    /// True if there are no measurements.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Returns the median. For an even number of measurements, this is the mean of the two middle values; without
    /// measurements, NaN.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[n / 2],
            n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
        }
    }
    /// Returns the median and the range as text, for example `0.39 (0.38 to 0.41)`.
    pub fn with_range(&self) -> String {
        let (low, high) = self.range();
        format!("{:.2} ({low:.2} to {high:.2})", self.median())
    }
    /// Returns the smallest and the largest value.
    pub fn range(&self) -> (f64, f64) {
        self.0.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| (low.min(v), high.max(v)))
    }
}

/// Measurements of one quantity on two programs that took turns. Each pair is from one round, so that other work on the
/// host affects both alike.
#[derive(Debug, Clone, Default)]
pub struct Pairs {
    /// Measurements of the first program.
    pub first: Samples,
    /// Measurements of the second program.
    pub second: Samples,
    /// First divided by second, for each pair.
    pub ratio: Samples,
}

impl Pairs {
    /// Adds a measurement of each program.
    pub fn push(&mut self, first: f64, second: f64) {
        self.first.push(first);
        self.second.push(second);
        self.ratio.push(first / second);
    }
}

/// Figure of a bench.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Name of the bench.
    pub bench: &'static str,
    /// Processor of the host on which the figure was measured.
    pub host: String,
    /// Name of the figure, such as `boot_soft_s`.
    pub metric: String,
    /// Median of the measurements.
    pub value: f64,
    /// Unit of the value.
    pub unit: &'static str,
    /// Peer (another program, such as QEMU) with which the figure is compared. `None` if the figure has no peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Median divided by the median of the peer's measurements. `None` without a peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    #[serde(skip)]
    range: (f64, f64),
}

/// Figures of a bench. They are printed when the bench ends.
#[derive(Debug)]
pub struct Report {
    bench: &'static str,
    json: bool,
    host: String,
    figures: Vec<Figure>,
}

impl Report {
    /// Creates an empty report, and prints the host's processor as a note.
    pub fn new(bench: &'static str, json: bool) -> Report {
        let report = Report { bench, json, host: host::processor(), figures: Vec::new() };
        report.note(&format!("host: {}", report.host));
        report
    }
    /// Prints a note. Does nothing with JSON output.
    pub fn note(&self, text: &str) {
        if !self.json {
            println!("{text}");
        }
    }
    /// Adds a figure, with its ratio to a peer's samples if they are given.
    pub fn figure(
        &mut self,
        metric: &str,
        unit: &'static str,
        samples: &Samples,
        peer: Option<(&str, &Samples)>,
    ) {
        if samples.is_empty() {
            return;
        }
        let value = samples.median();
        let peer = peer.filter(|(_, samples)| !samples.is_empty());
        self.figures.push(Figure {
            bench: self.bench,
            host: self.host.clone(),
            metric: metric.to_owned(),
            value,
            unit,
            peer: peer.map(|(name, _)| name.to_owned()),
            ratio: peer.map(|(_, samples)| value / samples.median()),
            range: samples.range(),
        });
    }
    /// Prints all figures.
    pub fn print(&self) {
        if self.json {
            for figure in &self.figures {
                println!("{}", serde_json::to_string(figure).expect("figures are plain data"));
            }
            return;
        }
        println!("\n{:<36} {:>10} {:<5} {:>21}  ratio", "figure", "median", "unit", "range");
        for f in &self.figures {
            let range = format!("{:.3} to {:.3}", f.range.0, f.range.1);
            let ratio = match (&f.peer, f.ratio) {
                (Some(peer), Some(ratio)) => format!("{ratio:.2} x {peer}"),
                _ => String::new(),
            };
            println!("{:<36} {:>10.3} {:<5} {:>21}  {}", f.metric, f.value, f.unit, range, ratio);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Pairs, Samples};

    #[test]
    fn the_median_is_the_middle() {
        let mut samples = Samples::default();
        assert!(samples.median().is_nan());
        for v in [5.0, 1.0, 3.0] {
            samples.push(v);
        }
        assert_eq!((samples.median(), samples.range()), (3.0, (1.0, 5.0)));
        assert_eq!(samples.with_range(), "3.00 (1.00 to 5.00)");
        samples.push(4.0);
        assert_eq!(samples.median(), 3.5);
    }

    #[test]
    fn the_ratio_is_that_of_each_pair() {
        let mut pairs = Pairs::default();
        for (first, second) in [(1.0, 2.0), (9.0, 3.0), (4.0, 4.0)] {
            pairs.push(first, second);
        }
        assert_eq!((pairs.first.median(), pairs.second.median()), (4.0, 3.0));
        // The ratio of the medians would be 4/3.
        assert_eq!((pairs.ratio.median(), pairs.ratio.range()), (1.0, (0.5, 3.0)));
    }
}
