//! Small guests without Linux on the soft engine, from the CPU's first instruction to their end, and worlds of them.

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
mod moments;
mod plan;
mod power;
mod registers;
mod storm;
mod worker;
mod world;
