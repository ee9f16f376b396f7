//! The persistent state of a device (`weir run --state`): its program, the state that control
//! planes have written, and the settings of servers.
//!
//! [`StateFile`] is an opened file before the switch runs; [`State`] appends changes to its
//! journal. The file format and its writer are in [`weir_state`].

use crate::dataplane::gather;
use crate::device::{Device, lock};
use crate::p4rt::program::LoadedProgram;
use crate::p4rt::read::Digests;
use crate::ports::Settings;
use crate::refusal::Refusal;
use prost::Message;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use weir_ir::Program;
use weir_proto::bfrt_proto::forwarding_pipeline_config::Profile;
use weir_proto::p4::v1 as pb;
use weir_state::{Begin, Claim, Contents, Finding, Keeper, NotKept, Saved, StateError};
use weir_switch::{CounterValues, Journal, Switch};

/// Names of the settings that servers keep.
pub(crate) const DIGESTS: &str = "p4runtime digests";
pub(crate) const PORTS: &str = "ports";
pub(crate) const ATTRIBUTES: &str = "bfruntime attributes";

/// A state file that was opened: what was found in it, before anything is run.
#[derive(Debug)]
pub struct StateFile {
    claim: Claim,
    started: String,
    saved: Option<Saved>,
    program: Arc<Program>,
}

impl StateFile {
    /// Opens a file, which need not exist, for a switch that is started with this program, as the
    /// compiler made it.
    ///
    /// The state of a switch that was started with another program is not restored, and set aside
    /// when this state is [started](StateFile::start). Nothing is changed before.
    ///
    /// # Errors
    /// Another process has it, it cannot be read, it is damaged, or the program in it is none that
    /// its architecture knows.
    pub fn open(path: &Path, program: &Arc<Program>) -> Result<Self, StateError> {
        let mut claim = Claim::new(path)?;
        let started = Begin::of(program).started;
        let mut saved = claim.read()?;
        if saved.as_ref().is_some_and(|saved| saved.begin().started != started) {
            claim.set_other_program_aside();
            saved = None;
        }
        let program = match &saved {
            Some(saved) => runnable(saved, program)?,
            None => Arc::clone(program),
        };
        Ok(StateFile {
            claim,
            started,
            saved,
            program,
        })
    }

    /// The program to run: the one that was given, or the one that a control plane has put in its
    /// place.
    #[must_use]
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Whether a state was found and is restored.
    #[must_use]
    pub fn is_restored(&self) -> bool {
        self.saved.is_some()
    }

    /// The part of the file that cannot be restored. It is set aside when this is started.
    #[must_use]
    pub fn finding(&self) -> Option<&Finding> {
        self.claim.finding()
    }

    /// Makes a fresh switch of the [program](StateFile::program) like the one that was; `replica`:
    /// its number. The number of pieces that there were.
    ///
    /// # Errors
    /// The file holds what the program cannot have.
    pub fn restore(&self, replica: usize, switch: &mut Switch) -> Result<u64, StateError> {
        self.saved
            .as_ref()
            .map_or(Ok(0), |saved| saved.restore(replica, switch))
    }

    /// Starts to record changes. `switch` is replica 0, restored: it gets a
    /// journal.
    ///
    /// # Errors
    /// The file cannot be written, for another reason than storage that is full or fails: see
    /// [`Keeper::start`].
    pub fn start(self, options: weir_state::Options, switch: &mut Switch) -> Result<State, StateError> {
        let begin = match &self.saved {
            Some(saved) => saved.begin().clone(),
            None => Begin {
                started: self.started,
                runs: None,
                about: Vec::new(),
            },
        };
        let settings: BTreeMap<String, Vec<u8>> = self
            .saved
            .iter()
            .flat_map(Saved::settings)
            .map(|(name, value)| (name.to_owned(), value.to_vec()))
            .collect();
        let mut contents = Contents::new(&begin);
        for (name, value) in &settings {
            contents = contents.setting(name, value);
        }
        let contents = contents.switch(switch).counters(&switch.counter_values());
        let keeper = Keeper::start(self.claim, options, contents)?;
        switch.set_journal(Some(keeper.journal()));
        Ok(State {
            keeper,
            begin: Mutex::new(begin),
            settings: Mutex::new(settings),
        })
    }
}

