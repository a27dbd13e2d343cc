//! Keys of the live view, and what they change: the focused list, scrolling and help.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// List of the view. Keys scroll the focused list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Pane {
    #[default]
    Findings,
    Tree,
    Faults,
    Workers,
    Unchecked,
    Log,
}

impl Pane {
    /// All lists, in the order of their tabs.
    pub(super) const ALL: [Pane; 6] =
        [Pane::Findings, Pane::Tree, Pane::Faults, Pane::Workers, Pane::Unchecked, Pane::Log];

    pub(super) fn title(self) -> &'static str {
        match self {
            Pane::Findings => "Findings",
            Pane::Tree => "Subtrees",
            Pane::Faults => "Faults",
            Pane::Workers => "Workers",
            Pane::Unchecked => "Never checked",
            Pane::Log => "Log",
        }
    }

    /// Returns the index in [`Pane::ALL`].
    pub(super) fn place(self) -> usize {
        Pane::ALL.iter().position(|pane| *pane == self).unwrap_or(0)
    }

    fn step(self, by: isize) -> Pane {
        let count = Pane::ALL.len() as isize;
        let place = (self.place() as isize + by).rem_euclid(count);
        Pane::ALL.get(place as usize).copied().unwrap_or_default()
    }
}

/// Focus and scrolling of the view.
#[derive(Debug, Clone, Default)]
pub(super) struct Stance {
    /// Focused list, which keys scroll.
    pub(super) pane: Pane,
    /// Number of steps that each list is scrolled. In the list of findings, it is the index of the selected finding;
    /// in the log, it counts from the end. Drawing lowers values that are too large.
    pub(super) steps: [usize; Pane::ALL.len()],
    /// True if the view shows the help on keys.
    pub(super) help: bool,
}

/// Action that a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// Draw the changed cells.
    Draw,
    /// Draw all cells again.
    Clear,
    /// End the exploration and write its results. The second time, end at once.
    End,
    /// Suspend the process until the shell continues it.
    Suspend,
    /// No action.
    Nothing,
}

/// Number of steps that Page Up and Page Down scroll.
const PAGE: usize = 10;

impl Stance {
    /// Handles a key and returns the action that the view must take.
    pub(super) fn key(&mut self, key: KeyEvent) -> Asked {
        if key.kind == KeyEventKind::Release {
            return Asked::Nothing;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let place = self.pane.place();
        let steps = self.steps.get(place).copied().unwrap_or(0);
        // The log is scrolled from its end, so its steps count upwards.
        let (up, down) = if self.pane == Pane::Log { (1, -1) } else { (-1, 1) };
        let moved = |by: isize| steps.saturating_add_signed(by);
        let to = match key.code {
            KeyCode::Char('c') if control => return Asked::End,
            KeyCode::Char('z') if control => return Asked::Suspend,
            KeyCode::Char('l') if control => return Asked::Clear,
            KeyCode::Char('q') => return Asked::End,
            KeyCode::Char('?' | 'h') => {
                self.help = !self.help;
                return Asked::Draw;
            }
            KeyCode::Esc => {
                self.help = false;
                return Asked::Draw;
            }
            KeyCode::Tab | KeyCode::Right => {
                self.pane = self.pane.step(1);
                return Asked::Draw;
            }
            KeyCode::BackTab | KeyCode::Left => {
                self.pane = self.pane.step(-1);
                return Asked::Draw;
            }
            KeyCode::Char(digit @ '1'..='6') => {
                let place = digit as usize - '1' as usize;
                self.pane = Pane::ALL.get(place).copied().unwrap_or_default();
                return Asked::Draw;
            }
            KeyCode::Up | KeyCode::Char('k') => moved(up),
            KeyCode::Down | KeyCode::Char('j') => moved(down),
            KeyCode::PageUp => moved(up * PAGE as isize),
            KeyCode::PageDown => moved(down * PAGE as isize),
            KeyCode::Home if self.pane == Pane::Log => usize::MAX,
            KeyCode::End if self.pane == Pane::Log => 0,
            KeyCode::Home => 0,
            KeyCode::End => usize::MAX,
            _ => return Asked::Nothing,
        };
        if let Some(steps) = self.steps.get_mut(place) {
            *steps = to;
        }
        Asked::Draw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(stance: &mut Stance, code: KeyCode) -> Asked {
        stance.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn keys_move_between_lists_and_within_them() {
        let mut stance = Stance::default();
        assert_eq!(press(&mut stance, KeyCode::BackTab), Asked::Draw);
        assert_eq!(stance.pane, Pane::Log);
        press(&mut stance, KeyCode::Up);
        press(&mut stance, KeyCode::PageUp);
        press(&mut stance, KeyCode::Down);
        assert_eq!(stance.steps[Pane::Log.place()], 10);
        press(&mut stance, KeyCode::End);
        assert_eq!(stance.steps[Pane::Log.place()], 0);
        press(&mut stance, KeyCode::Tab);
        assert_eq!(stance.pane, Pane::Findings);
        press(&mut stance, KeyCode::Char('j'));
        press(&mut stance, KeyCode::Up);
        press(&mut stance, KeyCode::Up);
        assert_eq!(stance.steps[0], 0);
        press(&mut stance, KeyCode::Char('3'));
        assert_eq!(stance.pane, Pane::Faults);
    }

    #[test]
    fn keys_that_end_and_suspend() {
        let mut stance = Stance::default();
        let control =
            |stance: &mut Stance, c| stance.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL));
        assert_eq!(control(&mut stance, 'c'), Asked::End);
        assert_eq!(control(&mut stance, 'z'), Asked::Suspend);
        assert_eq!(control(&mut stance, 'l'), Asked::Clear);
        assert_eq!(press(&mut stance, KeyCode::Char('q')), Asked::End);
        assert_eq!(press(&mut stance, KeyCode::Char('c')), Asked::Nothing);
        press(&mut stance, KeyCode::Char('?'));
        assert!(stance.help);
        press(&mut stance, KeyCode::Esc);
        assert!(!stance.help);
        let release = KeyEvent { kind: KeyEventKind::Release, ..KeyEvent::from(KeyCode::Char('q')) };
        assert_eq!(stance.key(release), Asked::Nothing);
    }
}
