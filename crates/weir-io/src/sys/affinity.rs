//! Which processors a thread runs on.

use super::check;
use std::io;

/// The processors that the calling thread may run on, in order.
///
/// # Errors
/// The system refuses to tell.
pub fn processors() -> io::Result<Vec<usize>> {
    // SAFETY: a set is an array of numbers, of which all may be 0.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a set of the size that is given, which lives during the call.
    check(unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) })?;
    // SAFETY: the numbers are below the size of the set.
    let is_in = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &set) };
    Ok((0..libc::CPU_SETSIZE as usize).filter(is_in).collect())
}

/// Lets the calling thread run on one processor only.
///
/// # Errors
/// There is no such processor, or it is not for this process.
pub fn pin_to(processor: usize) -> io::Result<()> {
    if processor >= libc::CPU_SETSIZE as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: a set is an array of numbers, of which all may be 0.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number is below the size of the set.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: the pointer is to a set of the size that is given, which lives during the call.
    check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_has_one_processor() {
        std::thread::spawn(|| {
            let last = *processors().unwrap().last().unwrap();
            pin_to(last).unwrap();
            assert_eq!(processors().unwrap(), [last]);
            assert!(pin_to(usize::MAX).is_err());
        })
        .join()
        .unwrap();
    }
}
