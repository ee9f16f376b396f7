//! Lists of requests, read where that holds up nobody, and no further than they may go.

use crate::refusal::Refusal;
use prost::{Message, Name};
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};
use weir_proto::budget;
use weir_proto::listed::{EncodedList, Excess};

/// Bytes of a message from which on its list is read on a thread of its own.
const LARGE: usize = 16 << 10;

/// Elements from which on what became of them is told on a thread of its own.
pub const MANY: usize = 256;

/// Fields of one element that is read, at any depth, and of all that are read at once: each may
/// take a hundred times as many bytes as on the wire. Programs have some ten thousand, an entry
/// some ten.
const MOST_FIELDS: usize = 1 << 20;

/// Why messages with groups, which are unknown fields in any of ours, are refused.
pub const GROUP: &str = "there is a group in it, which no message of the protocol has";

/// What a list may be.
pub struct Bounds {
    request: &'static str,
    /// What it is a list of.
    elements: &'static str,
    most: usize,
    /// Bytes of the longest element.
    longest: usize,
}

/// Bytes of an update or a query.
const LONGEST: usize = 8 << 20;

impl Bounds {
    /// Those of a Write with so many updates.
    pub fn write(most: usize) -> Self {
        Bounds {
            request: "Write",
            elements: "updates",
            most,
            longest: LONGEST,
        }
    }

    /// Those of a Read with so many of what the protocol calls so.
    pub fn read(most: usize, elements: &'static str) -> Self {
        Bounds {
            request: "Read",
            elements,
            most,
            longest: LONGEST,
        }
    }

    /// Those of a request with a program: one for hardware may have any length.
    pub fn program(most: usize, elements: &'static str) -> Self {
        Bounds {
            request: "request",
            elements,
            most,
            longest: usize::MAX,
        }
    }

    /// Refuses lists with more elements than are taken, those with an element that is too long, and
    /// requests with too much besides.
    ///
    /// Comes before all other checks: of a list that was cut off, the rest of the request is not
    /// complete.
    ///
    /// # Errors
    /// There is too much of something.
    pub fn check(&self, list: &EncodedList) -> Result<(), Refusal> {
        let Bounds {
            request,
            elements,
            most,
            longest,
        } = *self;
        let most = most.min(EncodedList::MOST);
        let found = match list.excess() {
            Some(Excess::Others) => {
                return Err(Refusal::full(format!(
                    "a {request} takes more than {} bytes besides its {elements}",
                    EncodedList::MOST_OTHERS
                )));
            }
            Some(Excess::Group) => return Err(Refusal::malformed(GROUP)),
            Some(Excess::Elements) => format!("more than {}", EncodedList::MOST),
            None => list.len().to_string(),
        };
        if list.len() > most {
            return Err(Refusal::full(format!(
                "{found} {elements} in one {request}; at most {most} are taken"
            )));
        }
        let found = list.longest();
        if found > longest {
            return Err(Refusal::full(format!(
                "one of the {elements} has {found} bytes; at most {longest} are taken"
            )));
        }
        Ok(())
    }
}

/// One element of a list as a message.
///
/// # Errors
/// It is none, or has too many fields.
pub fn element<M: Message + Default + Name>(list: &EncodedList, bytes: &[u8]) -> Result<M, Refusal> {
    let mut left = MOST_FIELDS;
    counted(list, bytes, &mut left)
}

/// One element as a message, of several that have so many fields together.
fn counted<M: Message + Default + Name>(list: &EncodedList, bytes: &[u8], left: &mut usize) -> Result<M, Refusal> {
    check_fields::<M>(bytes, left)?;
    // What is bytes in the message is not copied.
    M::decode(list.bytes(bytes)).map_err(|e| Refusal::malformed(format!("not a message of this kind: {e}")))
}

/// Refuses a message with more fields than are left, and takes those it has.
fn check_fields<M: Name>(bytes: &[u8], left: &mut usize) -> Result<(), Refusal> {
    let fields = budget::fields::<M>(bytes, *left).map_err(|excess| match excess {
        budget::Excess::Fields => Refusal::full(format!("more than {MOST_FIELDS} fields to be read at once")),
        budget::Excess::Group => Refusal::malformed(GROUP),
    })?;
    *left = left.saturating_sub(fields);
    Ok(())
}

/// All elements as one message, of which each is a part; `None` if there is none. Not for threads
/// that serve everybody.
///
/// # Errors
/// One is no such message, or they have too many fields together.
pub fn joined<M: Message + Default + Name>(list: &EncodedList) -> Result<Option<M>, Refusal> {
    let mut left = MOST_FIELDS;
    list.iter().try_for_each(|part| check_fields::<M>(part, &mut left))?;
    list.join()
        .map_err(|e| Refusal::malformed(format!("not a message of this kind: {e}")))
}

/// Whether what is made of a list is made on a thread of its own.
pub fn is_large(list: &EncodedList) -> bool {
    list.message_len() >= LARGE
}

/// Threads that do what takes long: as many as there are cores. More would only keep the one from
/// its core that serves everybody, and have more in memory.
static THREADS: LazyLock<Arc<Semaphore>> =
    LazyLock::new(|| Arc::new(Semaphore::new(available_parallelism().map_or(1, usize::from))));

