//! What commands write: answers to stdout, messages to stderr.
//!
//! No write here panics, and none ends a command because its reader is gone: the exit code is part
//! of the answer. A switch that runs writes by threads of their own ([`Outlet`]), so that it never
//! waits for a reader.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, StdoutLock, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that wait for a reader at most.
const CAPACITY: usize = 1 << 20;
/// How long the end of a run waits for a reader.
pub const PATIENCE: Duration = Duration::from_millis(300);

/// Standard output of a command. What is written after its reader has gone is discarded.
pub struct Out {
    inner: StdoutLock<'static>,
    is_gone: bool,
}

/// Standard output, for this thread alone until the value is dropped.
pub fn stdout() -> Out {
    Out {
        inner: io::stdout().lock(),
        is_gone: false,
    }
}

impl Out {
    /// Whether the reader has closed the pipe, as far as the last flush has shown. Commands without
    /// an end stop then.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    fn unless_gone<T>(&mut self, done: io::Result<T>, otherwise: T) -> io::Result<T> {
        match done {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_gone = true;
                Ok(otherwise)
            }
            done => done,
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_gone {
            return Ok(bytes.len());
        }
        let done = self.inner.write(bytes);
        self.unless_gone(done, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_gone {
            return Ok(());
        }
        let done = self.inner.flush();
        self.unless_gone(done, ())
    }
}

/// Writes a line to stderr at once.
pub fn message(text: impl Display) {
    write_message(&format!("{text}\n"));
}

/// Replaces the line that was written last on a terminal.
pub fn progress(text: impl Display) {
    write_message(&format!("\r{text}"));
}

fn write_message(text: &str) {
    // There is no other place to report to.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Messages of a command, for its user.
#[derive(Clone)]
pub struct Messages {
    /// `None`: they are written at once.
    outlet: Option<Outlet>,
    /// Those that are given once.
    given: Arc<Mutex<BTreeSet<String>>>,
}

impl Messages {
    /// Written at once, by the calling thread.
    pub fn direct() -> Self {
        Messages {
            outlet: None,
            given: Arc::default(),
        }
    }

    /// Written by a thread; what does not fit its queue is counted.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn queued() -> io::Result<Self> {
        Messages::to(Box::new(io::stderr()))
    }

    /// Written to a stream by a thread; what does not fit its queue is counted there.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn to(stream: Box<dyn Write + Send>) -> io::Result<Self> {
        let lost: OnLoss = Box::new(|loss| Some(format!("{}\n", loss.text("messages"))));
        Ok(Messages {
            outlet: Some(Outlet::start("messages", stream, lost)?),
            given: Arc::default(),
        })
    }

    /// Gives a message of one or more lines.
    pub fn line(&self, text: impl Display) {
        match &self.outlet {
            None => message(text),
            Some(outlet) => outlet.write(format!("{text}\n")),
        }
    }

    /// Gives a message, if it was not given before.
    pub fn once(&self, text: String) {
        let is_new = locked(&self.given).insert(text.clone());
        if is_new {
            self.line(text);
        }
    }

    /// Whether a message may have colours.
    pub fn has_colours(&self) -> bool {
        io::stderr().is_terminal()
    }

    /// Waits until everything is written, but no longer than [`PATIENCE`].
    pub fn finish(&self) {
        if let Some(outlet) = &self.outlet {
            outlet.finish();
        }
    }
}

/// What an outlet has not written.
#[derive(Debug)]
pub enum Loss {
    /// So many texts did not fit the queue.
    Overflow(u64),
    /// The stream takes nothing any more.
    Closed(io::Error),
}

impl Loss {
    /// In words. `what`: what the texts are.
    pub fn text(&self, what: &str) -> String {
        match self {
            Loss::Overflow(count) => format!("{count} {what} were lost: their reader is too slow"),
            Loss::Closed(error) if error.kind() == ErrorKind::BrokenPipe => {
                format!("{what} are not written any more: their reader is gone")
            }
            Loss::Closed(error) => format!("{what} are not written any more: {error}"),
        }
    }
}

/// Told of losses; a text that it returns is written to the stream itself.
pub type OnLoss = Box<dyn FnMut(Loss) -> Option<String> + Send>;

/// A stream with a bounded queue and a thread that writes it. Producers never block.
#[derive(Clone)]
pub struct Outlet(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<String>,
    bytes: usize,
    lost: u64,
    is_writing: bool,
    /// The stream takes nothing any more.
    is_closed: bool,
}

