//! Numbers of samples by node, process, function and kind of code, and the stacks of the samples.
//!
//! Guests choose the names and stacks, so each table has a bound. A sample beyond a bound counts in a row in brackets, so the
//! sums stay those of all samples, and [`Cut`] has the number of these samples.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::sampler::{Function, Kind, Sample, UNKNOWN};

/// Maximum number of different processes. Further processes share a row for each node.
const PROFILE_PROCESSES_MAX: usize = 4_096;
/// Maximum number of different functions. Further functions share a row.
const PROFILE_FUNCTIONS_MAX: usize = 65_536;
/// Maximum length of a function's name or file, in bytes. The rest is cut off.
const PROFILE_NAME_BYTES_MAX: usize = 512;
/// Maximum number of functions of a stack. Outer ones are left out.
const PROFILE_FRAMES_MAX: usize = 256;
/// Maximum number of different stacks. Further stacks of a process share a row.
const PROFILE_STACKS_MAX: usize = 131_072;

/// Row of further processes.
const OTHER_PROCESSES: &str = "[other processes]";
/// Row of further functions.
const OTHER_FUNCTIONS: &str = "[other functions]";
/// Outermost function of a stack that is cut off.
const OUTER_FRAMES: &str = "[outer functions]";
/// Only function of further stacks.
const OTHER_STACKS: &str = "[other stacks]";

/// Numbers of samples of each kind, in the order of [`Kind::ALL`].
type Counts = [u64; Kind::ALL.len()];

/// Bounds on the tables.
#[derive(Debug, Clone, Copy)]
struct Limits {
    processes: usize,
    functions: usize,
    frames: usize,
    stacks: usize,
}

/// Samples of a world's nodes, counted.
#[derive(Debug)]
pub struct Profile {
    every: u64,
    limits: Limits,
    nodes: Vec<(String, Counts)>,
    /// Numbers of samples by node, process ID and name of the process.
    processes: BTreeMap<(usize, u32, Arc<str>), Counts>,
    names: BTreeSet<Arc<str>>,
    functions: Functions,
    /// Numbers of samples by stack.
    stacks: BTreeMap<Stack, u64>,
    cut: Cut,
}

/// Node, name of the process, and numbers of the functions, the outermost first.
type Stack = (usize, Arc<str>, Vec<u32>);

/// Functions with their numbers of samples.
#[derive(Debug, Default)]
struct Functions {
    numbers: BTreeMap<Arc<Function>, u32>,
    counted: Vec<CountedFunction>,
}

#[derive(Debug)]
struct CountedFunction {
    function: Arc<Function>,
    /// Number of samples in which the CPU executed the function itself.
    own: u64,
    /// Number of samples with the function on the stack.
    total: u64,
}

/// Numbers of samples that a bound of the profile affects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// Number of samples of processes beyond the maximum.
    pub process_samples: u64,
    /// Number of samples with a function beyond the maximum.
    pub function_samples: u64,
    /// Number of samples whose stack lacks outer functions.
    pub frame_samples: u64,
    /// Number of samples whose stack is beyond the maximum number of different stacks.
    pub stack_samples: u64,
    /// Number of samples with a name that is cut off.
    pub name_samples: u64,
}

impl Cut {
    /// Returns a line for each bound that cut something.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let lines = [
            (self.process_samples, format!("are of processes beyond the first {PROFILE_PROCESSES_MAX}")),
            (self.function_samples, format!("have functions beyond the first {PROFILE_FUNCTIONS_MAX}")),
            (self.frame_samples, format!("have stacks of more than {PROFILE_FRAMES_MAX} functions, cut off")),
            (self.stack_samples, format!("have stacks beyond the first {PROFILE_STACKS_MAX} different ones")),
            (self.name_samples, format!("have names of more than {PROFILE_NAME_BYTES_MAX} bytes, cut off")),
        ];
        let lines = lines.into_iter().filter(|(samples, _)| *samples > 0);
        lines.map(|(samples, what)| format!("{samples} samples {what}")).collect()
    }
}

/// Number of samples, and what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Amount {
    /// Number of samples.
    pub samples: u64,
    /// Number of retired instructions for which the samples stand.
    pub instructions: u64,
    /// Share of all samples, in percent, to two decimal places.
    pub percent: f64,
}

/// Amount of a kind of code.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct KindRow {
    /// Kind.
    pub kind: Kind,
    /// Amount.
    #[serde(flatten)]
    pub amount: Amount,
}

/// Row of a node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeRow {
    /// Name of the node.
    pub node: String,
    /// Amount.
    #[serde(flatten)]
    pub amount: Amount,
    /// Kinds with samples, the most frequent first.
    pub kinds: Vec<KindRow>,
}

