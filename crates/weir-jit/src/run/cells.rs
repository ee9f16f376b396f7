//! The cells of register arrays that code reads and writes directly, without calls of the host.

use super::Host;
use crate::sites::CellArray;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use weir_ir::pipeline::FlatCells;

/// The host's register arrays, as code accesses them.
#[derive(Default)]
pub(super) struct CellArrays {
    /// Keeps the cells allocated while code may access them.
    owners: Vec<Arc<[AtomicU64]>>,
    /// By array: the address of its cells, and their number. Code reads these.
    pub(super) descriptors: Vec<[usize; 2]>,
}

impl CellArrays {
    /// Replaces the arrays whose cells the host has reallocated.
    #[inline]
    pub(super) fn refresh(&mut self, arrays: &[CellArray], host: &mut dyn Host) {
        for (number, array) in arrays.iter().enumerate() {
            let current = host.cells(array.array);
            match (current, self.descriptors.get(number)) {
                (Some(cells), Some([address, _])) if cells.as_ptr().addr() == *address => {}
                (current, _) => self.replace(number, current.cloned(), *array),
            }
        }
    }

    /// Replaces an array, and removes those after it. If the host has fewer cells than it
    /// declared, code gets a private array instead, whose contents the host does not see.
    #[cold]
    fn replace(&mut self, number: usize, cells: Option<Arc<[AtomicU64]>>, array: CellArray) {
        let large_enough = cells.filter(|cells| cells.len() >= array.words);
        let cells = large_enough.unwrap_or_else(|| (0..array.words).map(|_| AtomicU64::new(0)).collect());
        let count = (cells.len() / array.stride.max(1)).saturating_sub(FlatCells::SPARE as usize);
        self.descriptors.truncate(number);
        self.owners.truncate(number);
        self.descriptors.push([cells.as_ptr().expose_provenance(), count]);
        self.owners.push(cells);
    }
}
