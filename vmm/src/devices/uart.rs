//! A 16550A UART (ttyS0). Transmission takes no time, so the transmit holding register is always empty.
//!
//! The UART returns each byte of output to its caller at once. Input waits in a bounded queue until the guest reads it
//! from the receive register.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Maximum number of input bytes that wait for the guest. Further bytes are refused.
pub const INPUT_BYTES_MAX: usize = 64 << 10;

const IER_RECEIVE: u8 = 1;
const IER_TRANSMIT: u8 = 2;
const IER_STATUS: u8 = 4;
const IIR_NONE: u8 = 1;
const IIR_TRANSMIT: u8 = 2;
const IIR_RECEIVE: u8 = 4;
const IIR_STATUS: u8 = 6;
const IIR_FIFO: u8 = 0xc0;
const LCR_DLAB: u8 = 0x80;
const MCR_OUT2: u8 = 8;
const MCR_LOOP: u8 = 0x10;
const LSR_DATA: u8 = 1;
const LSR_OVERRUN: u8 = 2;
const LSR_EMPTY: u8 = 0x60;
/// Modem status: carrier detect, data set ready and clear to send are set.
const MSR_CONNECTED: u8 = 0xb0;

/// Registers of the UART, and input that the guest has not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uart {
    divisor: u16,
    ier: u8,
    lcr: u8,
    mcr: u8,
    scratch: u8,
    fifo: bool,
    overrun: bool,
    /// True if the transmit holding register became empty and the guest has not acknowledged the interrupt for it.
    transmit_pending: bool,
    input: VecDeque<u8>,
}

impl Default for Uart {
    fn default() -> Uart {
        Uart {
            divisor: 12,
            ier: 0,
            lcr: 3,
            mcr: 0,
            scratch: 0,
            fifo: false,
            overrun: false,
            transmit_pending: false,
            input: VecDeque::new(),
        }
    }
}

impl Uart {
    /// Reads register 0-7.
    pub fn read(&mut self, register: u16) -> u8 {
        let dlab = self.lcr & LCR_DLAB != 0;
        match register {
            0 if dlab => self.divisor as u8,
            1 if dlab => (self.divisor >> 8) as u8,
            0 => self.input.pop_front().unwrap_or(0),
            1 => self.ier,
            2 => {
                let cause = self.cause();
                if cause == IIR_TRANSMIT {
                    self.transmit_pending = false;
                }
                cause | if self.fifo { IIR_FIFO } else { 0 }
            }
            3 => self.lcr,
            4 => self.mcr,
            5 => {
                let overrun = std::mem::take(&mut self.overrun);
                LSR_EMPTY
                    | if self.input.is_empty() { 0 } else { LSR_DATA }
                    | if overrun { LSR_OVERRUN } else { 0 }
            }
            6 if self.mcr & MCR_LOOP != 0 => {
                // In loopback mode, RTS, DTR, OUT1 and OUT2 read back as CTS, DSR, RI and DCD.
                (self.mcr & 2) << 3 | (self.mcr & 1) << 5 | (self.mcr & 4) << 4 | (self.mcr & 8) << 4
            }
            6 => MSR_CONNECTED,
            7 => self.scratch,
            _ => 0xff,
        }
    }

    /// Writes register 0-7. Returns the byte that goes out on the serial line, if any.
    pub fn write(&mut self, register: u16, value: u8) -> Option<u8> {
        let dlab = self.lcr & LCR_DLAB != 0;
        match register {
            0 if dlab => self.divisor = self.divisor & 0xff00 | u16::from(value),
            1 if dlab => self.divisor = self.divisor & 0xff | u16::from(value) << 8,
            0 => {
                self.transmit_pending = true;
                if self.mcr & MCR_LOOP == 0 {
                    return Some(value);
                }
                self.receive(value);
            }
            1 => {
                if value & IER_TRANSMIT != 0 && self.ier & IER_TRANSMIT == 0 {
                    self.transmit_pending = true;
                }
                self.ier = value & 0xf;
            }
            2 => {
                self.fifo = value & 1 != 0;
                if value & 2 != 0 {
                    self.input.clear();
                }
            }
            3 => self.lcr = value,
            4 => self.mcr = value & 0x1f,
            7 => self.scratch = value,
            _ => {}
        }
        None
    }

