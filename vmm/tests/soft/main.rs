//! Small guests on the soft engine: the machine from the CPU's first instruction to its end, without Linux.

mod ends;
mod exact;
mod guest;
mod leak;
mod moments;