/// The program that ran, if a compiler could have made it: a file is as little to be trusted as a
/// client.
fn runnable(saved: &Saved, started: &Arc<Program>) -> Result<Arc<Program>, StateError> {
    let program = saved.program(started)?;
    if Arc::ptr_eq(&program, started) {
        return Ok(program);
    }
    let errors = weir_arch::nonconformities(&program);
    errors.first().map_or(Ok(program), |error| Err(saved.not_run(error)))
}

/// A state that is kept, for a [`Device`].
#[derive(Debug)]
pub struct State {
    keeper: Keeper,
    /// Of the program that runs.
    begin: Mutex<Begin>,
    /// The settings of servers, by name.
    settings: Mutex<BTreeMap<String, Vec<u8>>>,
}

/// The description of a program that a control plane has set.
#[derive(Serialize, Deserialize)]
struct About {
    /// Its name for BF Runtime.
    name: String,
    /// As P4Runtime's client gave it.
    config: Vec<u8>,
    /// As BF Runtime's client gave it.
    profiles: Vec<Vec<u8>>,
}

impl About {
    fn of(loaded: &LoadedProgram) -> Self {
        let bfrt = loaded.bfrt.as_ref().ok();
        About {
            name: bfrt.map_or_else(String::new, |b| b.name.clone()),
            config: loaded.config.encode_to_vec(),
            profiles: bfrt.map_or_else(Vec::new, |b| {
                b.config().profiles.iter().map(Message::encode_to_vec).collect()
            }),
        }
    }
}

/// In the form in which servers keep things.
pub(crate) fn encoded<T: Serialize>(what: &T) -> Vec<u8> {
    // Nothing that is kept has a form that cannot be written.
    postcard::to_stdvec(what).unwrap_or_default()
}

impl State {
    /// The program that runs, as control planes know it. `name`: what BF Runtime calls the one that
    /// the switch was started with.
    pub(crate) fn loaded(&self, program: Arc<Program>, name: &str) -> Result<LoadedProgram, Refusal> {
        let about: Option<About> = {
            let begin = lock(&self.begin);
            begin
                .runs
                .as_ref()
                .and_then(|_| postcard::from_bytes(&begin.about).ok())
        };
        let Some(about) = about else {
            return LoadedProgram::running(program, name);
        };
        let mut loaded = LoadedProgram::running(program, &about.name)?;
        if let Ok(config) = pb::ForwardingPipelineConfig::decode(about.config.as_slice()) {
            loaded.config = config;
        }
        let profiles: Vec<Profile> = about
            .profiles
            .iter()
            .filter_map(|p| Profile::decode(p.as_slice()).ok())
            .collect();
        if let Ok(described) = crate::bfrt::program::Program::new(&loaded.program, &about.name) {
            loaded.bfrt = Ok(Arc::new(described.with_profiles(profiles)));
        }
        Ok(loaded)
    }

    /// The setting that a server had kept by this name.
    pub(crate) fn setting<T: for<'a> Deserialize<'a>>(&self, name: &str) -> Option<T> {
        postcard::from_bytes(lock(&self.settings).get(name)?).ok()
    }

    /// Digests that were sent.
    pub(crate) fn digests(&self) -> Digests {
        let kept: Vec<(u32, Vec<u8>)> = self.setting(DIGESTS).unwrap_or_default();
        let decoded = kept
            .into_iter()
            .filter_map(|(id, config)| Some((id, pb::digest_entry::Config::decode(config.as_slice()).ok()?)));
        decoded.collect()
    }
}

fn digests_setting(digests: &Digests) -> Vec<u8> {
    let list: Vec<(u32, Vec<u8>)> = digests.iter().map(|(id, c)| (*id, c.encode_to_vec())).collect();
    encoded(&list)
}

impl From<NotKept> for Refusal {
    fn from(error: NotKept) -> Self {
        Refusal::unavailable(error.to_string())
    }
}

impl Device {
    /// Checks that changes can be recorded, if the device has a state file.
    pub(crate) fn check_state(&self) -> Result<(), Refusal> {
        Ok(self.state.as_ref().map_or(Ok(()), |state| state.keeper.check())?)
    }

    /// Waits until all earlier changes are in the state file, if the device has one.
    pub(crate) async fn persisted(&self) -> Result<(), Refusal> {
        match &self.state {
            Some(state) => Ok(state.keeper.kept().await?),
            None => Ok(()),
        }
    }

    /// Keeps something of a server by name.
    pub(crate) fn keep(&self, name: &str, value: impl FnOnce() -> Vec<u8>) {
        if let Some(state) = &self.state {
            let value = value();
            state.keeper.set(name, &value);
            lock(&state.settings).insert(name.to_owned(), value);
        }
    }

