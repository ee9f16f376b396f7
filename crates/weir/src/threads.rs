//! Runtimes of tokio, without its panic where the system starts no thread.

use anyhow::{Context, Result};
use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;
use tokio::runtime::{Builder, Runtime};
use weir_compiler::NoThread;

thread_local! {
    /// Panics of this thread are caught and reported as an error: the hook prints none.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Builds a runtime with threads for this purpose.
///
/// # Errors
/// The system gives no thread or no event queue.
pub fn runtime(purpose: &'static str, builder: &mut Builder) -> Result<Runtime> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            if !IS_QUIET.get() {
                before(info);
            }
        }));
    });
    // Tokio panics if it cannot start its first thread.
    IS_QUIET.set(true);
    let built = std::panic::catch_unwind(AssertUnwindSafe(|| builder.build()));
    IS_QUIET.set(false);
    match built {
        Ok(runtime) => runtime.with_context(|| format!("cannot start the threads for {purpose}")),
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
            let error = io::Error::other(said.unwrap_or("tokio does not say why").to_owned());
            Err(NoThread::new(purpose, &error).into())
        }
    }
}
