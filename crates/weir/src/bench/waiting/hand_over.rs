//! The paper's synchronous mode: the extern runs on another core, and the packet's thread waits.

use super::rig::SETTLED;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use weir_extern_api::{Call, Extern, Outcome, Parameter, Signature};

/// A word in cache lines of its own; neighbouring lines are prefetched in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Word(AtomicU64);

/// A call in transit between two cores.
#[derive(Default)]
struct Mailbox {
    /// The argument, and in the upper half the number of the call.
    request: Word,
    reply: Word,
}

/// Waits for the other core.
struct HandOver {
    mailbox: Arc<Mailbox>,
    inner: Arc<dyn Extern>,
}

impl Extern for HandOver {
    fn check(&self, signature: &Signature) -> Result<(), String> {
        self.inner.check(signature)
    }

    fn call(&self, call: &mut Call<'_>) -> Outcome {
        let number = (self.mailbox.request.0.load(Ordering::Relaxed) >> 32) + 1;
        let request = number << 32 | (call.get(0) & 0xffff_ffff);
        self.mailbox.request.0.store(request, Ordering::Release);
        while self.mailbox.reply.0.load(Ordering::Acquire) != request {
            std::hint::spin_loop();
        }
        Outcome::Continue
    }
}

/// The other core, with a mailbox per worker.
pub struct Server {
    mailboxes: Vec<Arc<Mailbox>>,
    inner: Arc<dyn Extern>,
    active: Arc<AtomicBool>,
    exit: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(inner: Arc<dyn Extern>, workers: usize, core: usize) -> std::io::Result<Self> {
        let mailboxes: Vec<Arc<Mailbox>> = (0..workers).map(|_| Arc::default()).collect();
        let (active, exit) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let run = {
            let (mailboxes, inner) = (mailboxes.clone(), Arc::clone(&inner));
            let (active, exit) = (Arc::clone(&active), Arc::clone(&exit));
            move || {
                // Without a core of its own, it is only slower.
                let _ = weir_io::pin_to_core(core);
                serve(&mailboxes, &*inner, &active, &exit);
            }
        };
        let thread = std::thread::Builder::new()
            .name("weir-hand-over".to_owned())
            .spawn(run)?;
        std::thread::sleep(SETTLED);
        Ok(Server {
            mailboxes,
            inner,
            active,
            exit,
            thread: Some(thread),
        })
    }

    /// The extern, for a worker.
    pub fn client(&self, worker: usize) -> Arc<dyn Extern> {
        Arc::new(HandOver {
            mailbox: Arc::clone(&self.mailboxes[worker]),
            inner: Arc::clone(&self.inner),
        })
    }

    /// Occupies the core, or leaves it to others.
    pub fn set_active(&self, active: bool) {
        self.active.store(active, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

fn serve(mailboxes: &[Arc<Mailbox>], inner: &dyn Extern, active: &AtomicBool, exit: &AtomicBool) {
    let signature = Signature::new(vec![Parameter::input("cycles", &[32])], &[]);
    let mut served = vec![0; mailboxes.len()];
    while !exit.load(Ordering::Relaxed) {
        if !active.load(Ordering::Acquire) {
            std::thread::park();
            continue;
        }
        for (mailbox, served) in mailboxes.iter().zip(&mut served) {
            let request = mailbox.request.0.load(Ordering::Acquire);
            if request == *served {
                continue;
            }
            let mut words = [request & 0xffff_ffff];
            let _ = inner.call(&mut Call::new(&signature, &mut words, None));
            *served = request;
            mailbox.reply.0.store(request, Ordering::Release);
        }
        std::hint::spin_loop();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.exit.store(true, Ordering::Relaxed);
        self.set_active(false);
        if let Some(thread) = self.thread.take() {
            // It panics only with the extern, which the hook has reported.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_waits_for_the_other_core() {
        let externs = crate::externs();
        let inner = Arc::clone(externs.find_function("busy_cycles").expect("it is weir's"));
        let server = Server::start(inner, 2, 0).expect("a thread");
        server.set_active(true);
        let signature = Signature::new(vec![Parameter::input("cycles", &[32])], &[]);
        for worker in [0, 1, 0, 0] {
            let mut words = [10];
            let outcome = server.client(worker).call(&mut Call::new(&signature, &mut words, None));
            assert_eq!(outcome, Outcome::Continue);
        }
    }
}
