//! The lane that executes `@async` calls of externs for the workers of a switch.

use crate::cli::{AsyncMode, Externs};
use anyhow::{Context, Result};
use std::sync::Arc;
use std::time::Duration;
use weir_lanes::{Lane, LaneConfig, LaneOptions};
use weir_switch::{ExternMode, ExternOptions, JobService, Switch};

/// Gives each switch a port to a lane of their own, if the program has calls for which packets may
/// wait and compiled code to make them.
pub fn attach(switches: &mut [Switch], externs: &Externs) -> Result<()> {
    let is_needed = externs.mode != AsyncMode::Sync
        && (switches.first()).is_some_and(|switch| switch.compiled().is_some() && switch.has_async_calls());
    if !is_needed {
        return Ok(());
    }
    let depth = (externs.async_depth as usize).next_power_of_two();
    let options = LaneOptions {
        name: "weir-externs".to_owned(),
        depth,
        batch: depth.min(LaneOptions::default().batch),
        threads: externs.async_threads as usize,
        time_limit: Duration::from_millis(externs.async_limit),
    };
    let config = LaneConfig::new(options).context("the lane for externs")?;
    let (lane, ports) = Lane::start(config, Arc::new(JobService), switches.len()).context("the lane for externs")?;
    let lane = Arc::new(lane);
    for (switch, port) in switches.iter_mut().zip(ports) {
        let options = ExternOptions {
            mode: match externs.mode {
                AsyncMode::Auto => ExternMode::Auto,
                AsyncMode::Sync => ExternMode::Sync,
                AsyncMode::Async => ExternMode::Async,
            },
            full: externs.async_full,
            depth,
        };
        switch.attach_lane(port, Some(Arc::clone(&lane)), options);
    }
    Ok(())
}
