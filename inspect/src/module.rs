//! Loadable modules of the kernel: their names, their functions and their unwind tables, from the kernel's memory.
//!
//! The kernel keeps the symbols of each module for its own stack traces (`kallsyms`), and its unwind tables (ORC). A
//! module whose tables cannot be read has no functions or no rows here. Stacks then show its addresses as numbers and
//! end there.

use std::ops::Range;

use everett_symbols::kernel::Symbols;
use everett_symbols::kernel::orc::{Orc, Row};

use crate::limits::{
    MODULE_AREA_BYTES_MAX, MODULE_AREAS_MAX, MODULE_NAME_BYTES_MAX, MODULE_ROWS_MAX, MODULE_SYMBOL_BYTES_MAX,
    MODULE_SYMBOLS_MAX, MODULES_MAX, SYMBOL_NAME_BYTES_MAX,
};
use crate::{Error, Guest};

/// Value of `module.state` while the kernel is still setting up the structure (`MODULE_STATE_UNFORMED`).
const UNFORMED: u64 = 3;
/// Length of a symbol (`Elf64_Sym`), in bytes.
const SYMBOL_BYTES: u64 = 24;
/// Length of an entry of `orc_unwind_ip`, in bytes.
const ROW_START_BYTES: u64 = 4;

/// The loadable modules of a kernel at one instant.
#[derive(Debug, Clone, Default)]
pub struct Modules(Vec<Module>);

/// A loadable module.
#[derive(Debug, Clone)]
pub struct Module {
    /// Name, e.g. `ext4`.
    pub name: String,
    /// Areas of memory with its code and data.
    areas: Vec<Range<u64>>,
    symbols: Symbols,
    orc: Option<Orc>,
}

/// Reads that are still allowed for all modules.
struct Left {
    rows: usize,
    symbols: usize,
    name_bytes: usize,
}

impl Modules {
    /// Returns the modules, in the order of the kernel's list.
    #[must_use]
    pub fn all(&self) -> &[Module] {
        &self.0
    }

    /// Returns the module that holds an address.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<&Module> {
        self.0.iter().find(|module| module.holds(address))
    }
}

impl Module {
    fn holds(&self, address: u64) -> bool {
        self.areas.iter().any(|area| area.contains(&address))
    }

    /// Returns the names of the module's code. Empty if they could not be read.
    pub(crate) fn names(&self) -> &Symbols {
        &self.symbols
    }

    /// Returns the row of the unwind tables for code in the module. `None` if its tables could not be read.
    pub(crate) fn row(&self, address: u64) -> Option<Row> {
        self.orc.as_ref()?.row(address)
    }
}

