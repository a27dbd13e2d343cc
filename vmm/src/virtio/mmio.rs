//! The virtio-mmio transport, version 2 (virtio 1.2, section 4.2): the registers by which a driver uses a device.
//!
//! Each register is a doubleword. With other widths or offsets, reads return zero and writes are ignored. The driver
//! can read the configuration space as bytes, words and doublewords.

use everett_input::causes::with_causes;
use serde::{Deserialize, Serialize};
use virtio_bindings::virtio_config::{
    VIRTIO_CONFIG_S_ACKNOWLEDGE, VIRTIO_CONFIG_S_DRIVER, VIRTIO_CONFIG_S_DRIVER_OK, VIRTIO_CONFIG_S_FAILED,
    VIRTIO_CONFIG_S_FEATURES_OK, VIRTIO_CONFIG_S_NEEDS_RESET, VIRTIO_F_VERSION_1,
};
use virtio_bindings::virtio_mmio as reg;
use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC};
use virtio_queue::QueueT;

use super::queue::VirtQueue;
use super::{Cx, Device, DeviceError};

const MAGIC: u32 = u32::from_le_bytes(*b"virt");
const VERSION: u32 = 2;
/// Vendor ID: "EVRT".
const VENDOR: u32 = u32::from_le_bytes(*b"EVRT");
/// Interrupt status bit: the device has used buffers.
const INTERRUPT_USED: u32 = 1;
/// Interrupt status bit: the configuration has changed, or the device needs a reset.
const INTERRUPT_CONFIG: u32 = 2;
/// Offset of the configuration space.
const CONFIG: u64 = reg::VIRTIO_MMIO_CONFIG as u64;
/// Value of the length and address registers of a shared memory region that does not exist (4.2.2).
const NO_REGION: u32 = u32::MAX;

const STATUS_WRITABLE: u32 = VIRTIO_CONFIG_S_ACKNOWLEDGE
    | VIRTIO_CONFIG_S_DRIVER
    | VIRTIO_CONFIG_S_FEATURES_OK
    | VIRTIO_CONFIG_S_DRIVER_OK
    | VIRTIO_CONFIG_S_FAILED;

/// A virtio-mmio slot: registers, queues and a device.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transport {
    device: Device,
    queues: Vec<VirtQueue>,
    status: u32,
    features_select: u32,
    driver_features_select: u32,
    driver_features: u64,
    queue_select: u32,
    interrupt_status: u32,
    config_generation: u32,
}

impl Transport {
    /// Creates a slot with this device, in the state after a reset.
    pub fn new(device: Device) -> Transport {
        let queues = device.queue_sizes().into_iter().map(VirtQueue::new).collect();
        Transport {
            device,
            queues,
            status: 0,
            features_select: 0,
            driver_features_select: 0,
            driver_features: 0,
            queue_select: 0,
            interrupt_status: 0,
            config_generation: 0,
        }
    }

    /// Returns the device in the slot.
    pub fn device(&self) -> &Device {
        &self.device
    }
    /// True if the slot's interrupt line is high.
    pub fn line(&self) -> bool {
        self.interrupt_status != 0
    }
    /// True if the driver has set the device up and the device needs no reset.
    pub fn running(&self) -> bool {
        self.status & (VIRTIO_CONFIG_S_DRIVER_OK | VIRTIO_CONFIG_S_NEEDS_RESET) == VIRTIO_CONFIG_S_DRIVER_OK
    }

