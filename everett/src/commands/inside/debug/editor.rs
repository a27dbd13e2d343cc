//! The line editor of a session on a terminal: history, and completion of commands.

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use super::help::{COMMANDS, KINDS, Name};

/// Number of lines that the history keeps.
const HISTORY_LINES_MAX: usize = 1_000;

/// Input of the user at the prompt.
pub(super) enum Typed {
    /// A line.
    Line(String),
    /// Ctrl-C: a new prompt.
    Cleared,
    /// Ctrl-D: the end.
    End,
}

/// A line editor.
///
/// While an editor of the library exists, it has the handler of SIGINT. So each line has an editor of its own, and Ctrl-C is a
/// signal for Everett between two lines.
pub(super) struct LineEditor {
    nodes: Vec<String>,
    history: DefaultHistory,
}

impl LineEditor {
    /// Creates an editor without history. `nodes` are the names of the nodes.
    pub(super) fn new(nodes: &[String]) -> LineEditor {
        LineEditor { nodes: nodes.to_vec(), history: DefaultHistory::new() }
    }

    /// Reads a line.
    pub(super) fn read(&mut self, prompt: &str) -> anyhow::Result<Typed> {
        let config = Config::builder()
            .max_history_size(HISTORY_LINES_MAX)?
            .completion_type(CompletionType::List)
            .build();
        let mut editor = Editor::with_history(config, std::mem::take(&mut self.history))?;
        editor.set_helper(Some(Words { nodes: self.nodes.clone() }));
        let read = editor.readline(prompt);
        if let Ok(line) = &read {
            editor.add_history_entry(line)?;
        }
        self.history = std::mem::take(editor.history_mut());
        match read {
            Ok(line) => Ok(Typed::Line(line)),
            Err(ReadlineError::Interrupted) => Ok(Typed::Cleared),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(error) => Err(error.into()),
        }
    }
}

/// Words that complete a line.
struct Words {
    nodes: Vec<String>,
}

impl Words {
    /// Returns the words that can stand behind `before`.
    fn after(&self, before: &str) -> Vec<String> {
        let mut words = before.split_whitespace();
        let all = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let Some(first) = words.next() else {
            return COMMANDS
                .iter()
                .filter_map(|line| line.names.first())
                .map(|name| (*name).to_owned())
                .collect();
        };
        let name = COMMANDS.iter().find(|line| line.names.contains(&first)).map(|line| line.name);
        match (name, words.next()) {
            (Some(Name::Move(_)), None) => all(KINDS),
            (Some(Name::Goto), None) => all(&["end", "finding", "log", "message", "start"]),
            (Some(Name::Break), None) => all(&["kernel:", "log", "message", "state"]),
            (Some(Name::Focus), None) | (Some(Name::Goto | Name::Break), Some(_)) => self.nodes.clone(),
            _ => Vec::new(),
        }
    }
}

impl Completer for Words {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..at).unwrap_or_default();
        let start = typed.rfind(char::is_whitespace).map_or(0, |space| space + 1);
        let (before, word) = typed.split_at(start);
        let words = self.after(before).into_iter().filter(|other| other.starts_with(word));
        let mut words: Vec<String> = words.collect();
        // A place goes on behind its program.
        if let [only] = &mut words[..]
            && !only.ends_with(':')
        {
            only.push(' ');
        }
        Ok((start, words))
    }
}

impl Hinter for Words {
    type Hint = String;
}
impl Highlighter for Words {}
impl Validator for Words {}
impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_complete_a_line() {
        let words = Words { nodes: vec!["n1".to_owned()] };
        let complete = |line: &str| {
            let history = DefaultHistory::new();
            words.complete(line, line.len(), &Context::new(&history)).unwrap()
        };
        assert_eq!(complete("cont"), (0, vec!["continue ".to_owned()]));
        assert_eq!(complete("next sy"), (5, vec!["syscall ".to_owned()]));
        assert_eq!(complete("break p:f on n"), (13, vec!["n1 ".to_owned()]));
        assert_eq!(complete("quit "), (5, Vec::new()));
    }
}
