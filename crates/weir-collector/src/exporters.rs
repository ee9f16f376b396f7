//! The streams of reports, by their sequence numbers.

use crate::event::{Events, Subject, What};
use crate::interval::ExporterKey;
use crate::sequence::{Arrival, Sequence, SequenceCounts};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::net::IpAddr;
use weir_int::report::Report;

/// Exporters and the sequence numbers of each.
#[derive(Debug)]
pub(crate) struct Exporters {
    index: HashMap<ExporterKey, usize, RandomState>,
    list: Vec<Exporter>,
    /// The exporter of the datagram before: mostly the next one's.
    last: usize,
    most: usize,
}

#[derive(Debug)]
struct Exporter {
    key: ExporterKey,
    sequence: Sequence,
    counted: SequenceCounts,
}

impl Exporters {
    pub fn new(most: usize) -> Self {
        Exporters {
            index: HashMap::default(),
            list: Vec::new(),
            last: 0,
            most,
        }
    }

    /// Takes the sequence number of a datagram's first report. Whether there was room for its
    /// exporter.
    pub fn take(&mut self, now: u64, address: IpAddr, report: &Report<'_>, events: &mut Events) -> bool {
        let key = ExporterKey {
            address,
            node: report.node_id.unwrap_or(0),
            hw_id: report.hw_id,
        };
        let Some(exporter) = self.find_or_add(key, report.sequence.bits) else {
            return false;
        };
        let subject = || Subject::Exporter {
            address,
            node: key.node,
        };
        match exporter.sequence.arrive(report.sequence.value.into()) {
            Arrival::AfterGap { missing } => events.push(now, subject(), What::ReportsLost { missing }),
            Arrival::Restart => events.push(now, subject(), What::Restarted),
            Arrival::InOrder | Arrival::Late | Arrival::Duplicate => {}
        }
        true
    }

    /// `None`: it is new and there is no room.
    fn find_or_add(&mut self, key: ExporterKey, bits: u8) -> Option<&mut Exporter> {
        if self.list.get(self.last).is_none_or(|last| last.key != key) {
            self.last = match self.index.get(&key) {
                Some(at) => *at,
                None if self.list.len() >= self.most => return None,
                None => {
                    self.index.insert(key, self.list.len());
                    self.list.push(Exporter {
                        key,
                        sequence: Sequence::new(bits.into()),
                        counted: SequenceCounts::default(),
                    });
                    self.list.len() - 1
                }
            };
        }
        self.list.get_mut(self.last)
    }

    /// What came since the last call.
    pub fn end_interval(&mut self) -> BTreeMap<ExporterKey, SequenceCounts> {
        let changed = self.list.iter_mut().filter_map(|exporter| {
            let now = exporter.sequence.counts();
            let before = std::mem::replace(&mut exporter.counted, now);
            (now != before).then(|| (exporter.key, now.since(before)))
        });
        changed.collect()
    }
}
