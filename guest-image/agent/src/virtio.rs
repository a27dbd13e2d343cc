//! Binding of the machine's virtio devices to their drivers.
//!
//! By default, the kernel binds a device once its driver is present. Then the restart point (the machine's state that
//! Everett restores after a power loss) would depend on data disks and network cards. So the agent turns automatic
//! binding off (`drivers_autoprobe`, Linux, Documentation/ABI/testing/sysfs-bus) and binds devices itself.
//!
//! A kernel with built-in drivers has bound all devices before the agent runs. The agent then unbinds disks and cards
//! again. The only remaining effect is that the kernel has read them once.

use crate::failure::{Context as _, Failure};
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

/// Folder in which the kernel shows the virtio bus.
const BUS: &str = "/sys/bus/virtio";

/// Type of a device (virtio 1.2, section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Card,
    Disk,
    Console,
    Entropy,
}

impl Kind {
    /// Returns the kind with this device ID, or `None` if no Everett machine has devices with this ID.
    fn of_id(id: u32) -> Option<Kind> {
        match id {
            1 => Some(Kind::Card),
            2 => Some(Kind::Disk),
            3 => Some(Kind::Console),
            4 => Some(Kind::Entropy),
            _ => None,
        }
    }

    /// Returns the name of the Linux driver for this kind.
    fn driver(self) -> &'static str {
        match self {
            Kind::Card => "virtio_net",
            Kind::Disk => "virtio_blk",
            Kind::Console => "virtio_console",
            Kind::Entropy => "virtio_rng",
        }
    }
}

/// Device on the virtio bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    /// Kernel name of the device. The device in the machine's first slot is `virtio0`.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// True if a driver is bound to the device.
    pub(crate) bound: bool,
    /// True if the kernel has a driver for the device. Otherwise the agent ignores it, and a step that needs it fails.
    drivable: bool,
}

impl Device {
    /// True if the device has a driver but is not bound to the driver.
    fn waits(&self) -> bool {
        self.drivable && !self.bound
    }
}

/// The virtio bus, as the path of its folder in sysfs.
#[derive(Debug)]
pub(crate) struct Bus(PathBuf);

impl Bus {
    /// Returns the bus of this machine.
    pub(crate) fn of_machine() -> Bus {
        Bus(PathBuf::from(BUS))
    }

    /// Returns a bus in another folder, for tests.
    #[cfg(test)]
    fn at(folder: &std::path::Path) -> Bus {
        Bus(folder.to_owned())
    }

