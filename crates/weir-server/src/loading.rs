//! New programs that keep state: what was written since a program was saved, or what the program
//! before had.

use crate::dataplane::{Gone, Order};
use crate::device::{Device, Pipelines};
use crate::p4rt::program::Loaded;
use crate::p4rt::read::Digests;
use crate::p4rt::transfer::{self, Transfer};
use crate::refusal::Refusal;
use std::sync::Arc;
use tokio::task::spawn_blocking;
use weir_switch::Switch;

impl Device {
    /// Makes a program ready on a thread of its own, one after the other: each may take seconds and
    /// much memory, whether or not its client still waits.
    ///
    /// # Errors
    /// What `make` says, or that it met a mistake.
    pub(crate) async fn verify(
        &self,
        make: impl FnOnce() -> Result<Arc<Loaded>, Refusal> + Send + 'static,
    ) -> Result<Arc<Loaded>, Refusal> {
        let turn = Arc::clone(&self.verifying).acquire_owned().await;
        let turn = turn.map_err(|_| Gone)?;
        let made = spawn_blocking(move || {
            let made = make();
            drop(turn);
            made
        });
        made.await
            .map_err(|_| Refusal::malformed("the program cannot be compiled: it meets a mistake in weir"))?
    }

    /// Commits what was saved, with what was written since. Digests that are sent from then on.
    ///
    /// # Errors
    /// Nothing was saved, or the data plane cannot run it.
    pub(crate) async fn commit_saved(&self, pipelines: &mut Pipelines) -> Result<Arc<Digests>, Refusal> {
        let saved = pipelines.saved.as_ref();
        let saved = saved.ok_or_else(|| Refusal::not_found("nothing was saved; VERIFY_AND_SAVE comes first"))?;
        let (loaded, digests) = (Arc::clone(&saved.loaded), Arc::clone(&saved.digests));
        let state = transfer::take(&*saved.plane, &saved.loaded).await?;
        let transfer = Arc::new(Transfer::new(&state, &saved.loaded, &loaded)?);
        // Of the same program and its device more is known than P4Runtime tells.
        let rest = crate::dataplane::gather(&*saved.plane, |_, switch: &mut Switch| {
            (switch.replication().clone(), switch.state().port_metadata.clone())
        });
        let rest = rest.await?.into_iter().next();
        let prepare: Order = Arc::new(move |replica, switch| {
            // It was made of the same program's state, so it fits.
            let _ = transfer.apply(replica, switch);
            if let Some((replication, metadata)) = &rest {
                *switch.replication_mut() = replication.clone();
                switch.state_mut().port_metadata.clone_from(metadata);
            }
        });
        self.load(pipelines, loaded, prepare, Arc::clone(&digests)).await?;
        Ok(digests)
    }

    /// Commits a program with the state of the one that runs. Digests that are sent from then on.
    ///
    /// # Errors
    /// The state does not fit the program, or the data plane cannot run it.
    pub(crate) async fn reconcile(
        &self,
        pipelines: &mut Pipelines,
        loaded: Arc<Loaded>,
    ) -> Result<Arc<Digests>, Refusal> {
        let Some(running) = &pipelines.committed else {
            let none = Arc::<Digests>::default();
            self.load(pipelines, loaded, Arc::new(|_, _| {}), Arc::clone(&none))
                .await?;
            return Ok(none);
        };
        let state = transfer::take(&*running.plane, &running.loaded).await?;
        let transfer = Transfer::new(&state, &running.loaded, &loaded)?;
        // Tried first where no packet meets it.
        let program = Arc::clone(&loaded.program);
        let transfer = Arc::new(transfer);
        let tried = Arc::clone(&transfer);
        let work = move || -> Result<(), Refusal> {
            let mut switch = crate::standalone::load(&program)
                .map_err(|e| Refusal::malformed(format!("the program cannot be run: {e}")))?;
            tried.apply(0, &mut switch)
        };
        let outcome = spawn_blocking(work).await;
        outcome.map_err(|_| Refusal::malformed("the state cannot be kept: it meets a mistake in weir"))??;
        let digests = running
            .digests
            .iter()
            .filter(|(id, _)| loaded.schema.digests.contains_key(id));
        let digests = Arc::new(digests.map(|(id, c)| (*id, *c)).collect());
        let prepare: Order = Arc::new(move |replica, switch| {
            let _ = transfer.apply(replica, switch);
        });
        self.load(pipelines, loaded, prepare, Arc::clone(&digests)).await?;
        Ok(digests)
    }
}