    /// Reads `size` bytes of a register at `offset` within the slot.
    pub fn read(&self, offset: u64, size: u8) -> u64 {
        if offset >= CONFIG {
            return self.read_config(offset - CONFIG, size);
        }
        if size != 4 {
            return 0;
        }
        let queue = self.queues.get(self.queue_select as usize);
        u64::from(match offset as u32 {
            reg::VIRTIO_MMIO_MAGIC_VALUE => MAGIC,
            reg::VIRTIO_MMIO_VERSION => VERSION,
            reg::VIRTIO_MMIO_DEVICE_ID => self.device.id(),
            reg::VIRTIO_MMIO_VENDOR_ID => VENDOR,
            reg::VIRTIO_MMIO_DEVICE_FEATURES => half(self.features(), self.features_select),
            reg::VIRTIO_MMIO_QUEUE_NUM_MAX => queue.map_or(0, |q| u32::from(q.max_size())),
            reg::VIRTIO_MMIO_QUEUE_READY => queue.map_or(0, |q| u32::from(q.ready())),
            reg::VIRTIO_MMIO_INTERRUPT_STATUS => self.interrupt_status,
            reg::VIRTIO_MMIO_STATUS => self.status,
            reg::VIRTIO_MMIO_CONFIG_GENERATION => self.config_generation,
            reg::VIRTIO_MMIO_SHM_LEN_LOW..=reg::VIRTIO_MMIO_SHM_BASE_HIGH => NO_REGION,
            _ => 0,
        })
    }

    /// Writes `size` bytes of a register at `offset` within the slot.
    pub fn write(&mut self, offset: u64, size: u8, value: u64, cx: &mut Cx<'_>) {
        if size != 4 || offset >= CONFIG {
            // No device of Everett has a writable field in its configuration space.
            return;
        }
        let value = value as u32;
        match offset as u32 {
            reg::VIRTIO_MMIO_DEVICE_FEATURES_SEL => self.features_select = value,
            reg::VIRTIO_MMIO_DRIVER_FEATURES_SEL => self.driver_features_select = value,
            reg::VIRTIO_MMIO_DRIVER_FEATURES => self.set_driver_features(value),
            reg::VIRTIO_MMIO_QUEUE_SEL => self.queue_select = value,
            reg::VIRTIO_MMIO_QUEUE_NOTIFY => self.notify(value, cx),
            reg::VIRTIO_MMIO_INTERRUPT_ACK => self.interrupt_status &= !value,
            reg::VIRTIO_MMIO_STATUS => self.set_status(value, cx),
            _ => self.write_queue(offset as u32, value, cx),
        }
    }

    /// Handles a due event of the device. `token` identifies the event to the device.
    pub fn event(&mut self, token: u64, cx: &mut Cx<'_>) {
        if self.running() {
            let result = self.device.event(token, &mut self.queues, cx);
            self.finish(result, cx);
        } else if let Device::Net(card) = &mut self.device {
            card.lose(token);
        }
    }

    /// Returns the device, so that Everett can change it. If the caller adds input to the device, it must then call
    /// [`Transport::event`], which passes the input to the guest.
    pub(crate) fn device_mut(&mut self) -> &mut Device {
        &mut self.device
    }

    fn features(&self) -> u64 {
        self.device.features()
            | 1 << VIRTIO_F_VERSION_1
            | 1 << VIRTIO_RING_F_EVENT_IDX
            | 1 << VIRTIO_RING_F_INDIRECT_DESC
    }

    fn set_driver_features(&mut self, value: u32) {
        if self.status & (VIRTIO_CONFIG_S_DRIVER | VIRTIO_CONFIG_S_FEATURES_OK) != VIRTIO_CONFIG_S_DRIVER {
            return;
        }
        let value = u64::from(value);
        match self.driver_features_select {
            0 => self.driver_features = self.driver_features & !0xffff_ffff | value,
            1 => self.driver_features = self.driver_features & 0xffff_ffff | value << 32,
            _ => {}
        }
    }

