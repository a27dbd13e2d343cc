//! Placeholder while the parts are laid.
