//! Sizes and limits of a lane.

use std::time::Duration;
use thiserror::Error;

/// Most jobs in flight per worker.
const MAX_DEPTH: usize = 65_536;
/// Most jobs per batch.
const MAX_BATCH: usize = 256;
/// Most threads per lane.
const MAX_THREADS: usize = 256;

/// What a [`LaneConfig`] is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneOptions {
    /// Name for messages and threads.
    pub name: String,
    /// Most jobs in flight per worker: a power of two, at most 65,536.
    pub depth: usize,
    /// Most jobs that cross a ring at once and that the service gets at once: 1 to 256, at most
    /// `depth`.
    pub batch: usize,
    /// Number of threads: 1 to 256. Ports to devices have none and ignore this.
    pub threads: usize,
    /// A thread that makes no progress for this long while jobs wait is replaced. So the service
    /// has to finish a batch within it.
    pub time_limit: Duration,
}

impl Default for LaneOptions {
    /// One thread, 1,024 jobs in flight per worker, batches of 32, and 100 ms.
    fn default() -> Self {
        LaneOptions {
            name: "lane".to_owned(),
            depth: 1024,
            batch: 32,
            threads: 1,
            time_limit: Duration::from_millis(100),
        }
    }
}

/// Why options are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// The name is empty or contains a zero byte.
    #[error("the name of a lane must not be empty nor contain a zero byte")]
    Name,
    /// The depth is no power of two, or too large.
    #[error("a depth of {0} jobs is not a power of two from 1 to {MAX_DEPTH}")]
    Depth(usize),
    /// The batch is empty or too large.
    #[error("a batch of {0} jobs is not from 1 to {MAX_BATCH}")]
    Batch(usize),
    /// A batch can never fill up.
    #[error("a batch of {batch} jobs is larger than the depth of {depth}")]
    BatchExceedsDepth {
        /// Jobs per batch.
        batch: usize,
        /// Jobs in flight per worker.
        depth: usize,
    },
    /// There are no threads, or too many.
    #[error("{0} threads are not from 1 to {MAX_THREADS}")]
    Threads(usize),
    /// The time limit is zero: every batch would exceed it.
    #[error("the time limit must not be zero")]
    TimeLimit,
}

/// Options of a lane that are known to be valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneConfig {
    options: LaneOptions,
}

impl LaneConfig {
    /// Checks options.
    ///
    /// # Errors
    /// The first option that is out of its range.
    pub fn new(options: LaneOptions) -> Result<Self, ConfigError> {
        let LaneOptions {
            depth, batch, threads, ..
        } = options;
        if options.name.is_empty() || options.name.contains('\0') {
            return Err(ConfigError::Name);
        }
        if !depth.is_power_of_two() || depth > MAX_DEPTH {
            return Err(ConfigError::Depth(depth));
        }
        if !(1..=MAX_BATCH).contains(&batch) {
            return Err(ConfigError::Batch(batch));
        }
        if batch > depth {
            return Err(ConfigError::BatchExceedsDepth { batch, depth });
        }
        if !(1..=MAX_THREADS).contains(&threads) {
            return Err(ConfigError::Threads(threads));
        }
        if options.time_limit.is_zero() {
            return Err(ConfigError::TimeLimit);
        }
        Ok(LaneConfig { options })
    }

    /// Name for messages and threads.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// Most jobs in flight per worker.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.options.depth
    }

    /// Most jobs per batch.
    #[must_use]
    pub fn batch(&self) -> usize {
        self.options.batch
    }

    /// Number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.options.threads
    }

    /// Longest time without progress while jobs wait.
    #[must_use]
    pub fn time_limit(&self) -> Duration {
        self.options.time_limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut LaneOptions)) -> ConfigError {
        let mut options = LaneOptions::default();
        change(&mut options);
        LaneConfig::new(options).expect_err("out of range")
    }

    #[test]
    fn options_out_of_range_are_refused_by_name() {
        assert!(LaneConfig::new(LaneOptions::default()).is_ok());
        assert_eq!(refused(|o| o.name.clear()), ConfigError::Name);
        assert_eq!(refused(|o| o.name.push('\0')), ConfigError::Name);
        for depth in [0, 48, MAX_DEPTH * 2] {
            assert_eq!(refused(|o| o.depth = depth), ConfigError::Depth(depth));
        }
        assert_eq!(refused(|o| o.batch = 0), ConfigError::Batch(0));
        assert_eq!(refused(|o| o.batch = 257), ConfigError::Batch(257));
        assert_eq!(
            refused(|o| o.depth = 16),
            ConfigError::BatchExceedsDepth { batch: 32, depth: 16 }
        );
        assert_eq!(refused(|o| o.threads = 0), ConfigError::Threads(0));
        assert_eq!(refused(|o| o.threads = 257), ConfigError::Threads(257));
        assert_eq!(refused(|o| o.time_limit = Duration::ZERO), ConfigError::TimeLimit);
    }
}