    /// Sets status bits. The driver cannot clear single bits, but writing zero resets the device (2.1 and 3.1).
    fn set_status(&mut self, value: u32, cx: &mut Cx<'_>) {
        if value == 0 {
            self.reset(cx);
            return;
        }
        let mut added = value & STATUS_WRITABLE & !self.status;
        let known = self.driver_features & !self.features() == 0;
        if added & VIRTIO_CONFIG_S_FEATURES_OK != 0
            && !(known && self.driver_features & 1 << VIRTIO_F_VERSION_1 != 0)
        {
            added &= !VIRTIO_CONFIG_S_FEATURES_OK;
        }
        if (self.status | added) & VIRTIO_CONFIG_S_FEATURES_OK == 0 {
            added &= !VIRTIO_CONFIG_S_DRIVER_OK;
        }
        if added & VIRTIO_CONFIG_S_FEATURES_OK != 0 {
            self.device.negotiated(self.driver_features);
        }
        self.status |= added;
    }

    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.device.reset(cx);
        for queue in &mut self.queues {
            queue.ring().reset();
        }
        self.status = 0;
        self.features_select = 0;
        self.driver_features_select = 0;
        self.driver_features = 0;
        self.queue_select = 0;
        self.interrupt_status = 0;
    }

    fn write_queue(&mut self, offset: u32, value: u32, cx: &mut Cx<'_>) {
        let event_idx = self.driver_features & 1 << VIRTIO_RING_F_EVENT_IDX != 0;
        let features_ok = self.status & VIRTIO_CONFIG_S_FEATURES_OK != 0;
        let number = self.queue_select as u16;
        let Some(queue) = self.queues.get_mut(self.queue_select as usize) else { return };
        if offset == reg::VIRTIO_MMIO_QUEUE_READY {
            if value & 1 == 0 {
                queue.ring().set_ready(false);
            } else if features_ok && !queue.ready() {
                let result = queue.enable(cx.ram, event_idx);
                let result = super::on_queue(number, result.map(|()| false));
                self.finish(result, cx);
            }
            return;
        }
        if queue.ready() {
            return;
        }
        let ring = queue.ring();
        let (low, high) = (Some(value), None);
        match offset {
            reg::VIRTIO_MMIO_QUEUE_NUM => ring.set_size(u16::try_from(value).unwrap_or(0)),
            reg::VIRTIO_MMIO_QUEUE_DESC_LOW => ring.set_desc_table_address(low, high),
            reg::VIRTIO_MMIO_QUEUE_DESC_HIGH => ring.set_desc_table_address(high, low),
            reg::VIRTIO_MMIO_QUEUE_AVAIL_LOW => ring.set_avail_ring_address(low, high),
            reg::VIRTIO_MMIO_QUEUE_AVAIL_HIGH => ring.set_avail_ring_address(high, low),
            reg::VIRTIO_MMIO_QUEUE_USED_LOW => ring.set_used_ring_address(low, high),
            reg::VIRTIO_MMIO_QUEUE_USED_HIGH => ring.set_used_ring_address(high, low),
            _ => {}
        }
    }

    fn notify(&mut self, queue: u32, cx: &mut Cx<'_>) {
        let Ok(number) = u16::try_from(queue) else { return };
        if !self.running() || !self.queues.get(usize::from(number)).is_some_and(VirtQueue::ready) {
            return;
        }
        let result = self.device.notify(number, &mut self.queues, cx);
        self.finish(result, cx);
    }

    fn finish(&mut self, result: Result<bool, DeviceError>, cx: &mut Cx<'_>) {
        match result {
            Ok(true) => self.interrupt_status |= INTERRUPT_USED,
            Ok(false) => {}
            Err(error) => {
                self.status |= VIRTIO_CONFIG_S_NEEDS_RESET;
                self.interrupt_status |= INTERRUPT_CONFIG;
                cx.output.device_error(cx.now, cx.slot, self.device.name(), with_causes(&error));
            }
        }
    }

    fn read_config(&self, offset: u64, size: u8) -> u64 {
        let config = self.device.config();
        let mut bytes = [0; 8];
        for (i, byte) in bytes.iter_mut().enumerate().take(usize::from(size.min(4))) {
            *byte = config.get(offset as usize + i).copied().unwrap_or(0);
        }
        u64::from_le_bytes(bytes)
    }
}

/// Returns the 32-bit half of a feature word that a select register chooses: 0 for the lower half, 1 for the upper
/// half.
fn half(word: u64, select: u32) -> u32 {
    match select {
        0 => word as u32,
        1 => (word >> 32) as u32,
        _ => 0,
    }
}
