//! Small guests without Linux on the soft engine (Everett's own CPU), from the CPU's first instruction to their end,
//! and worlds of these guests.

mod branches;
mod card;
mod clock_modes;
mod ends;
mod exact;
mod exits;
mod failure;
mod golden;
mod guest;
mod host;
mod hostile;
mod leak;
mod models;
mod moments;
mod plan;
mod power;
mod registers;
mod storm;
mod worker;
mod world;
