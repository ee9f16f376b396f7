//! Programs that are committed with state: that of a saved program (COMMIT), or that of the running
//! program (RECONCILE_AND_COMMIT).
//!
//! The state is read from the old switch as P4Runtime messages and written to the new one
//! ([`transfer`]).

use crate::dataplane::{Command, Gone};
use crate::device::{Device, Pipelines};
use crate::p4rt::program::LoadedProgram;
use crate::p4rt::read::Digests;
use crate::p4rt::transfer::{self, Transfer};
use crate::refusal::Refusal;
use crate::threads::{self, Failure};
use std::sync::Arc;
use weir_switch::{Switch, Write};

impl Device {
    /// Compiles a program on a thread of its own, one program at a time: each may take seconds and
    /// much memory, even after its client has left.
    ///
    /// # Errors
    /// The error of `make`, that it panicked, or that the system starts no thread for it.
    pub(crate) async fn verify(
        &self,
        make: impl FnOnce() -> Result<Arc<LoadedProgram>, Refusal> + Send + 'static,
    ) -> Result<Arc<LoadedProgram>, Refusal> {
        let permit = Arc::clone(&self.verifying).acquire_owned().await;
        let permit = permit.map_err(|_| Gone)?;
        let made = threads::run("compiling the program", move || {
            let made = make();
            drop(permit);
            made
        });
        made.await.map_err(|failure| match failure {
            Failure::NoThread(error) => Refusal::from(error),
            Failure::Panicked => Refusal::malformed("the program cannot be compiled: it meets a mistake in weir"),
        })?
    }

    /// Commits the saved program, with what was written since. Returns the enabled digests.
    ///
    /// # Errors
    /// Nothing was saved, or the data plane cannot run it.
    pub(crate) async fn commit_saved(&self, pipelines: &mut Pipelines) -> Result<Arc<Digests>, Refusal> {
        let saved = pipelines.saved.as_ref();
        let saved = saved.ok_or_else(|| Refusal::not_found("nothing was saved; VERIFY_AND_SAVE comes first"))?;
        let (loaded, digests) = (Arc::clone(&saved.loaded), Arc::clone(&saved.digests));
        let state = transfer::take(&*saved.plane, &saved.loaded).await?;
        let transfer = Arc::new(Transfer::new(&state, &saved.loaded, &loaded)?);
        // The program stays the same, so state that P4Runtime cannot express is copied as it is.
        let rest = crate::dataplane::gather(&*saved.plane, |_, switch: &mut Switch| {
            let state = switch.state();
            (
                switch.replication().clone(),
                state.port_metadata.clone(),
                state.extern_keys.clone(),
            )
        });
        let rest = rest.await?.into_iter().next();
        let prepare: Command = Arc::new(move |replica, switch| {
            // It is the state of the same program, so it fits.
            let _ = transfer.apply(replica, switch);
            if let Some((replication, metadata, keys)) = &rest {
                *switch.replication_mut() = replication.clone();
                switch.state_mut().port_metadata.clone_from(metadata);
                for ((instance, index), key) in keys {
                    let _ = switch.write(Write::Key(*instance, *index, key.clone()));
                }
            }
        });
        self.load(pipelines, loaded, prepare, Arc::clone(&digests)).await?;
        Ok(digests)
    }

    /// Commits a program with the state of the running one, but for the keys of externs: the
    /// objects of the new program count sequence numbers from the start, and none may be used twice
    /// with a key. Returns the enabled digests.
    ///
    /// # Errors
    /// The state does not fit the program, or the data plane cannot run it.
    pub(crate) async fn reconcile(
        &self,
        pipelines: &mut Pipelines,
        loaded: Arc<LoadedProgram>,
    ) -> Result<Arc<Digests>, Refusal> {
        let Some(running) = &pipelines.committed else {
            let none = Arc::<Digests>::default();
            self.load(pipelines, loaded, Arc::new(|_, _| {}), Arc::clone(&none))
                .await?;
            return Ok(none);
        };
        let state = transfer::take(&*running.plane, &running.loaded).await?;
        let transfer = Transfer::new(&state, &running.loaded, &loaded)?;
        // Tried first on a switch without packets.
        let program = Arc::clone(&loaded.program);
        let transfer = Arc::new(transfer);
        let tried = Arc::clone(&transfer);
        let externs = self.plane.externs();
        let work = move || -> Result<(), Refusal> {
            let mut switch = crate::standalone::load(&program, &externs)
                .map_err(|e| Refusal::malformed(format!("the program cannot be run: {e}")))?;
            tried.apply(0, &mut switch)
        };
        let outcome = threads::run("trying the state with the new program", work).await;
        outcome.map_err(|failure| match failure {
            Failure::NoThread(error) => Refusal::from(error),
            Failure::Panicked => Refusal::malformed("the state cannot be kept: it meets a mistake in weir"),
        })??;
        let digests = running
            .digests
            .iter()
            .filter(|(id, _)| loaded.schema.digests.contains_key(id));
        let digests = Arc::new(digests.map(|(id, c)| (*id, *c)).collect());
        let prepare: Command = Arc::new(move |replica, switch| {
            let _ = transfer.apply(replica, switch);
        });
        self.load(pipelines, loaded, prepare, Arc::clone(&digests)).await?;
        Ok(digests)
    }
}