impl Outlet {
    /// Starts the thread.
    ///
    /// # Errors
    /// There is none.
    pub fn start(name: &str, mut stream: Box<dyn Write + Send>, mut on_loss: OnLoss) -> io::Result<Self> {
        let outlet = Outlet(Arc::default());
        let shared = Arc::clone(&outlet.0);
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || {
            loop {
                let (text, lost) = shared.next();
                let told = (lost > 0).then(|| on_loss(Loss::Overflow(lost))).flatten();
                let text = told.unwrap_or_default() + &text;
                let written = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
                shared.done(written.is_err());
                if let Err(error) = written {
                    on_loss(Loss::Closed(error));
                    return;
                }
            }
        })?;
        Ok(outlet)
    }

    /// Queues a text. One that does not fit is counted as lost.
    pub fn write(&self, text: String) {
        let mut queue = self.0.locked();
        if queue.is_closed {
            return;
        }
        if queue.bytes.saturating_add(text.len()) > CAPACITY {
            queue.lost += 1;
            drop(queue);
            self.0.changed.notify_all();
            return;
        }
        queue.bytes += text.len();
        queue.waiting.push_back(text);
        drop(queue);
        self.0.changed.notify_all();
    }

    /// Queues a text in the place of all that wait.
    pub fn replace(&self, text: String) {
        let mut queue = self.0.locked();
        if !queue.is_closed {
            queue.waiting.clear();
            queue.bytes = text.len();
            queue.waiting.push_back(text);
        }
        drop(queue);
        self.0.changed.notify_all();
    }

    /// Waits until everything is written, but no longer than [`PATIENCE`].
    pub fn finish(&self) {
        let busy =
            |queue: &mut Queue| !queue.is_closed && (queue.is_writing || queue.lost > 0 || !queue.waiting.is_empty());
        let waited = self.0.changed.wait_timeout_while(self.0.locked(), PATIENCE, busy);
        drop(waited);
    }
}

impl Shared {
    fn locked(&self) -> MutexGuard<'_, Queue> {
        locked(&self.queue)
    }

    /// Waits for the next text; with how many were lost before it.
    fn next(&self) -> (String, u64) {
        let mut queue = self.locked();
        loop {
            let text = queue.waiting.pop_front();
            if text.is_some() || queue.lost > 0 {
                let text = text.unwrap_or_default();
                queue.bytes -= text.len();
                queue.is_writing = true;
                return (text, std::mem::take(&mut queue.lost));
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self, is_closed: bool) {
        let mut queue = self.locked();
        queue.is_writing = false;
        queue.is_closed = is_closed;
        if is_closed {
            queue.waiting.clear();
            queue.bytes = 0;
        }
        drop(queue);
        self.changed.notify_all();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A stream that takes a text whenever it is allowed to.
    struct Slow {
        allowed: Receiver<io::Result<()>>,
        taken: Sender<String>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.allowed.recv().unwrap_or(Ok(()))?;
            let _ = self.taken.send(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn slow() -> (Outlet, Sender<io::Result<()>>, Receiver<String>) {
        let ((allow, allowed), (taken, texts)) = (channel(), channel());
        let lost: OnLoss = Box::new(|loss| Some(loss.text("lines") + "\n"));
        let outlet = Outlet::start("test", Box::new(Slow { allowed, taken }), lost).unwrap();
        (outlet, allow, texts)
    }

    #[test]
    fn what_does_not_fit_is_counted_and_told_when_the_reader_goes_on() {
        let (outlet, allow, texts) = slow();
        let long = "x".repeat(CAPACITY / 4);
        for _ in 0..8 {
            outlet.write(long.clone());
        }
        outlet.finish();
        drop(allow);
        outlet.finish();
        outlet.write("end".to_owned());
        outlet.finish();
        let texts: String = texts.try_iter().collect();
        assert!(texts.ends_with("end"));
        let written = texts.matches(&long).count();
        // Four wait at most, and one more may have been taken from the queue.
        assert!((4..=5).contains(&written), "{written}");
        let loss = format!("{} lines were lost: their reader is too slow", 8 - written);
        assert!(texts.contains(&loss), "{}", texts.replace('x', ""));
    }

    #[test]
    fn a_text_replaces_those_that_wait() {
        let (outlet, allow, texts) = slow();
        for text in ["first", "second", "third"] {
            outlet.write(text.to_owned());
        }
        outlet.replace("restored".to_owned());
        drop(allow);
        outlet.finish();
        let texts: Vec<String> = texts.try_iter().collect();
        assert_eq!(texts.last().map(String::as_str), Some("restored"));
        assert!(!texts.iter().any(|text| text == "third"), "{texts:?}");
    }

    #[test]
    fn a_stream_that_ends_takes_nothing_more_and_nobody_waits_for_it() {
        let (outlet, allow, texts) = slow();
        allow.send(Err(ErrorKind::BrokenPipe.into())).unwrap();
        outlet.write("one".to_owned());
        outlet.finish();
        outlet.write("two".to_owned());
        outlet.finish();
        assert_eq!(texts.iter().count(), 0);
        assert_eq!(
            Loss::Closed(ErrorKind::BrokenPipe.into()).text("lines"),
            "lines are not written any more: their reader is gone"
        );
    }
}