impl Guest<'_> {
    /// Returns the kernel's loadable modules. Empty if the kernel has none.
    ///
    /// # Errors
    /// Returns an error if the list of modules cannot be read.
    pub fn modules(&self) -> Result<Modules, Error> {
        let layout = &self.kernel.layout;
        let (Some(head), Some(list)) = (self.kernel.values.get("modules"), layout.module_list) else {
            return Ok(Modules::default());
        };
        let mut left =
            Left { rows: MODULE_ROWS_MAX, symbols: MODULE_SYMBOLS_MAX, name_bytes: MODULE_SYMBOL_BYTES_MAX };
        let mut modules = Vec::new();
        for module in self.list(head, list, "modules", MODULES_MAX)? {
            modules.extend(self.module(module, &mut left).map_err(Error::reading("a module"))?);
        }
        Ok(Modules(modules))
    }

    /// Returns a module from the address of its `struct module`. `None` if the kernel is still setting it up.
    fn module(&self, module: u64, left: &mut Left) -> Result<Option<Module>, Error> {
        let layout = &self.kernel.layout;
        let (Some(state), Some(name)) = (layout.module_state, layout.module_name) else {
            return Err(Error::Field("module.state"));
        };
        if self.number(module, state)? == UNFORMED {
            return Ok(None);
        }
        let name_bytes = (name.bytes() as usize).min(MODULE_NAME_BYTES_MAX);
        let name = self.text(module.wrapping_add(name.offset()), name_bytes)?;
        let areas = self.areas(module)?;
        let symbols = self.symbols(module, &areas, left).unwrap_or_default();
        let orc = self.rows(module, &areas, left);
        Ok(Some(Module { name, areas, symbols, orc }))
    }

    /// Returns a module's areas of memory, without empty ones.
    fn areas(&self, module: u64) -> Result<Vec<Range<u64>>, Error> {
        let layout = &self.kernel.layout;
        let mut areas = Vec::new();
        let mut put = |base: u64, bytes: u64| {
            let end = base.checked_add(bytes).filter(|_| bytes <= MODULE_AREA_BYTES_MAX);
            areas.push(base..end.ok_or(Error::Unmapped(base))?);
            Ok::<(), Error>(())
        };
        match (layout.module_areas, layout.area_base, layout.area_bytes) {
            (Some(all), Some(base), Some(bytes)) if layout.area_stride > 0 => {
                let count = all.bytes() / layout.area_stride;
                for n in 0..count.min(MODULE_AREAS_MAX as u64) {
                    let area = module.wrapping_add(all.offset() + n * layout.area_stride);
                    put(self.number(area, base)?, self.number(area, bytes)?)?;
                }
            }
            _ => {
                for (base, bytes) in [
                    (layout.module_core_base, layout.module_core_bytes),
                    (layout.module_init_base, layout.module_init_bytes),
                ] {
                    let (Some(base), Some(bytes)) = (base, bytes) else {
                        return Err(Error::Field("module.core_layout"));
                    };
                    put(self.number(module, base)?, self.number(module, bytes)?)?;
                }
            }
        }
        areas.retain(|area| !area.is_empty());
        Ok(areas)
    }

    /// Returns the names of a module's code. `None` if they cannot be read, or if there are more than `left`.
    fn symbols(&self, module: u64, areas: &[Range<u64>], left: &mut Left) -> Option<Symbols> {
        let layout = &self.kernel.layout;
        let table = self.number(module, layout.module_kallsyms?).ok()?;
        let of = |field: Option<_>| self.number(table, field?).ok();
        let (start, names) = (of(layout.module_symbols)?, of(layout.module_names)?);
        let count = of(layout.module_symbol_count)?;
        left.symbols = left.symbols.checked_sub(usize::try_from(count).ok()?)?;
        let entries = self.part(areas, start, count.checked_mul(SYMBOL_BYTES)?)?;
        let mut found = Vec::new();
        for entry in entries.chunks_exact(SYMBOL_BYTES as usize) {
            let [n0, n1, n2, n3, _, _, s0, s1, value @ .., _, _, _, _, _, _, _, _] = entry else { continue };
            let section = u16::from_le_bytes([*s0, *s1]);
            let value = u64::from_le_bytes(value.try_into().ok()?);
            // Undefined symbols are those of the kernel and of other modules.
            if section == 0 || !areas.iter().any(|area| area.contains(&value)) {
                continue;
            }
            let at = names.checked_add(u32::from_le_bytes([*n0, *n1, *n2, *n3]).into())?;
            let name = self.text(at, SYMBOL_NAME_BYTES_MAX).ok()?;
            left.name_bytes = left.name_bytes.checked_sub(name.len())?;
            if !is_internal(&name) {
                found.push((value, name));
            }
        }
        Some(Symbols::of_names(found))
    }

    /// Returns a module's unwind tables. `None` if they cannot be read, or if there are more rows than `left`.
    fn rows(&self, module: u64, areas: &[Range<u64>], left: &mut Left) -> Option<Orc> {
        let (layout, orc) = (&self.kernel.layout, self.kernel.orc.as_ref()?);
        let of = |field: Option<_>| self.number(module, field?).ok();
        let count = of(layout.module_rows)?;
        left.rows = left.rows.checked_sub(usize::try_from(count).ok()?)?;
        let (starts_at, rows_at) = (of(layout.module_row_starts)?, of(layout.module_row_content)?);
        let starts = self.part(areas, starts_at, count.checked_mul(ROW_START_BYTES)?)?;
        let rows = self.part(areas, rows_at, count.checked_mul(orc.row_bytes() as u64)?)?;
        orc.of_module(&starts, starts_at, &rows)
    }

    /// Returns a table in a module's memory. `None` if it is not wholly in one of the module's areas, or not mapped.
    fn part(&self, areas: &[Range<u64>], start: u64, bytes: u64) -> Option<Vec<u8>> {
        let end = start.checked_add(bytes)?;
        areas.iter().find(|area| area.start <= start && end <= area.end)?;
        let mut part = vec![0; usize::try_from(bytes).ok()?];
        self.memory().read(start, &mut part).ok()?;
        Some(part)
    }
}

/// Returns true if the kernel skips this symbol in its stack traces (`is_mapping_symbol` in `include/linux/module_symbol.h`).
fn is_internal(name: &str) -> bool {
    name.is_empty() || name.starts_with(".L") || name.starts_with("L0") || name.starts_with('$')
}