/// Row of a process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessRow {
    /// Name of the node.
    pub node: String,
    /// Process ID. 0 for the kernel's idle thread and for rows in brackets.
    pub pid: u32,
    /// Name of the process's first thread.
    pub process: String,
    /// Amount.
    #[serde(flatten)]
    pub amount: Amount,
    /// Kinds with samples, the most frequent first.
    pub kinds: Vec<KindRow>,
}

/// Row of a function.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionRow {
    /// Name.
    pub function: String,
    /// File of a program's function, `kernel`, or a module of the kernel as `[ext4]`. Empty if not known.
    pub object: String,
    /// Amount of the function's own code.
    #[serde(rename = "self")]
    pub own: Amount,
    /// Amount of the function and everything that it called.
    pub total: Amount,
}

/// All tables of a profile. Rows with the most samples come first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tables {
    /// Number of retired instructions of a node between two samples.
    pub every_instructions: u64,
    /// Number of samples.
    pub samples: u64,
    /// Number of retired instructions for which the samples stand.
    pub instructions: u64,
    /// Rows by node.
    pub nodes: Vec<NodeRow>,
    /// Rows by kind of code.
    pub kinds: Vec<KindRow>,
    /// Rows by process.
    pub processes: Vec<ProcessRow>,
    /// Rows by function, in the order of their own samples.
    pub functions: Vec<FunctionRow>,
    /// Number of different stacks.
    pub stacks: usize,
    /// Samples that a bound affects.
    pub cut: Cut,
}

impl Profile {
    /// Returns a profile without samples. Its samples are `every` retired instructions of a node apart.
    #[must_use]
    pub fn new(every: u64, nodes: impl IntoIterator<Item = String>) -> Profile {
        Profile {
            every,
            limits: Limits {
                processes: PROFILE_PROCESSES_MAX,
                functions: PROFILE_FUNCTIONS_MAX,
                frames: PROFILE_FRAMES_MAX,
                stacks: PROFILE_STACKS_MAX,
            },
            nodes: nodes.into_iter().map(|name| (name, Counts::default())).collect(),
            processes: BTreeMap::new(),
            names: BTreeSet::new(),
            functions: Functions::default(),
            stacks: BTreeMap::new(),
            cut: Cut::default(),
        }
    }

    /// Returns the number of retired instructions of a node between two samples.
    #[must_use]
    pub fn every(&self) -> u64 {
        self.every
    }

    /// Counts a sample of a node.
    ///
    /// # Panics
    /// Panics if there is no such node.
    pub fn add(&mut self, node: usize, sample: Sample) {
        let Sample { pid, process, kind, functions } = sample;
        self.nodes[node].1[kind as usize] += 1;
        let process = self.process(node, pid, &process, kind);
        let cut_names = functions.iter().any(|function| is_long(&function.name) || is_long(&function.object));
        self.cut.name_samples += u64::from(cut_names);
        let outer = functions.len().saturating_sub(self.limits.frames);
        self.cut.frame_samples += u64::from(outer > 0);
        let mut stack = Vec::with_capacity(functions.len() - outer + 1);
        if outer > 0 {
            stack.push(self.functions.bracketed(OUTER_FRAMES));
        }
        let mut is_other = false;
        for function in functions.into_iter().skip(outer) {
            let (number, is_known) = self.functions.number(function, self.limits.functions);
            stack.push(number);
            is_other |= !is_known;
        }
        if stack.is_empty() {
            stack.push(self.functions.bracketed(UNKNOWN));
        }
        self.cut.function_samples += u64::from(is_other);
        self.functions.count(&stack);
        let mut stack = (node, process, stack);
        if !self.stacks.contains_key(&stack) && self.stacks.len() >= self.limits.stacks {
            self.cut.stack_samples += 1;
            stack.2 = vec![self.functions.bracketed(OTHER_STACKS)];
        }
        *self.stacks.entry(stack).or_default() += 1;
    }

    /// Counts a sample of a node whose running thread could not be read.
    ///
    /// # Panics
    /// Panics if there is no such node.
    pub fn add_unread(&mut self, node: usize, kind: Kind) {
        let name = format!("[{}]", kind.name());
        let function = Function { name: name.clone(), object: String::new(), is_kernel: false };
        self.add(node, Sample { pid: 0, process: name, kind, functions: vec![function] });
    }

    /// Counts a sample of a process, and returns the name of its row.
    fn process(&mut self, node: usize, pid: u32, name: &str, kind: Kind) -> Arc<str> {
        let name = self.name(name);
        let key = (node, pid, Arc::clone(&name));
        let is_full = self.processes.len() >= self.limits.processes;
        let key = if is_full && !self.processes.contains_key(&key) {
            self.cut.process_samples += 1;
            (node, 0, self.name(OTHER_PROCESSES))
        } else {
            key
        };
        let name = Arc::clone(&key.2);
        self.processes.entry(key).or_default()[kind as usize] += 1;
        name
    }

