//! Cells that code reads and writes itself.

use super::Host;
use crate::sites::CellArray;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use weir_ir::pipeline::FlatCells;

/// Cells of the host's that code reads and writes itself.
#[derive(Default)]
pub(super) struct CellArrays {
    /// Kept, so that they are there as long as code may look.
    kept: Vec<Arc<[AtomicU64]>>,
    /// Where they are and how many, as code is told.
    pub(super) places: Vec<[usize; 2]>,
}

impl CellArrays {
    /// Takes what the host has now.
    #[inline]
    pub(super) fn take(&mut self, arrays: &[CellArray], host: &mut dyn Host) {
        for (number, array) in arrays.iter().enumerate() {
            let found = host.cells(array.array);
            match (found, self.places.get(number)) {
                (Some(cells), Some([address, _])) if cells.as_ptr().addr() == *address => {}
                (found, _) => self.keep(number, found.cloned(), *array),
            }
        }
    }

    /// Keeps cells. A host that has not as many as it said, if there ever is one, is not asked: nobody sees what is written.
    #[cold]
    fn keep(&mut self, number: usize, cells: Option<Arc<[AtomicU64]>>, array: CellArray) {
        let enough = cells.filter(|cells| cells.len() >= array.words);
        let cells = enough.unwrap_or_else(|| (0..array.words).map(|_| AtomicU64::new(0)).collect());
        let many = (cells.len() / array.stride.max(1)).saturating_sub(FlatCells::SPARE as usize);
        self.places.truncate(number);
        self.kept.truncate(number);
        self.places.push([cells.as_ptr().expose_provenance(), many]);
        self.kept.push(cells);
    }
}
