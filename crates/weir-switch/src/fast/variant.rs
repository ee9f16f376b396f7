//! Which tables compiled code looks into itself.
//!
//! Of a table that is in the first cache a lookup takes no longer than to make packets wait for it. As tables grow and
//! shrink other code is the best, so it is compiled anew: in a thread of its own, while the code that is there goes on.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use weir_ir::pipeline::Pipeline;
use weir_jit::{CompileError, Compiled, Options};
use weir_table::fast::FastTable;

/// Tables whose lookups read from no more bytes than this are looked into by code; those that are, until they have
/// grown to twice as much.
const SMALL: usize = 0 << 10;

/// The tables that code looks into itself, by number.
pub(super) type Direct = Vec<bool>;

/// Which those should be. `plain` are tables whose entries name actions themselves, without direct meters.
pub(super) fn best(plain: &[bool], tables: &[Arc<FastTable>], now: &Direct) -> Direct {
    let tables = tables.iter().zip(plain).enumerate();
    tables
        .map(|(i, (table, plain))| {
            let most = if now.get(i) == Some(&true) { 2 * SMALL } else { SMALL };
            *plain && table.is_direct() && table.reach_bytes() <= most
        })
        .collect()
}

/// Code that is being compiled.
pub(super) struct Pending {
    direct: Direct,
    result: Receiver<Result<Compiled, CompileError>>,
}

impl Pending {
    /// Begins to compile. `None`: there is no thread to do it.
    pub fn begin(pipeline: &Arc<Pipeline>, direct: Direct, options: &Options) -> Option<Self> {
        let (sender, result) = channel();
        let pipeline = Arc::clone(pipeline);
        let options = Options {
            direct: direct.clone(),
            ..options.clone()
        };
        let thread = std::thread::Builder::new().name("compile".to_owned());
        let body = move || {
            // Nobody waits any more if this fails.
            let _ = sender.send(Compiled::new(pipeline, options));
        };
        thread.spawn(body).ok()?;
        Some(Pending { direct, result })
    }

    /// The code, if it is there; waits for it if `wait`. `Err`: not yet.
    pub fn take(self, wait: bool) -> Result<(Direct, Option<Compiled>), Self> {
        let result = if wait {
            self.result.recv().ok()
        } else {
            match self.result.try_recv() {
                Ok(result) => Some(result),
                Err(TryRecvError::Empty) => return Err(self),
                Err(TryRecvError::Disconnected) => None,
            }
        };
        Ok((self.direct, result.and_then(Result::ok)))
    }
}
