//! Reports as they came, one row per hop, in a Parquet file.

use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use weir_int::report::Report;
use weir_int::{Hop, Timestamp};

/// Rows that are kept in memory before they are written.
const GROUP: usize = 100_000;

/// The columns. Unsigned numbers of 64 bits are written as signed ones of the same bits.
const SCHEMA: &str = "message report {
    required int64 time;
    required binary exporter (UTF8);
    required int64 node;
    required int32 hw_id;
    required int64 sequence;
    required int32 report;
    required binary version (UTF8);
    required boolean dropped;
    required boolean congested;
    required binary flow (UTF8);
    required int32 hop;
    required int64 hop_node;
    required int64 ingress_port;
    required int64 egress_port;
    required int64 latency;
    required int32 queue;
    required int64 queue_occupancy;
    required int64 ingress_timestamp;
    required int64 egress_timestamp;
    required int64 tx_utilisation;
}";

/// Why raw reports cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum RawError {
    /// The file cannot be created: it is there already, or the folder is not.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// Parquet cannot be written.
    #[error(transparent)]
    Parquet(#[from] parquet::errors::ParquetError),
}

/// Values of the columns, in the order of [`SCHEMA`].
#[derive(Default)]
struct Rows {
    integers: [Vec<i64>; 11],
    shorts: [Vec<i32>; 4],
    texts: [Vec<ByteArray>; 3],
    booleans: [Vec<bool>; 2],
}

/// Writes raw reports.
pub struct RawReports {
    writer: SerializedFileWriter<File>,
    rows: Rows,
}

impl RawReports {
    /// Creates a file, which must not be there.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(path: &Path) -> Result<Self, RawError> {
        let file = File::create_new(path).map_err(|error| RawError::File {
            path: path.display().to_string(),
            error,
        })?;
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        Ok(RawReports {
            writer: SerializedFileWriter::new(file, schema, Arc::new(properties))?,
            rows: Rows::default(),
        })
    }

    /// Writes a report that came at a time (ns since the Unix epoch): a row for each hop, one
    /// without hop if there is none. What is not known is -1, or an empty text.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, time: u64, exporter: IpAddr, report: &Report<'_>) -> Result<(), RawError> {
        let hops = report.hops();
        if hops.is_empty() {
            self.rows.push(time, exporter, report, None);
        }
        for (number, hop) in hops.iter().enumerate() {
            self.rows.push(time, exporter, report, Some((number, hop)));
        }
        if self.rows.booleans[0].len() >= GROUP {
            self.write_group()?;
        }
        Ok(())
    }

    /// Writes what is left, and ends the file; without this it cannot be read.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<(), RawError> {
        self.write_group()?;
        self.writer.close()?;
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), RawError> {
        let rows = std::mem::take(&mut self.rows);
        if rows.booleans[0].is_empty() {
            return Ok(());
        }
        let (mut integers, mut shorts) = (rows.integers.iter(), rows.shorts.iter());
        let (mut texts, mut booleans) = (rows.texts.iter(), rows.booleans.iter());
        let mut group = self.writer.next_row_group()?;
        while let Some(mut column) = group.next_column()? {
            // Columns of a type are in the order of the schema.
            match column.untyped() {
                ColumnWriter::Int64ColumnWriter(writer) => {
                    writer.write_batch(integers.next().map_or(&[], Vec::as_slice), None, None)?;
                }
                ColumnWriter::Int32ColumnWriter(writer) => {
                    writer.write_batch(shorts.next().map_or(&[], Vec::as_slice), None, None)?;
                }
                ColumnWriter::ByteArrayColumnWriter(writer) => {
                    writer.write_batch(texts.next().map_or(&[], Vec::as_slice), None, None)?;
                }
                ColumnWriter::BoolColumnWriter(writer) => {
                    writer.write_batch(booleans.next().map_or(&[], Vec::as_slice), None, None)?;
                }
                ColumnWriter::Int96ColumnWriter(_)
                | ColumnWriter::FloatColumnWriter(_)
                | ColumnWriter::DoubleColumnWriter(_)
                | ColumnWriter::FixedLenByteArrayColumnWriter(_) => {}
            }
            column.close()?;
        }
        group.close()?;
        Ok(())
    }
}

impl Rows {
    fn push(&mut self, time: u64, exporter: IpAddr, report: &Report<'_>, hop: Option<(usize, Hop)>) {
        let (number, hop) = hop.map_or((-1, Hop::default()), |(number, hop)| (number as i32, hop));
        let known = |value: Option<u32>| value.map_or(-1, i64::from);
        let port = |short: Option<u16>, long: Option<u32>| known(short.map(u32::from).or(long));
        let stamp = |stamp: Option<Timestamp>| stamp.map_or(-1, |stamp| stamp.value as i64);
        let integers = [
            time as i64,
            known(report.node_id),
            report.sequence.value.into(),
            known(hop.node_id),
            port(hop.ingress_port, hop.l2_ingress_port),
            port(hop.egress_port, hop.l2_egress_port),
            known(hop.latency),
            known(hop.queue_occupancy),
            stamp(hop.ingress_timestamp),
            stamp(hop.egress_timestamp),
            known(hop.tx_utilisation),
        ];
        let shorts = [
            report.hw_id.into(),
            report.index as i32,
            number,
            hop.queue_id.map_or(-1, i32::from),
        ];
        let flow = report.flow().map(|flow| flow.to_string()).unwrap_or_default();
        let texts = [exporter.to_string(), report.version.to_string(), flow];
        let booleans = [report.flags.dropped, report.flags.congested_queue];
        self.integers
            .iter_mut()
            .zip(integers)
            .for_each(|(column, value)| column.push(value));
        self.shorts
            .iter_mut()
            .zip(shorts)
            .for_each(|(column, value)| column.push(value));
        self.texts
            .iter_mut()
            .zip(texts)
            .for_each(|(column, value)| column.push(value.into_bytes().into()));
        self.booleans
            .iter_mut()
            .zip(booleans)
            .for_each(|(column, value)| column.push(value));
    }
}

#[cfg(test)]
mod tests {
    use super::RawReports;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    use weir_collector::synthetic::{Packet, hop};
    use weir_int::FlowKey;
    use weir_int::report::Decoder;

    #[test]
    fn reports_are_read_back_hop_by_hop() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("raw.parquet");
        let packet = Packet {
            flow: FlowKey {
                source: [10, 0, 0, 1].into(),
                destination: [10, 0, 0, 2].into(),
                source_port: 1,
                destination_port: 2,
                protocol: 17,
            },
            bytes: 100,
            hops: vec![hop(7, (1, 2), (3, 4), 100, 250)],
            number: None,
        };
        let mut raw = RawReports::create(&path).unwrap();
        for n in 0..3 {
            let datagram = packet.postcard(0, n);
            let report = Decoder::default().decode(&datagram).next().unwrap().unwrap();
            raw.write(1000 + u64::from(n), [10, 0, 0, 9].into(), &report).unwrap();
        }
        raw.finish().unwrap();
        assert!(RawReports::create(&path).is_err(), "a file that is there is kept");
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 3);
        let row = &rows[2];
        let long = |at: usize| row.get_long(at).unwrap();
        assert_eq!((long(0), long(2), long(4)), (1002, 7, 2));
        assert_eq!(row.get_string(9).unwrap(), "udp 10.0.0.1:1 -> 10.0.0.2:2");
        assert_eq!(
            (row.get_int(10).unwrap(), row.get_int(15).unwrap(), long(16)),
            (0, 3, 4)
        );
        assert_eq!((long(17), long(18), long(14)), (100, 250, -1));
    }
}
