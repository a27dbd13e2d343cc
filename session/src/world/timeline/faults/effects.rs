//! Effects of faults: changes of the world when a fault starts and when it ends.

use everett_fault::{DiskName, Fault, GuestFault, MediumFault, NodeFault, PPM};
use everett_input::causes::with_causes;
use everett_protocol::Exec;
use everett_streams::{Purpose, Streams};
use everett_vmm::disk::{Disk, PowerLossOptions};

use super::{FaultProgress, Faults, stream_number};
use crate::world::event::{Event, Loss, What};
use crate::world::timeline::{Phase, Timeline};

/// Reason why a fault on a missing disk is not applied.
const NO_DISK: &str = "the node has no such disk";

impl Timeline {
    /// Starts a fault. Returns a description of its effect, if there is one to report. An error is the reason why the
    /// fault was not applied.
    pub(super) fn start(
        &mut self,
        faults: &Faults,
        id: u32,
        fault: &Fault,
    ) -> Result<Option<String>, String> {
        match fault {
            // The wire can apply a fault whether nodes are on or off.
            Fault::Network(fault) => {
                let now = self.world.vtime();
                self.world.wire().apply(u64::from(id), fault, now).map_err(|error| with_causes(&error))?;
                Ok(None)
            }
            Fault::Disk { disk, fault } => {
                let disk = self.data_disk(disk).ok_or(NO_DISK)?;
                disk.apply(u64::from(id), fault.clone()).map_err(|error| with_causes(&error))?;
                Ok(None)
            }
            Fault::Medium { disk, fault } => self.damage(disk, fault).map(Some),
            Fault::Node { node, fault } => {
                let node = self.number_of(node).ok_or("there is no such node")?;
                self.start_of_node(faults, node, fault)?;
                Ok(None)
            }
            Fault::Guest { node, fault } => {
                let node = self.number_of(node).ok_or("there is no such node")?;
                self.ask(id, node, fault)?;
                Ok(None)
            }
        }
    }

    /// Undoes the change that a fault made, when the fault ends.
    pub(super) fn undo(&mut self, faults: &Faults, id: u32, fault: &Fault) {
        let now = self.world.vtime();
        match fault {
            Fault::Network(_) => {
                self.world.wire().heal(u64::from(id), now);
            }
            Fault::Disk { disk, .. } => {
                if let Some(disk) = self.data_disk(disk) {
                    disk.heal(u64::from(id));
                }
            }
            Fault::Medium { fault: MediumFault::BitRot { .. }, .. } => {}
            Fault::Node { node, fault } => {
                if let Some(node) = self.number_of(node) {
                    self.undo_of_node(faults, id, node, fault);
                }
            }
            Fault::Guest { node, fault } => {
                if let Some(node) = self.number_of(node) {
                    self.undo_of_guest(node, fault);
                }
            }
        }
    }

    fn start_of_node(&mut self, faults: &Faults, node: usize, fault: &NodeFault) -> Result<(), String> {
        let number = stream_number(node);
        match fault {
            NodeFault::PowerLoss { tear_sectors, .. } => {
                let options = PowerLossOptions { tear_sectors: *tear_sectors };
                let now = self.world.vtime();
                let streams = streams(&mut self.course.faults)?;
                let machine = self.world.node_mut(node).machine_mut();
                let losses = machine.power_loss(streams, number, options);
                let name = machine.name().to_owned();
                self.switch_off(node);
                let data = losses.iter().skip(self.first_data_disk).enumerate();
                let told = data.map(|(disk, loss)| What::Loss(Loss::of(disk, loss)));
                let told = told.map(|what| Event { vtime_ns: now, node: name.clone(), what });
                self.reporting.of_host(told);
            }
            NodeFault::Reset { restart } => {
                let streams = streams(&mut self.course.faults)?;
                self.world.node_mut(node).machine_mut().reset_disks(streams, number);
                self.switch_off(node);
                self.switch_on(faults, node, *restart);
            }
            NodeFault::Pause => self.world.pause(node),
            NodeFault::SlowCpu { .. } | NodeFault::ClockDrift { .. } | NodeFault::Stalls { .. } => {
                self.disturb_cpu(node, fault);
            }
        }
        Ok(())
    }

