//! The report of an exploration: one page that people decide from, and the same as data.
//!
//! Each module uses only modules above it:
//! - `clip`: bounds of texts
//! - [`exploration`]: an exploration in figures, as JSON and as Markdown
//! - [`findability`]: how often a bug is found, and how sure it is that it is gone
//! - [`scene`]: what happened before a finding, and the story of it in words
//! - [`causality`]: where a finding was decided, in words
//! - [`data`]: everything that the report says, as JSON
//! - [`page`]: the same as one HTML file; [`text`]: the same as a text that fits a screen
//!
//! Not here: reading run directories and world files (the caller does), running anything.
//!
//! **Invariant.** Texts of guests and of files are shown with hidden characters escaped, and never as markup.

pub mod causality;
mod clip;
pub mod data;
pub mod exploration;
pub mod findability;
pub mod page;
pub mod scene;
pub mod text;

#[cfg(test)]
mod tests;
