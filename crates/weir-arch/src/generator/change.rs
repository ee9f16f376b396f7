//! Changes of generators that can be taken back.

use super::application::Slot;
use super::{Application, Counts, GeneratorError, GeneratorPort, Generators};
use serde::{Deserialize, Serialize};

/// A change of the generators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GeneratorWrite {
    /// Gives a pipe an application in place of what it had at this number, as
    /// [`Generators::configure`].
    Application {
        /// The pipe.
        pipe: u32,
        /// The number.
        app: u32,
        /// The application.
        what: Box<Application>,
    },
    /// Sets what an application has done so far.
    Counts {
        /// The pipe.
        pipe: u32,
        /// The application.
        app: u32,
        /// Its counters.
        counts: Counts,
    },
    /// Writes to the buffer of a pipe.
    Buffer {
        /// The pipe.
        pipe: u32,
        /// Where.
        offset: u32,
        /// What.
        bytes: Vec<u8>,
    },
    /// Sets the role of a port for its pipe's generator.
    Port {
        /// The port.
        port: u32,
        /// Its role.
        what: GeneratorPort,
    },
    /// Sets a mask of a pipe.
    Mask {
        /// The pipe.
        pipe: u32,
        /// Its number.
        mask: u32,
        /// Bits of local ports.
        ports: u128,
    },
}

/// The undo record of a [`GeneratorWrite`].
#[derive(Debug)]
pub struct GeneratorUndo(Undo);

#[derive(Debug)]
enum Undo {
    /// An application with all that it is about to send.
    Slot(u32, u32, Box<Slot>),
    /// Something else as it was.
    Write(GeneratorWrite),
}

impl Generators {
    /// Makes a change. Taken back by [`Generators::revert`] before anything else happens, it has
    /// never been.
    ///
    /// # Errors
    /// As the method for this change; nothing has changed then.
    pub fn write(&mut self, write: &GeneratorWrite, now_ns: u64) -> Result<GeneratorUndo, GeneratorError> {
        let undo = match write {
            GeneratorWrite::Application { pipe, app, what } => {
                let was = self.slot(*pipe, *app)?.clone();
                self.configure(*pipe, *app, Application::clone(what), now_ns)?;
                Undo::Slot(*pipe, *app, Box::new(was))
            }
            GeneratorWrite::Counts { pipe, app, counts } => {
                let (_, was) = self.application(*pipe, *app)?;
                self.set_counts(*pipe, *app, *counts)?;
                Undo::Write(GeneratorWrite::Counts {
                    pipe: *pipe,
                    app: *app,
                    counts: was,
                })
            }
            GeneratorWrite::Buffer { pipe, offset, bytes } => {
                let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                let was = self.buffer(*pipe, *offset, length)?;
                self.write_buffer(*pipe, *offset, bytes)?;
                Undo::Write(GeneratorWrite::Buffer {
                    pipe: *pipe,
                    offset: *offset,
                    bytes: was,
                })
            }
            GeneratorWrite::Port { port, what } => {
                let was = self.port(*port);
                self.set_port(*port, *what)?;
                Undo::Write(GeneratorWrite::Port { port: *port, what: was })
            }
            GeneratorWrite::Mask { pipe, mask, ports } => {
                let was = self.mask(*pipe, *mask)?;
                self.set_mask(*pipe, *mask, *ports)?;
                Undo::Write(GeneratorWrite::Mask {
                    pipe: *pipe,
                    mask: *mask,
                    ports: was,
                })
            }
        };
        Ok(GeneratorUndo(undo))
    }

    /// Takes a change back.
    pub fn revert(&mut self, undo: GeneratorUndo) {
        match undo.0 {
            Undo::Slot(pipe, app, was) => {
                let slots = self.pipes.get_mut(pipe as usize).map(|p| &mut p.slots);
                if let Some(slot) = slots.and_then(|s| s.get_mut(app as usize)) {
                    *slot = *was;
                }
                self.refresh();
            }
            Undo::Write(write) => {
                // It was so, and so it can be.
                let _ = self.write(&write, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{GeneratorModel, Trigger};
    use super::*;

    fn model() -> GeneratorModel {
        GeneratorModel {
            pipes: 2,
            applications: 8,
            ports: 68..=71,
            pattern_bytes: 4,
            brings_context: false,
            gaps_from_end: false,
        }
    }

    fn generators() -> Generators {
        Generators::new(model())
    }

    fn every(every_ns: u32) -> GeneratorWrite {
        GeneratorWrite::Application {
            pipe: 1,
            app: 3,
            what: Box::new(Application {
                enabled: true,
                trigger: Trigger::Periodic { every_ns },
                length: 10,
                ..Application::default()
            }),
        }
    }

    #[test]
    fn a_timer_goes_on_when_a_change_of_its_application_is_taken_back() {
        let mut generators = generators();
        generators
            .set_port(
                128 + 68,
                GeneratorPort {
                    generates: true,
                    ..GeneratorPort::default()
                },
            )
            .unwrap();
        generators.write(&every(100), 0).unwrap();
        let undo = generators.write(&every(5000), 50).unwrap();
        assert_eq!(generators.next_ns(), Some(5050));
        generators.revert(undo);
        assert_eq!(generators.next_ns(), Some(100));
        assert!(generators.due(100).is_some());
    }

    #[test]
    fn what_is_taken_back_has_never_been() {
        // Masks are the second chip's.
        let mut generators = Generators::new(GeneratorModel {
            brings_context: true,
            ..model()
        });
        generators.write_buffer(0, 4, &[1, 2, 3]).unwrap();
        let counts = Counts {
            packets: 7,
            ..Counts::default()
        };
        let what = GeneratorPort {
            generates: true,
            matches: true,
        };
        let writes = [
            GeneratorWrite::Buffer {
                pipe: 0,
                offset: 5,
                bytes: vec![9; 4],
            },
            GeneratorWrite::Counts {
                pipe: 0,
                app: 0,
                counts,
            },
            GeneratorWrite::Port { port: 70, what },
            GeneratorWrite::Mask {
                pipe: 1,
                mask: 1,
                ports: 6,
            },
        ];
        let undo: Vec<GeneratorUndo> = writes.iter().map(|w| generators.write(w, 0).unwrap()).collect();
        assert_eq!(generators.buffer(0, 4, 6), Ok(vec![1, 9, 9, 9, 9, 0]));
        undo.into_iter().rev().for_each(|u| generators.revert(u));
        assert_eq!(generators.buffer(0, 4, 6), Ok(vec![1, 2, 3, 0, 0, 0]));
        assert_eq!(generators.application(0, 0).unwrap().1, Counts::default());
        assert_eq!(
            (generators.port(70), generators.mask(1, 1)),
            (GeneratorPort::default(), Ok(0))
        );
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let mut generators = generators();
        let writes = [
            GeneratorWrite::Buffer {
                pipe: 2,
                offset: 0,
                bytes: vec![1],
            },
            GeneratorWrite::Buffer {
                pipe: 0,
                offset: u32::MAX,
                bytes: vec![1],
            },
            GeneratorWrite::Counts {
                pipe: 0,
                app: 8,
                counts: Counts::default(),
            },
            GeneratorWrite::Port {
                port: 67,
                what: GeneratorPort::default(),
            },
            GeneratorWrite::Mask {
                pipe: 0,
                mask: 1,
                ports: 1,
            },
        ];
        for write in writes {
            assert!(generators.write(&write, 0).is_err(), "{write:?}");
        }
        let what = Application {
            last_source_port: 128,
            ..Application::default()
        };
        assert!(generators.configure(0, 0, what, 0).is_err());
    }
}