    fn undo_of_node(&mut self, faults: &Faults, id: u32, node: usize, fault: &NodeFault) {
        match fault {
            NodeFault::PowerLoss { restart: Some(restart), .. } => self.switch_on(faults, node, *restart),
            // `end_faults` switches the node on at the end of the workload.
            NodeFault::PowerLoss { restart: None, .. } => {}
            NodeFault::Reset { .. } => {}
            NodeFault::Pause => {
                self.world.resume(node);
                let root = self.course.root_ns().unwrap_or(0);
                let paused = faults.plan.entries().get(id as usize).map(|entry| entry.at_ns);
                let paused_ns = root.saturating_add(paused.unwrap_or(0));
                self.nodes[node].conversation.resumed(paused_ns, self.world.vtime());
            }
            NodeFault::SlowCpu { .. } => self.world.set_speed(node, PPM),
            NodeFault::ClockDrift { .. } => self.world.drift(node, 0),
            NodeFault::Stalls { .. } => self.world.set_stalls(node, None),
        }
    }

    /// Applies a fault of a CPU or its clock, also to a node that restarts while the fault is active. Faults of other
    /// kinds change nothing here.
    pub(super) fn disturb_cpu(&mut self, node: usize, fault: &NodeFault) {
        match fault {
            NodeFault::SlowCpu { ppm } => self.world.set_speed(node, *ppm),
            NodeFault::ClockDrift { ppm } => self.world.drift(node, *ppm),
            NodeFault::Stalls { every_instructions, stall } => {
                self.world.set_stalls(node, Some((*every_instructions, stall.clone())));
            }
            NodeFault::PowerLoss { .. } | NodeFault::Reset { .. } | NodeFault::Pause => {}
        }
    }

    /// Damages the data on a disk. Returns a description of the damage.
    fn damage(&mut self, disk: &DiskName, fault: &MediumFault) -> Result<String, String> {
        let node = self.number_of(&disk.node).ok_or("there is no such node")?;
        let place = self.first_data_disk + disk.disk as usize;
        let streams = streams(&mut self.course.faults)?;
        let disk = self.world.node_mut(node).machine_mut().disk_mut(place).ok_or(NO_DISK)?;
        match fault {
            MediumFault::BitRot { bits } => {
                let number = u8::try_from(place).map_err(|_| NO_DISK)?;
                let purpose = Purpose::Rot { node: stream_number(node), disk: number };
                let flipped = disk.rot(*bits, streams.get(purpose));
                let bits = flipped.iter().map(|bit| format!("bit {} at {:#x}", bit.bit, bit.offset));
                Ok(bits.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// Applies a fault through the node's agent (Everett's program in the guest).
    fn ask(&mut self, id: u32, number: usize, fault: &GuestFault) -> Result<(), String> {
        let session = &mut self.nodes[number];
        if session.conversation.phase() < Phase::Ready || !self.world.nodes()[number].is_on() {
            return Err("the node's agent is not up".to_owned());
        }
        let node = self.world.node_mut(number);
        match fault {
            GuestFault::ClockStep { step_ns } => session.step_clock(node, *step_ns),
            GuestFault::Reseed => session.reseed(node),
            GuestFault::Command { argv } => {
                session.conversation.custom(&format!("fault-{id}"), Exec::new(argv.clone()), node.vtime());
            }
            GuestFault::RestartService { unit } => session.conversation.restart_service(unit, node.vtime()),
            GuestFault::Priorities { unit, every } => session.start_priorities(node, unit, every),
        }
        Ok(())
    }

    fn undo_of_guest(&mut self, node: usize, fault: &GuestFault) {
        match fault {
            GuestFault::Priorities { unit, .. } => {
                self.nodes[node].stop_priorities(unit, self.world.vtime());
            }
            GuestFault::ClockStep { .. }
            | GuestFault::Reseed
            | GuestFault::Command { .. }
            | GuestFault::RestartService { .. } => {}
        }
    }

    /// Returns a data disk of a node. Data disks come after the root disk.
    fn data_disk(&mut self, disk: &DiskName) -> Option<&mut Disk> {
        let node = self.number_of(&disk.node)?;
        let first = self.first_data_disk;
        self.machine_mut(node).disk_mut(first + usize::try_from(disk.disk).ok()?)
    }
}

fn streams(progress: &mut Option<FaultProgress>) -> Result<&mut Streams, String> {
    Ok(&mut progress.as_mut().ok_or("there is no plan")?.streams)
}
