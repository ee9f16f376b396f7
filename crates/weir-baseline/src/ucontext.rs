//! A packet handler on a user context of the C library, as T4P4S has it: a context is made per
//! packet, and switched to and from by `swapcontext`, which changes the signal mask by a system
//! call.
//!
//! It exists on Linux on x86-64 with glibc.

/// A user context with its stack, made anew for each packet.
#[derive(Debug)]
pub struct Handler(#[allow(dead_code, reason = "never made on other systems")] system::Handler);

impl Handler {
    /// A context, unless this system has none.
    #[must_use]
    pub fn new() -> Option<Self> {
        system::Handler::new().map(Handler)
    }

    /// Makes the context, runs the handler until it waits, and continues it to its end. Gives how
    /// far it came: 2.
    pub fn packet(&mut self) -> u64 {
        self.0.packet()
    }

    /// Makes the context only.
    pub fn make(&mut self) {
        self.0.make();
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod system {
    use libc::{getcontext, makecontext, swapcontext, ucontext_t};
    use std::cell::Cell;
    use std::mem::MaybeUninit;

    /// Bytes of the stack.
    const STACK: usize = 64 * 1024;

    thread_local! {
        /// The contexts that `body` switches between while it runs.
        static RUNNING: Cell<*mut Contexts> = const { Cell::new(std::ptr::null_mut()) };
    }

    struct Contexts {
        main: MaybeUninit<ucontext_t>,
        handler: MaybeUninit<ucontext_t>,
        steps: u64,
    }

    /// Two contexts that do not move, and the stack of the second.
    pub struct Handler {
        contexts: *mut Contexts,
        stack: *mut [u8],
    }

    impl std::fmt::Debug for Handler {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_struct("Handler").finish_non_exhaustive()
        }
    }

    /// The packet handler: it waits once.
    extern "C" fn body() {
        let contexts = RUNNING.get();
        // SAFETY: `packet` has set the pointer to contexts that live until it returns, and it
        // accesses them only before and after this body runs. `main` was saved by the
        // `swapcontext` that came here.
        unsafe {
            (*contexts).steps += 1;
            swapcontext((*contexts).handler.as_mut_ptr(), (*contexts).main.as_ptr());
            (*contexts).steps += 1;
        }
    }

    impl Handler {
        pub fn new() -> Option<Self> {
            Some(Handler {
                contexts: Box::into_raw(Box::new(Contexts {
                    main: MaybeUninit::zeroed(),
                    handler: MaybeUninit::zeroed(),
                    steps: 0,
                })),
                stack: Box::into_raw(vec![0u8; STACK].into_boxed_slice()),
            })
        }

        pub fn make(&mut self) {
            // SAFETY: the contexts and the stack live as long as `self`, and no handler is under
            // way. `getcontext` initialises the context before the fields are set. `body` takes no
            // arguments, and 0 of them are passed. After `body`, `main` continues.
            unsafe {
                let handler = (*self.contexts).handler.as_mut_ptr();
                getcontext(handler);
                (*handler).uc_stack.ss_sp = self.stack.cast();
                (*handler).uc_stack.ss_size = STACK;
                (*handler).uc_link = (*self.contexts).main.as_mut_ptr();
                makecontext(handler, body, 0);
            }
        }

        pub fn packet(&mut self) -> u64 {
            self.make();
            RUNNING.set(self.contexts);
            // SAFETY: the first switch runs `body` until it switches back, and the second one from
            // there to its end, where `uc_link` leads back here.
            unsafe {
                (*self.contexts).steps = 0;
                for _ in 0..2 {
                    swapcontext((*self.contexts).main.as_mut_ptr(), (*self.contexts).handler.as_ptr());
                }
                (*self.contexts).steps
            }
        }
    }

    impl Drop for Handler {
        fn drop(&mut self) {
            // SAFETY: both were made by `Box::into_raw`, and no handler is under way.
            unsafe {
                drop(Box::from_raw(self.contexts));
                drop(Box::from_raw(self.stack));
            }
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
mod system {
    /// There is none here.
    #[derive(Debug)]
    pub enum Handler {}

    impl Handler {
        pub fn new() -> Option<Self> {
            None
        }

        pub fn make(&mut self) {
            match *self {}
        }

        pub fn packet(&mut self) -> u64 {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no user contexts")]
    fn a_handler_waits_and_continues() {
        let Some(mut handler) = Handler::new() else { return };
        assert_eq!((handler.packet(), handler.packet()), (2, 2));
    }
}
