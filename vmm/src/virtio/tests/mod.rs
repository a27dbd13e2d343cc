//! Tests of the transport and of each device, from the driver's side.

mod blk;
mod console;
mod hostile;
mod net;
mod transport;
