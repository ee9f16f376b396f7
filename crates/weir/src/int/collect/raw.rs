//! Reports as they came, to a Parquet file, where weir is built with that feature.

use anyhow::Result;
use std::net::IpAddr;
use std::path::Path;
use weir_int::report::Decoder;

/// Writes reports as they came, if a file is named.
pub struct Raw {
    #[cfg(feature = "parquet")]
    file: Option<(weir_store::RawReports, Decoder)>,
}

#[cfg(feature = "parquet")]
impl Raw {
    /// Creates the file, if one is named.
    pub fn create(path: Option<&Path>, decoder: &Decoder) -> Result<Self> {
        let file = path.map(weir_store::RawReports::create).transpose()?;
        Ok(Raw {
            file: file.map(|file| (file, decoder.clone())),
        })
    }

    /// Writes the reports of datagrams; those that are malformed are left to the collector.
    pub fn write(&mut self, now: u64, datagrams: &[(IpAddr, &[u8])]) -> Result<()> {
        let Some((file, decoder)) = &mut self.file else {
            return Ok(());
        };
        for (exporter, datagram) in datagrams {
            for report in decoder.decode(datagram).flatten() {
                file.write(now, *exporter, &report)?;
            }
        }
        Ok(())
    }

    /// Ends the file.
    pub fn finish(&mut self) -> Result<()> {
        match self.file.take() {
            Some((file, _)) => Ok(file.finish()?),
            None => Ok(()),
        }
    }
}

#[cfg(not(feature = "parquet"))]
impl Raw {
    /// Refuses a file.
    pub fn create(path: Option<&Path>, _: &Decoder) -> Result<Self> {
        anyhow::ensure!(
            path.is_none(),
            "this weir cannot write Parquet: build it with `cargo build --release -p weir --features parquet`"
        );
        Ok(Raw {})
    }

    /// Writes nothing.
    pub fn write(&mut self, _: u64, _: &[(IpAddr, &[u8])]) -> Result<()> {
        Ok(())
    }

    /// Ends nothing.
    pub fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
