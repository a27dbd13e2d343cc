//! Report of an exploration: a page on which people base decisions, and the same contents as data.
//!
//! Each module uses only modules above it:
//! - `clip`: cuts texts to a maximum length
//! - [`exploration`]: findings, coverage and gaps of an exploration, as JSON and Markdown
//! - [`findability`]: how often runs find a bug, and how likely the bug is gone after many runs without it
//! - [`scene`]: events before a finding, and its story in words
//! - [`causality`]: describes in words the event (e.g. a message) that made a finding likely
//! - [`reached_code`]: describes in words the code that an exploration reached
//! - [`data`]: everything that the report says, as JSON
//! - [`page`]: the report as one HTML file
//! - [`text`]: the report as text that fits a screen
//!
//! Not here: reading run directories and world files, which the caller does, and running worlds.
//!
//! **Invariant.** Text from guests and files is shown with hidden characters escaped, and never as markup.

pub mod causality;
mod clip;
pub mod data;
pub mod exploration;
pub mod findability;
pub mod page;
pub mod reached_code;
pub mod scene;
pub mod text;

#[cfg(test)]
mod tests;