    /// Turns automatic binding of devices on or off. Returns false if the kernel has no virtio bus yet.
    pub(crate) fn set_automatic(&self, on: bool) -> Result<bool, Failure> {
        let path = self.0.join("drivers_autoprobe");
        match fs::write(&path, if on { "1" } else { "0" }) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error).context(|| format!("write {}", path.display())),
        }
    }

    /// Returns the devices, in the order of the machine's slots.
    pub(crate) fn devices(&self) -> Result<Vec<Device>, Failure> {
        let folder = self.0.join("devices");
        let what = || format!("read {}", folder.display());
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).context(what),
        };
        let mut devices = Vec::new();
        for entry in entries {
            let entry = entry.context(what)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // The kernel numbers devices in the order of the ACPI tables, which list the slots in order.
            let Some(number) = name.strip_prefix("virtio").and_then(|number| number.parse::<u32>().ok())
            else {
                continue;
            };
            let path = entry.path().join("device");
            let text = fs::read_to_string(&path).context(|| format!("read {}", path.display()))?;
            let id = u32::from_str_radix(text.trim().trim_start_matches("0x"), 16)
                .context(|| format!("read {}", path.display()))?;
            let Some(kind) = Kind::of_id(id) else { continue };
            let bound = entry.path().join("driver").exists();
            let drivable = self.driver(kind).exists();
            devices.push((number, Device { name, kind, bound, drivable }));
        }
        devices.sort_by_key(|(number, _)| *number);
        Ok(devices.into_iter().map(|(_, device)| device).collect())
    }

    /// Returns the folder in which the kernel shows the driver for a kind.
    fn driver(&self, kind: Kind) -> PathBuf {
        self.0.join("drivers").join(kind.driver())
    }

    /// Binds a device to its driver. When this returns, the device is usable.
    pub(crate) fn bind(&self, device: &Device) -> Result<(), Failure> {
        self.tell(device, "bind").context(|| format!("give the device {} to its driver", device.name))
    }

    /// Unbinds a device from its driver.
    pub(crate) fn unbind(&self, device: &Device) -> Result<(), Failure> {
        self.tell(device, "unbind").context(|| format!("take the device {} from its driver", device.name))
    }

    fn tell(&self, device: &Device, what: &str) -> std::io::Result<()> {
        let path = self.driver(device.kind).join(what);
        // The file belongs to the kernel. If it does not exist, this must not create it.
        let mut file = fs::OpenOptions::new().write(true).open(path)?;
        std::io::Write::write_all(&mut file, device.name.as_bytes())
    }

    /// Binds the devices that the agent needs (console and entropy), and unbinds disks and cards.
    pub(crate) fn only_essentials(&self) -> Result<(), Failure> {
        for device in self.devices()? {
            match device.kind {
                Kind::Console | Kind::Entropy if device.waits() => self.bind(&device)?,
                Kind::Disk | Kind::Card if device.bound => self.unbind(&device)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Binds the first disk that is not bound. Returns false if all disks are bound.
    pub(crate) fn bind_next_disk(&self) -> Result<bool, Failure> {
        let devices = self.devices()?;
        match devices.iter().find(|device| device.kind == Kind::Disk && device.waits()) {
            Some(device) => self.bind(device).map(|()| true),
            None => Ok(false),
        }
    }

    /// Binds every device in the order of slots, and turns on automatic binding for later devices.
    pub(crate) fn bind_all(&self) -> Result<(), Failure> {
        for device in self.devices()?.iter().filter(|device| device.waits()) {
            self.bind(device)?;
        }
        self.set_automatic(true).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::{Bus, Device, Kind};
    use std::fs;
    use std::path::Path;

    /// Writes a folder like the kernel's folder for a bus. Each device is given as number, ID and whether it is bound.
    fn bus(folder: &Path, devices: &[(u32, u32, bool)]) -> Bus {
        fs::write(folder.join("drivers_autoprobe"), "1").unwrap();
        for (number, id, bound) in devices {
            let device = folder.join(format!("devices/virtio{number}"));
            fs::create_dir_all(&device).unwrap();
            fs::write(device.join("device"), format!("0x{id:04x}\n")).unwrap();
            if *bound {
                fs::create_dir(device.join("driver")).unwrap();
            }
        }
        for driver in ["virtio_net", "virtio_blk", "virtio_console", "virtio_rng"] {
            let driver = folder.join("drivers").join(driver);
            fs::create_dir_all(&driver).unwrap();
            fs::write(driver.join("bind"), "").unwrap();
            fs::write(driver.join("unbind"), "").unwrap();
        }
        Bus::at(folder)
    }

    fn read(folder: &Path, file: &str) -> String {
        fs::read_to_string(folder.join(file)).unwrap()
    }

    #[test]
    fn devices_are_in_slot_order_and_unknown_ones_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let bus = bus(folder.path(), &[(10, 2, false), (2, 2, true), (0, 3, false), (3, 99, false)]);
        fs::create_dir(folder.path().join("devices/other")).unwrap();
        let device = |name: &str, kind, bound| Device { name: name.to_owned(), kind, bound, drivable: true };
        let wanted = [
            device("virtio0", Kind::Console, false),
            device("virtio2", Kind::Disk, true),
            device("virtio10", Kind::Disk, false),
        ];
        assert_eq!(bus.devices().unwrap(), wanted);
    }

    #[test]
    fn essentials_are_bound_and_a_built_in_kernels_disks_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let bus = bus(folder.path(), &[(0, 3, false), (1, 4, true), (2, 2, true), (3, 1, false)]);
        bus.only_essentials().unwrap();
        assert_eq!(read(folder.path(), "drivers/virtio_console/bind"), "virtio0");
        assert_eq!(read(folder.path(), "drivers/virtio_rng/bind"), "", "it has its driver already");
        assert_eq!(read(folder.path(), "drivers/virtio_blk/unbind"), "virtio2");
        assert_eq!(read(folder.path(), "drivers/virtio_net/unbind"), "", "it has none");
    }

    #[test]
    fn the_next_disk_is_the_first_without_a_driver() {
        let folder = tempfile::tempdir().unwrap();
        let bus = bus(folder.path(), &[(2, 2, true), (9, 2, false), (10, 2, false), (3, 1, false)]);
        assert!(bus.bind_next_disk().unwrap());
        assert_eq!(read(folder.path(), "drivers/virtio_blk/bind"), "virtio9");
        fs::remove_dir_all(folder.path().join("devices")).unwrap();
        assert!(!bus.bind_next_disk().unwrap());
    }

    #[test]
    fn what_is_not_there_is_no_error_and_what_refuses_is() {
        let folder = tempfile::tempdir().unwrap();
        let none = Bus::at(&folder.path().join("none"));
        assert!(!none.set_automatic(false).unwrap());
        assert_eq!(none.devices().unwrap(), []);
        let bus = bus(folder.path(), &[(0, 2, false)]);
        assert!(bus.set_automatic(false).unwrap());
        assert_eq!(read(folder.path(), "drivers_autoprobe"), "0");
        let driver = folder.path().join("drivers/virtio_blk");
        fs::remove_file(driver.join("bind")).unwrap();
        let error = bus.bind_all().unwrap_err().to_string();
        assert!(error.starts_with("cannot give the device virtio0 to its driver: "), "{error}");
        // The kernel lacks the driver, so the agent ignores the device.
        fs::remove_dir_all(driver).unwrap();
        bus.bind_all().unwrap();
        bus.only_essentials().unwrap();
        assert!(!bus.bind_next_disk().unwrap());
        assert_eq!(read(folder.path(), "drivers_autoprobe"), "1");
    }
}
