//! Cores of the machine.

use super::check;
use crate::error::IoError;
use std::io;

fn empty() -> libc::cpu_set_t {
    // SAFETY: a set of cores is bits, and none of them set is the empty set.
    unsafe { std::mem::zeroed() }
}

/// Cores that this thread may run on, by number.
pub(crate) fn cores() -> Vec<usize> {
    let mut set = empty();
    // SAFETY: the pointer is to a set of the size given, which lives during the call; 0 is this
    // thread.
    let asked = check(unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) });
    if asked.is_err() {
        return Vec::new();
    }
    let most = libc::CPU_SETSIZE as usize;
    // SAFETY: the numbers are within the set.
    (0..most)
        .filter(|&core| unsafe { libc::CPU_ISSET(core, &set) })
        .collect()
}

/// Lets this thread run on one core only.
pub(crate) fn pin(core: usize) -> Result<(), IoError> {
    let doing = || format!("staying on core {core}");
    if core >= libc::CPU_SETSIZE as usize {
        let error = io::Error::from_raw_os_error(libc::EINVAL);
        return Err(IoError::system(doing(), "CAP_SYS_NICE", error));
    }
    let mut set = empty();
    // SAFETY: the number is within the set.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: the pointer is to a set of the size given, which lives during the call; 0 is this
    // thread.
    let told = check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) });
    told.map_err(|e| IoError::system(doing(), "CAP_SYS_NICE", e))?;
    Ok(())
}

fn nice_now() -> libc::c_int {
    // SAFETY: only numbers are passed; to Linux, 0 as a process is this thread. It does not fail
    // for itself.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// Makes this thread, and those that it starts from now on, so much nicer than normal, unless it is
/// nicer already.
pub(crate) fn be_nice(nice: u8) -> Result<(), IoError> {
    if nice_now() >= libc::c_int::from(nice) {
        return Ok(());
    }
    // SAFETY: only numbers are passed; to Linux, 0 as a process is this thread.
    let told = check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, libc::c_int::from(nice)) });
    told.map(drop)
        .map_err(|e| IoError::system(format!("having a thread run at nice {nice}"), "CAP_SYS_NICE", e))
}

/// Has this process get SIGTERM when its parent ends.
pub(crate) fn die_with_parent(parent: i32) -> Result<(), IoError> {
    let doing = "ending with the parent process";
    // SAFETY: only numbers are passed.
    let told = check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) });
    told.map_err(|e| IoError::system(doing, "no right", e))?;
    // A parent that ended in between has been followed by the process that takes orphans in.
    if parent_process() != parent {
        let source = io::Error::other("the parent process has ended already");
        return Err(IoError::System {
            doing: doing.to_owned(),
            source,
        });
    }
    Ok(())
}

/// The number of the process that has started this one, or taken it in.
pub(crate) fn parent_process() -> i32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::getppid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nice_thread_starts_nice_threads_and_leaves_others_alone() {
        let before = nice_now();
        let inherited = std::thread::spawn(|| {
            be_nice(19).unwrap();
            be_nice(3).unwrap();
            std::thread::spawn(nice_now).join().unwrap()
        });
        assert_eq!(inherited.join().unwrap(), 19);
        assert_eq!(nice_now(), before);
    }

    #[test]
    fn a_pinned_thread_has_one_core() {
        let last = *cores().last().expect("there is a core");
        let seen = std::thread::spawn(move || pin(last).map(|()| cores())).join();
        assert_eq!(seen.unwrap().unwrap(), [last]);
        assert!(pin(usize::MAX).is_err());
    }
}
