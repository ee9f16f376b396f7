//! Control state that survives: a file with what control planes have made of a switch.
//!
//! The file begins with the program and the state at some time ([`Contents`]); what is changed
//! after that is appended, batch by batch, before the batch is acknowledged ([`Keeper`]). A restart
//! reads it ([`Saved`]) and restores a fresh switch of the same program. From time to time the file
//! is written anew, without what has been changed since. New files take the old one's place at
//! once, by renaming; a batch that the end of the file cuts off was never acknowledged, and is left
//! out.
//!
//! A process that is killed loses nothing that was acknowledged. A machine that loses its power
//! may, unless [`Options::sync`] says that each batch has to reach the disk before.
//!
//! What this crate does not do: it has no server, and it does not keep state that packets change,
//! except for what a caller puts into [`Contents`].
//!
//! ```
//! use std::sync::Arc;
//! use weir_state::{Begin, Claim, Contents, Keeper, Options};
//! use weir_switch::{CloneSession, Switch, Write, testing};
//!
//! # let folder = tempfile::tempdir()?;
//! let path = folder.path().join("switch.state");
//! let program = Arc::new(testing::reflector());
//! let begin = Begin::of(&program);
//! let mut switch = Switch::new(Arc::clone(&program))?;
//!
//! let keeper = Keeper::start(Claim::new(&path)?, Options::default(), Contents::new(&begin))?;
//! switch.set_journal(Some(keeper.journal()));
//! switch.write(Write::Session(5, Some(CloneSession::default())))?;
//! keeper.kept_blocking()?;
//! # switch.set_journal(None); drop(keeper); std::thread::sleep(std::time::Duration::from_millis(100));
//!
//! // Later, in another process:
//! let saved = Claim::new(&path)?.read()?.expect("a file");
//! let mut again = Switch::new(program)?;
//! saved.restore(0, &mut again)?;
//! assert!(again.replication().session(5).is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod aside;
mod claim;
mod compact;
mod file;
mod frame;
mod journal;
mod keeper;
mod writer;

pub use aside::Finding;
pub use claim::Claim;
pub use file::{Begin, Contents, Saved, StateError};
pub use keeper::{Keeper, NotKept, OnTrouble, Options};