    /// Returns a name that the profile keeps once.
    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(name) = self.names.get(name) {
            return Arc::clone(name);
        }
        let name: Arc<str> = cut_off(name).into();
        if self.names.len() <= self.limits.processes {
            self.names.insert(Arc::clone(&name));
        }
        name
    }

    /// Returns the stacks with their numbers of instructions: the node if there are several, the process, and the functions,
    /// the outermost first.
    pub fn stacks(&self) -> impl Iterator<Item = (Vec<String>, u64)> + '_ {
        self.stacks.iter().map(|((node, process, functions), samples)| {
            let node = Some(self.nodes[*node].0.clone()).filter(|_| self.nodes.len() > 1);
            let functions =
                functions.iter().map(|n| self.functions.counted[*n as usize].function.to_string());
            let stack = node.into_iter().chain([process.to_string()]).chain(functions).collect();
            (stack, samples.saturating_mul(self.every))
        })
    }

    /// Returns the tables.
    #[must_use]
    pub fn tables(&self) -> Tables {
        let samples: u64 = self.nodes.iter().map(|(_, counts)| sum(counts)).sum();
        let amount = |of: u64| Amount {
            samples: of,
            instructions: of.saturating_mul(self.every),
            percent: percent(of, samples),
        };
        let kinds = |counts: &Counts| {
            let rows = Kind::ALL.into_iter().zip(counts).filter(|(_, samples)| **samples > 0);
            let mut rows: Vec<KindRow> =
                rows.map(|(kind, samples)| KindRow { kind, amount: amount(*samples) }).collect();
            rows.sort_by_key(|row| std::cmp::Reverse(row.amount.samples));
            rows
        };
        let nodes = self.nodes.iter().map(|(node, counts)| NodeRow {
            node: node.clone(),
            amount: amount(sum(counts)),
            kinds: kinds(counts),
        });
        let mut nodes: Vec<NodeRow> = nodes.collect();
        nodes.sort_by_key(|row| std::cmp::Reverse(row.amount.samples));
        let mut all = Counts::default();
        for (_, counts) in &self.nodes {
            for (all, of) in all.iter_mut().zip(counts) {
                *all += of;
            }
        }
        let processes = self.processes.iter().map(|((node, pid, process), counts)| ProcessRow {
            node: self.nodes[*node].0.clone(),
            pid: *pid,
            process: process.to_string(),
            amount: amount(sum(counts)),
            kinds: kinds(counts),
        });
        let mut processes: Vec<ProcessRow> = processes.collect();
        processes.sort_by_key(|row| std::cmp::Reverse(row.amount.samples));
        let functions = self.functions.counted.iter().map(|counted| FunctionRow {
            function: counted.function.name.clone(),
            object: counted.function.object.clone(),
            own: amount(counted.own),
            total: amount(counted.total),
        });
        let mut functions: Vec<FunctionRow> = functions.filter(|row| row.total.samples > 0).collect();
        functions.sort_by(|a, b| {
            let order = |row: &FunctionRow| (row.own.samples, row.total.samples);
            order(b).cmp(&order(a)).then_with(|| (&a.function, &a.object).cmp(&(&b.function, &b.object)))
        });
        Tables {
            every_instructions: self.every,
            samples,
            instructions: samples.saturating_mul(self.every),
            nodes,
            kinds: kinds(&all),
            processes,
            functions,
            stacks: self.stacks.len(),
            cut: self.cut,
        }
    }
}

impl Functions {
    /// Returns the number of a function, and true if it is within the maximum. Functions beyond it share a number.
    fn number(&mut self, function: Function, max: usize) -> (u32, bool) {
        let function = match (is_long(&function.name), is_long(&function.object)) {
            (false, false) => function,
            _ => Function {
                name: cut_off(&function.name).to_owned(),
                object: cut_off(&function.object).to_owned(),
                ..function
            },
        };
        if let Some(number) = self.numbers.get(&function) {
            return (*number, true);
        }
        if self.counted.len() >= max {
            return (self.bracketed(OTHER_FUNCTIONS), false);
        }
        (self.insert(function), true)
    }

    /// Returns the number of a row in brackets. There are few of them, so they need no bound.
    fn bracketed(&mut self, name: &str) -> u32 {
        let function = Function { name: name.to_owned(), object: String::new(), is_kernel: false };
        match self.numbers.get(&function) {
            Some(number) => *number,
            None => self.insert(function),
        }
    }

    fn insert(&mut self, function: Function) -> u32 {
        let (function, number) = (Arc::new(function), self.counted.len() as u32);
        self.numbers.insert(Arc::clone(&function), number);
        self.counted.push(CountedFunction { function, own: 0, total: 0 });
        number
    }