    /// Queues input for the guest. Returns the number of bytes accepted. It is less than the number of `bytes` if the
    /// queue has no room for all of them.
    pub fn input(&mut self, bytes: &[u8]) -> usize {
        let room = INPUT_BYTES_MAX - self.input.len().min(INPUT_BYTES_MAX);
        let taken = room.min(bytes.len());
        self.input.extend(&bytes[..taken]);
        taken
    }

    /// True if the interrupt line is high. The modem control bit OUT2 gates the line, as on a PC.
    pub fn line(&self) -> bool {
        self.mcr & MCR_OUT2 != 0 && self.mcr & MCR_LOOP == 0 && self.cause() != IIR_NONE
    }

    fn receive(&mut self, byte: u8) {
        if self.input.len() < if self.fifo { 16 } else { 1 } {
            self.input.push_back(byte);
        } else {
            self.overrun = true;
        }
    }

    fn cause(&self) -> u8 {
        if self.ier & IER_STATUS != 0 && self.overrun {
            IIR_STATUS
        } else if self.ier & IER_RECEIVE != 0 && !self.input.is_empty() {
            IIR_RECEIVE
        } else if self.ier & IER_TRANSMIT != 0 && self.transmit_pending {
            IIR_TRANSMIT
        } else {
            IIR_NONE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn linux_finds_a_16550a() {
        let mut uart = Uart::default();
        // Linux's 8250 driver distinguishes UART models by the scratch register, the loopback test and the FIFO bits.
        uart.write(7, 0xa5);
        assert_eq!(uart.read(7), 0xa5);
        uart.write(4, MCR_LOOP | 0x0a);
        assert_eq!(uart.read(6) & 0xf0, 0x90);
        uart.write(4, 0);
        uart.write(2, 1);
        assert_eq!(uart.read(2), IIR_FIFO | IIR_NONE);
        uart.write(3, LCR_DLAB);
        uart.write(0, 1);
        uart.write(1, 2);
        assert_eq!(uart.divisor, 0x201);
    }

    #[test]
    fn transmit_interrupts_once_for_each_byte() {
        let mut uart = Uart::default();
        uart.write(4, MCR_OUT2);
        assert!(!uart.line());
        uart.write(1, IER_TRANSMIT);
        assert!(uart.line(), "enabling the interrupt while the register is empty raises it");
        assert_eq!(uart.read(2) & 0xf, IIR_TRANSMIT);
        assert!(!uart.line());
        assert_eq!(uart.write(0, b'x'), Some(b'x'));
        assert!(uart.line());
    }

    #[test]
    fn input_interrupts_until_it_is_read() {
        let mut uart = Uart::default();
        uart.write(4, MCR_OUT2);
        uart.write(1, IER_RECEIVE);
        assert_eq!(uart.input(b"ab"), 2);
        assert!(uart.line());
        assert_eq!((uart.read(0), uart.read(0)), (b'a', b'b'));
        assert!(!uart.line());
        assert_eq!(uart.input(&vec![0; INPUT_BYTES_MAX + 5]), INPUT_BYTES_MAX);
        assert_eq!(uart.input(b"x"), 0);
    }

    proptest! {
        #[test]
        fn garbage_is_harmless(steps in proptest::collection::vec((any::<u16>(), any::<u8>(), any::<bool>()), 0..300)) {
            let mut uart = Uart::default();
            for (register, value, write) in steps {
                if write { uart.write(register, value); } else { uart.read(register & 15); }
                uart.line();
                prop_assert!(uart.input.len() <= INPUT_BYTES_MAX);
            }
            let stored = postcard::to_stdvec(&uart).unwrap();
            prop_assert_eq!(postcard::from_bytes::<Uart>(&stored).unwrap(), uart);
        }
    }
}
