//! Samples, figures, and the two ways to print them.

use serde::Serialize;

/// Several measurements of one thing.
#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<f64>);

impl From<Vec<f64>> for Samples {
    fn from(values: Vec<f64>) -> Samples {
        Samples(values)
    }
}

impl Samples {
    /// Add one.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The middle one, or the mean of the two in the middle; NaN when there are none.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[n / 2],
            n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
        }
    }
    /// Smallest and largest.
    pub fn range(&self) -> (f64, f64) {
        self.0.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| (low.min(v), high.max(v)))
    }
}

/// One figure of a bench.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// The bench.
    pub bench: &'static str,
    /// Its name, for example `boot_soft_s`.
    pub metric: String,
    /// The median.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// The peer that it is held against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// This figure divided by the peer's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    #[serde(skip)]
    range: (f64, f64),
}

/// What a bench has to say.
#[derive(Debug)]
pub struct Report {
    bench: &'static str,
    json: bool,
    figures: Vec<Figure>,
}

impl Report {
    /// A report of a bench.
    pub fn new(bench: &'static str, json: bool) -> Report {
        Report { bench, json, figures: Vec::new() }
    }
    /// Say something to people.
    pub fn note(&self, text: &str) {
        if !self.json {
            println!("{text}");
        }
    }
    /// Add a figure, held against a peer's samples if there are any.
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
            metric: metric.to_owned(),
            value,
            unit,
            peer: peer.map(|(name, _)| name.to_owned()),
            ratio: peer.map(|(_, samples)| value / samples.median()),
            range: samples.range(),
        });
    }
    /// Print all figures.
    pub fn print(&self) {
        if self.json {
            for figure in &self.figures {
                println!("{}", serde_json::to_string(figure).expect("figures are plain data"));
            }
            return;
        }
        println!("\n{:<30} {:>10} {:<5} {:>21}  ratio", "figure", "median", "unit", "range");
        for f in &self.figures {
            let range = format!("{:.3} to {:.3}", f.range.0, f.range.1);
            let ratio = match (&f.peer, f.ratio) {
                (Some(peer), Some(ratio)) => format!("{ratio:.2} x {peer}"),
                _ => String::new(),
            };
            println!("{:<30} {:>10.3} {:<5} {:>21}  {}", f.metric, f.value, f.unit, range, ratio);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Samples;

    #[test]
    fn the_median_is_the_middle() {
        let mut samples = Samples::default();
        assert!(samples.median().is_nan());
        for v in [5.0, 1.0, 3.0] {
            samples.push(v);
        }
        assert_eq!((samples.median(), samples.range()), (3.0, (1.0, 5.0)));
        samples.push(4.0);
        assert_eq!(samples.median(), 3.5);
    }
}