    /// Counts a sample with this stack.
    fn count(&mut self, stack: &[u32]) {
        if let Some(last) = stack.last() {
            self.counted[*last as usize].own += 1;
        }
        let mut on_stack = stack.to_vec();
        on_stack.sort_unstable();
        on_stack.dedup();
        for number in on_stack {
            self.counted[number as usize].total += 1;
        }
    }
}

fn sum(counts: &Counts) -> u64 {
    counts.iter().sum()
}

/// Returns a share in percent, rounded to two decimal places. 0 if there are no samples.
fn percent(of: u64, samples: u64) -> f64 {
    let hundredths = (u128::from(of) * 10_000 + u128::from(samples / 2)).checked_div(samples.into());
    hundredths.unwrap_or(0) as f64 / 100.0
}

fn is_long(name: &str) -> bool {
    name.len() > PROFILE_NAME_BYTES_MAX
}

fn cut_off(name: &str) -> &str {
    &name[..name.floor_char_boundary(PROFILE_NAME_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(pid: u32, kind: Kind, functions: &[&str]) -> Sample {
        let functions = functions.iter().map(|name| Function {
            name: (*name).to_owned(),
            object: "/bin/x".to_owned(),
            is_kernel: false,
        });
        Sample { pid, process: format!("p{pid}"), kind, functions: functions.collect() }
    }

    fn profile() -> Profile {
        Profile::new(1_000, ["a", "b"].map(str::to_owned))
    }

    #[test]
    fn tables_count_each_sample_once() {
        let mut profile = profile();
        for _ in 0..3 {
            profile.add(1, sample(7, Kind::User, &["main", "spin", "spin"]));
        }
        profile.add(0, sample(8, Kind::SystemCall, &["main", "read"]));
        profile.add_unread(0, Kind::Boot);
        let tables = profile.tables();
        assert_eq!((tables.samples, tables.instructions, tables.stacks), (5, 5_000, 3));
        let nodes: Vec<_> = tables.nodes.iter().map(|row| (&*row.node, row.amount.samples)).collect();
        assert_eq!(nodes, [("b", 3), ("a", 2)]);
        let kinds: Vec<_> = tables.kinds.iter().map(|row| (row.kind, row.amount.percent)).collect();
        assert_eq!(kinds, [(Kind::User, 60.0), (Kind::SystemCall, 20.0), (Kind::Boot, 20.0)]);
        let processes: Vec<_> = tables.processes.iter().map(|row| (&*row.process, row.pid)).collect();
        assert_eq!(processes, [("p7", 7), ("[boot of the kernel]", 0), ("p8", 8)]);
        let functions = tables.functions.iter();
        let functions: Vec<_> =
            functions.map(|row| (&*row.function, row.own.samples, row.total.samples)).collect();
        assert_eq!(
            functions,
            [("spin", 3, 3), ("[boot of the kernel]", 1, 1), ("read", 1, 1), ("main", 0, 4)]
        );
        let stacks: Vec<_> = profile.stacks().map(|(stack, n)| (stack.join(";"), n)).collect();
        assert_eq!(stacks[2], ("b;p7;main;spin;spin".to_owned(), 3_000));
        assert_eq!(tables.cut, Cut::default());
        assert!(tables.cut.lines().is_empty());
    }

    #[test]
    fn samples_beyond_the_bounds_stay_in_the_sums() {
        let mut profile = profile();
        profile.limits = Limits { processes: 2, functions: 4, frames: 2, stacks: 3 };
        for n in 0..10 {
            let name = format!("f{n}");
            profile.add(0, sample(n, Kind::User, &["main", &name]));
        }
        profile.add(0, sample(0, Kind::User, &["f0", "main", "f0"]));
        profile.add(0, sample(0, Kind::User, &["x".repeat(PROFILE_NAME_BYTES_MAX + 1).as_str()]));
        let tables = profile.tables();
        assert_eq!(tables.samples, 12);
        assert_eq!(tables.processes.iter().map(|row| row.amount.samples).sum::<u64>(), 12);
        assert_eq!(tables.functions.iter().map(|row| row.own.samples).sum::<u64>(), 12);
        assert_eq!(profile.stacks().map(|(_, n)| n).sum::<u64>(), 12_000);
        let expected = Cut {
            process_samples: 8,
            function_samples: 8,
            frame_samples: 1,
            stack_samples: 9,
            name_samples: 1,
        };
        assert_eq!(tables.cut, expected);
        assert_eq!(tables.cut.lines().len(), 5);
        // Rows in brackets come on top of the maximum.
        assert!(tables.processes.len() <= 2 + 2 && tables.functions.len() <= 4 + 3 && tables.stacks <= 3 + 3);
    }
}