/// Does what may take long on a thread of its own, once one is free, the rest at once.
///
/// Nobody calls it who holds what others wait for, and `make` waits for nothing: there may be many
/// before it.
///
/// # Errors
/// That thread is not there any more, or has met a mistake.
pub async fn aside<T: Send + 'static>(is_large: bool, make: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    if !is_large {
        return Ok(make());
    }
    let thread = Arc::clone(&THREADS).acquire_owned().await;
    // It is the thread's, and not the caller's, who may go away before it is done.
    aside_at_once(true, move || {
        let _thread = thread;
        make()
    })
    .await
}

/// As [`aside`], waiting for no thread: for who holds a lock, so that there is one at a time.
///
/// # Errors
/// That thread is not there any more, or has met a mistake.
pub async fn aside_at_once<T: Send + 'static>(
    is_large: bool,
    make: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    if !is_large {
        return Ok(make());
    }
    spawn_blocking(make).await.map_err(|e| of_thread(&e))
}

/// Why there is no answer of a thread.
fn of_thread(error: &JoinError) -> Refusal {
    match error.is_panic() {
        true => Refusal::gone("the request has met a mistake in weir: please report it"),
        false => Refusal::gone("the server is stopping"),
    }
}

/// All elements as messages. `held` is kept until the list is not needed any more, even if nobody
/// waits for them.
///
/// # Errors
/// One is none, or they have too many fields together.
pub async fn all<M: Message + Default + Name + 'static>(
    list: EncodedList,
    held: impl Send + 'static,
) -> Result<Vec<M>, Refusal> {
    let is_large = is_large(&list);
    let make = move || {
        let _held = held;
        let mut left = MOST_FIELDS;
        list.iter().map(|bytes| counted(&list, bytes, &mut left)).collect()
    };
    aside(is_large, make).await?
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_proto::p4::v1 as pb;
    use weir_proto::p4rt_raw::ReadRequest;

    fn queries(entities: Vec<pb::Entity>) -> EncodedList {
        let request = pb::ReadRequest {
            entities,
            ..pb::ReadRequest::default()
        };
        let listed = ReadRequest::decode(request.encode_to_vec().as_slice());
        listed.expect("is one").list
    }

    #[tokio::test]
    async fn what_has_too_many_fields_is_refused() {
        let member = pb::action_profile_group::Member::default();
        let group = |members| pb::Entity {
            entity: Some(pb::entity::Entity::ActionProfileGroup(pb::ActionProfileGroup {
                members: vec![member.clone(); members],
                ..pb::ActionProfileGroup::default()
            })),
        };
        let half = MOST_FIELDS / 2;
        let one = group(half);
        assert_eq!(
            all::<pb::Entity>(queries(vec![one.clone()]), ()).await,
            Ok(vec![one.clone()])
        );
        let two = all::<pb::Entity>(queries(vec![one.clone(), one.clone()]), ()).await;
        let too_many = format!("more than {MOST_FIELDS} fields to be read at once");
        assert_eq!(two, Err(Refusal::full(too_many.clone())));
        let first = |list: &EncodedList| element::<pb::Entity>(list, list.iter().next().expect("is there"));
        let whole = queries(vec![group(MOST_FIELDS)]);
        assert_eq!(first(&whole), Err(Refusal::full(too_many.clone())));
        assert_eq!(first(&queries(vec![one.clone()])), Ok(one.clone()));
        // Parts of one message.
        let parts = queries(vec![one.clone(), one]);
        assert_eq!(joined::<pb::Entity>(&parts), Err(Refusal::full(too_many)));
        let parts = queries(vec![group(1), group(2)]);
        assert_eq!(joined::<pb::Entity>(&parts), Ok(Some(group(3))));
        assert_eq!(joined::<pb::Entity>(&EncodedList::default()), Ok(None));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn no_more_threads_work_aside_than_there_are_cores() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let cores = available_parallelism().map_or(1, usize::from);
        let (working, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..cores * 8)
            .map(|_| {
                let (working, most) = (Arc::clone(&working), Arc::clone(&most));
                let work = move || {
                    most.fetch_max(working.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    (0..1000).for_each(|_| std::thread::yield_now());
                    working.fetch_sub(1, Ordering::SeqCst);
                };
                tokio::spawn(aside(true, work))
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.expect("no panic"), Ok(()));
        }
        assert!((1..=cores).contains(&most.load(Ordering::SeqCst)), "{most:?}");
    }

    #[test]
    fn a_group_is_refused_as_what_it_is() {
        let group = [9 << 3 | 3, 9 << 3 | 4];
        let request = ReadRequest::decode(&group[..]).expect("is looked at no further").list;
        let refused = Bounds::read(9, "entities").check(&request);
        assert_eq!(refused, Err(Refusal::malformed(GROUP)));
        let wire = [&[2 << 3 | 2, 2][..], &group].concat();
        let list = ReadRequest::decode(wire.as_slice()).expect("has one entity").list;
        let entity = element::<pb::Entity>(&list, list.iter().next().expect("is there"));
        assert_eq!(entity, Err(Refusal::malformed(GROUP)));
    }
}