    /// The setting that a server has kept by this name.
    pub(crate) fn setting<T: for<'a> Deserialize<'a>>(&self, name: &str) -> Option<T> {
        self.state.as_ref()?.setting(name)
    }

    /// Keeps which digests are sent.
    pub(crate) fn keep_digests(&self, digests: &Digests) {
        self.keep(DIGESTS, || digests_setting(digests));
    }

    /// Keeps the settings of ports.
    pub(crate) fn keep_ports(&self, settings: &Settings) {
        self.keep(PORTS, || encoded(settings));
    }

    /// Keeps a program that a control plane has set, with its state, in place of everything before.
    pub(crate) async fn keep_program(&self, loaded: &LoadedProgram, digests: &Digests) -> Result<(), Refusal> {
        let Some(state) = &self.state else { return Ok(()) };
        {
            let mut begin = lock(&state.begin);
            begin.runs = Some(weir_ir::print::print(&loaded.program));
            begin.about = encoded(&About::of(loaded));
            let mut settings = lock(&state.settings);
            settings.insert(DIGESTS.to_owned(), digests_setting(digests));
            // They were of the other program's tables.
            settings.remove(ATTRIBUTES);
        }
        self.write_anew(state).await
    }

    /// Rewrites the file, with the current values of counters. No change may happen during the
    /// call: the caller holds the locks.
    async fn write_anew(&self, state: &State) -> Result<(), Refusal> {
        let mut contents = Contents::new(&lock(&state.begin));
        for (name, value) in &*lock(&state.settings) {
            contents = contents.setting(name, value);
        }
        let replicas = gather(&*self.plane, move |replica, switch| {
            let kept = (replica == 0).then(|| contents.clone().switch(switch));
            (kept, switch.counter_values())
        });
        let mut counters = CounterValues::new();
        let mut whole = None;
        for (kept, values) in replicas.await? {
            whole = whole.or(kept);
            for (cell, value) in values {
                let sum = counters.entry(cell).or_default();
                sum.packets = sum.packets.wrapping_add(value.packets);
                sum.bytes = sum.bytes.wrapping_add(value.bytes);
            }
        }
        if let Some(whole) = whole {
            state.keeper.replace(whole.counters(&counters));
        }
        self.persisted().await
    }

    /// The journal that replica 0 of a new program is to have.
    pub(crate) fn journal(&self) -> Option<Box<dyn Journal>> {
        self.state.as_ref().map(|state| state.keeper.journal())
    }

    /// Keeps the state as it is now, with what packets have left in counters and registers: for the
    /// end of a run.
    ///
    /// # Errors
    /// It cannot be written, or the switch is not running any more.
    pub async fn checkpoint(&self) -> Result<(), Refusal> {
        let Some(state) = &self.state else { return Ok(()) };
        // No change happens until the locks are released.
        let _phase = self.phases.join_writes().await;
        let _alone = self.pipelines.write().await;
        self.write_anew(state).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYTHING: &str = include_str!("../tests/p4/everything.p4");

    /// Opens a state of a switch to which a control plane has given a program, as this text.
    fn opened(started: &Arc<Program>, runs: String) -> Result<StateFile, StateError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let begin = Begin {
            runs: Some(runs),
            ..Begin::of(started)
        };
        let claim = Claim::new(&path)?;
        drop(Keeper::start(
            claim,
            weir_state::Options::default(),
            Contents::new(&begin),
        )?);
        loop {
            match StateFile::open(&path, started) {
                // The thread of the first one has not ended.
                Err(StateError::InUse { .. }) => std::thread::yield_now(),
                opened => return opened,
            }
        }
    }

    #[test]
    fn a_program_in_a_state_file_is_compared_with_its_architecture_like_a_saved_one() {
        let options = weir_compiler::Options::default();
        let compiled = weir_compiler::compile_source("test.p4", EVERYTHING, &options, weir_arch::targets());
        let program = Arc::new(compiled.program.unwrap());
        let text = weir_ir::print::print(&program);
        assert!(opened(&program, text.clone()).is_ok());
        let (from, to) = ("block \"egress\"", "block \"eggress\"");
        assert!(text.contains(from));
        let error = opened(&program, text.replacen(from, to, 1)).unwrap_err();
        assert!(matches!(error, StateError::Program { .. }), "{error}");
        assert!(error.to_string().contains("no package has the blocks"), "{error}");
    }
}
