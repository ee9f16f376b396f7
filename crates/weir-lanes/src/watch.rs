//! Notices that something makes no progress.

use std::time::{Duration, Instant};

/// Notices that jobs wait and none is completed.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The progress that was seen last, and when it was first seen.
    seen: Option<(u64, Instant)>,
}

impl Watch {
    /// Whether jobs have waited for `limit` with the same progress.
    pub(crate) fn is_stalled(&mut self, now: Instant, is_waiting: bool, progress: u64, limit: Duration) -> bool {
        if !is_waiting {
            self.seen = None;
            return false;
        }
        match self.seen {
            Some((seen, since)) if seen == progress => now.saturating_duration_since(since) >= limit,
            Some(_) | None => {
                self.seen = Some((progress, now));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    #[test]
    fn a_stall_is_the_same_progress_for_the_limit_while_jobs_wait() {
        let (start, mut watch) = (Instant::now(), Watch::default());
        assert!(!watch.is_stalled(start, true, 5, LIMIT));
        assert!(!watch.is_stalled(start + LIMIT / 2, true, 5, LIMIT));
        assert!(watch.is_stalled(start + LIMIT, true, 5, LIMIT));
        assert!(!watch.is_stalled(start + LIMIT, true, 6, LIMIT), "there was progress");
    }

    #[test]
    fn the_time_counts_from_when_jobs_wait() {
        let (start, mut watch) = (Instant::now(), Watch::default());
        assert!(!watch.is_stalled(start, true, 5, LIMIT));
        assert!(!watch.is_stalled(start + LIMIT, false, 5, LIMIT));
        assert!(!watch.is_stalled(start + 3 * LIMIT, true, 5, LIMIT));
        assert!(watch.is_stalled(start + 4 * LIMIT, true, 5, LIMIT));
    }
}
