//! Decoding of a request's list of elements, within limits, and on blocking threads if it is long.
//!
//! [`ListLimits`] checks the number and the lengths of elements before any is decoded. Elements are
//! decoded one at a time under a limit of fields. One thread serves all controllers, so long lists
//! are decoded on blocking threads ([`offload_if`]). No lock may be held across it.
//!
//! It relies on [`EncodedList`], which finds the elements, and on [`budget`], which counts fields:
//! the limit of one request's decoded memory, while budgets of the server limit all requests
//! together ([`crate::admission`], [`crate::batches`]). It does not interpret elements.

use crate::refusal::Refusal;
use crate::threads;
use prost::{Message, Name};
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;
use tokio::sync::Semaphore;
use weir_proto::budget;
use weir_proto::listed::{EncodedList, Excess};

/// A list in a message of this many bytes or more is decoded on blocking threads.
const OFFLOAD_BYTES: usize = 16 << 10;

/// More outcomes of elements than this are encoded on blocking threads, as an answer.
pub const OFFLOAD_OUTCOMES: usize = 256;

/// The most fields of elements that are decoded together, at any depth. A decoded field may take a
/// hundred times its bytes on the wire. Programs have some ten thousand fields, an entry some ten.
const MAX_FIELDS: usize = 1 << 20;

/// The text of the refusal of messages with protobuf groups, which no message of these protocols
/// has.
pub const GROUP_REFUSAL: &str = "there is a group in it, which no message of the protocol has";

/// The limits of a request's list.
pub struct ListLimits {
    /// For error messages.
    request_name: &'static str,
    /// The plural name of the elements, for error messages.
    element_name: &'static str,
    /// The most elements of the list.
    max_elements: usize,
    /// The most bytes of an element.
    max_element_bytes: usize,
}

/// The most bytes of an update or a query.
const MAX_ELEMENT_BYTES: usize = 8 << 20;

impl ListLimits {
    /// The limits of a Write: `max_elements` updates (`max_updates` of the configuration).
    pub fn write(max_elements: usize) -> Self {
        ListLimits {
            request_name: "Write",
            element_name: "updates",
            max_elements,
            max_element_bytes: MAX_ELEMENT_BYTES,
        }
    }

    /// The limits of a Read: `max_elements` queries, which the protocol calls `element_name`.
    pub fn read(max_elements: usize, element_name: &'static str) -> Self {
        ListLimits {
            request_name: "Read",
            element_name,
            max_elements,
            max_element_bytes: MAX_ELEMENT_BYTES,
        }
    }

    /// The limits of a request with a program. Its elements may have any length: clients may send
    /// the binary that a hardware switch would need.
    pub fn program(max_elements: usize, element_name: &'static str) -> Self {
        ListLimits {
            request_name: "request",
            element_name,
            max_elements,
            max_element_bytes: usize::MAX,
        }
    }

    /// Refuses lists with too many elements or too long ones, and requests with too many other
    /// bytes.
    ///
    /// This must be the first check of a request: reading stops at a limit, so that the other
    /// fields may be incomplete.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub fn check(&self, list: &EncodedList) -> Result<(), Refusal> {
        let ListLimits {
            request_name,
            element_name,
            max_elements,
            max_element_bytes,
        } = *self;
        let max_elements = max_elements.min(EncodedList::MAX_ELEMENTS);
        let count = match list.excess() {
            Some(Excess::OtherFields) => {
                return Err(Refusal::exhausted(format!(
                    "a {request_name} takes more than {} bytes besides its {element_name}",
                    EncodedList::MAX_OTHER_BYTES
                )));
            }
            Some(Excess::Group) => return Err(Refusal::malformed(GROUP_REFUSAL)),
            Some(Excess::Elements) => format!("more than {}", EncodedList::MAX_ELEMENTS),
            None => list.len().to_string(),
        };
        if list.len() > max_elements {
            return Err(Refusal::exhausted(format!(
                "{count} {element_name} in one {request_name}; at most {max_elements} are taken"
            )));
        }
        let longest = list.max_element_len();
        if longest > max_element_bytes {
            return Err(Refusal::exhausted(format!(
                "one of the {element_name} has {longest} bytes; at most {max_element_bytes} are taken"
            )));
        }
        Ok(())
    }
}

/// Decodes one element of a list.
///
/// # Errors
/// It is malformed, or has too many fields.
pub fn decode_element<M: Message + Default + Name>(list: &EncodedList, bytes: &[u8]) -> Result<M, Refusal> {
    let mut fields_left = MAX_FIELDS;
    decode_within(list, bytes, &mut fields_left)
}

/// Decodes one element. `fields_left`: how many fields this element and further ones may have.
fn decode_within<M: Message + Default + Name>(
    list: &EncodedList,
    bytes: &[u8],
    fields_left: &mut usize,
) -> Result<M, Refusal> {
    check_fields::<M>(bytes, fields_left)?;
    // Fields of type `bytes` share the memory of the request.
    M::decode(list.bytes(bytes)).map_err(|e| Refusal::malformed(format!("not a message of this kind: {e}")))
}

/// Subtracts a message's fields from `fields_left`. Refuses a message that has more.
fn check_fields<M: Name>(bytes: &[u8], fields_left: &mut usize) -> Result<(), Refusal> {
    let fields = budget::fields::<M>(bytes, *fields_left).map_err(|excess| match excess {
        budget::Excess::Fields => Refusal::exhausted(format!("more than {MAX_FIELDS} fields to be read at once")),
        budget::Excess::Group => Refusal::malformed(GROUP_REFUSAL),
    })?;
    *fields_left = fields_left.saturating_sub(fields);
    Ok(())
}

/// Decodes all elements as parts of one message; `None` if the list is empty. May take long: not
/// for threads that serve all clients.
///
/// # Errors
/// One is malformed, or they have too many fields together.
pub fn decode_joined<M: Message + Default + Name>(list: &EncodedList) -> Result<Option<M>, Refusal> {
    let mut fields_left = MAX_FIELDS;
    list.iter()
        .try_for_each(|part| check_fields::<M>(part, &mut fields_left))?;
    list.join()
        .map_err(|e| Refusal::malformed(format!("not a message of this kind: {e}")))
}

/// Whether a list is decoded on blocking threads.
pub fn is_large(list: &EncodedList) -> bool {
    list.message_len() >= OFFLOAD_BYTES
}

/// Permits for blocking threads: one per core. More would compete with the thread that serves all
/// clients, and hold more in memory.
static THREAD_PERMITS: LazyLock<Arc<Semaphore>> =
    LazyLock::new(|| Arc::new(Semaphore::new(available_parallelism().map_or(1, usize::from))));

/// Runs `work` on a blocking thread once a permit is free, or at once if it is not large. Where the
/// system starts no thread, the calling one does it.
///
/// Callers queue for the permit. The caller must not hold a lock that others wait for, and `work`
/// must not wait for anything.
///
/// # Errors
/// `work` panicked.
pub async fn offload_if<T: Send + 'static>(
    is_large: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    if !is_large {
        return Ok(work());
    }
    let thread = Arc::clone(&THREAD_PERMITS).acquire_owned().await;
    // The thread owns the permit: the caller may be dropped before the work is done.
    offload_if_unqueued(true, move || {
        let _thread = thread;
        work()
    })
    .await
}

/// As [`offload_if`], without a permit: for callers that hold a lock, which limits them to
/// one at a time.
///
/// # Errors
/// `work` panicked.
pub async fn offload_if_unqueued<T: Send + 'static>(
    is_large: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    if !is_large {
        return Ok(work());
    }
    let done = threads::run_somewhere(work).await;
    done.map_err(|_| Refusal::unavailable("the request has met a mistake in weir: please report it"))
}

/// Decodes all elements. `permit` is dropped when the list is, even if the caller was dropped
/// before.
///
/// # Errors
/// One is malformed, or they have too many fields together.
pub async fn decode_all<M: Message + Default + Name + 'static>(
    list: EncodedList,
    permit: impl Send + 'static,
) -> Result<Vec<M>, Refusal> {
    let is_large = is_large(&list);
    let work = move || {
        let _permit = permit;
        let mut fields_left = MAX_FIELDS;
        list.iter()
            .map(|bytes| decode_within(&list, bytes, &mut fields_left))
            .collect()
    };
    offload_if(is_large, work).await?
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
    async fn elements_with_too_many_fields_are_refused() {
        let member = pb::action_profile_group::Member::default();
        let group = |members| pb::Entity {
            entity: Some(pb::entity::Entity::ActionProfileGroup(pb::ActionProfileGroup {
                members: vec![member.clone(); members],
                ..pb::ActionProfileGroup::default()
            })),
        };
        let half = MAX_FIELDS / 2;
        let one = group(half);
        assert_eq!(
            decode_all::<pb::Entity>(queries(vec![one.clone()]), ()).await,
            Ok(vec![one.clone()])
        );
        let two = decode_all::<pb::Entity>(queries(vec![one.clone(), one.clone()]), ()).await;
        let too_many = format!("more than {MAX_FIELDS} fields to be read at once");
        assert_eq!(two, Err(Refusal::exhausted(too_many.clone())));
        let first = |list: &EncodedList| decode_element::<pb::Entity>(list, list.iter().next().expect("is there"));
        let whole = queries(vec![group(MAX_FIELDS)]);
        assert_eq!(first(&whole), Err(Refusal::exhausted(too_many.clone())));
        assert_eq!(first(&queries(vec![one.clone()])), Ok(one.clone()));
        // Parts of one message.
        let parts = queries(vec![one.clone(), one]);
        assert_eq!(decode_joined::<pb::Entity>(&parts), Err(Refusal::exhausted(too_many)));
        let parts = queries(vec![group(1), group(2)]);
        assert_eq!(decode_joined::<pb::Entity>(&parts), Ok(Some(group(3))));
        assert_eq!(decode_joined::<pb::Entity>(&EncodedList::default()), Ok(None));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn blocking_work_uses_one_thread_per_core() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let cores = available_parallelism().map_or(1, usize::from);
        let (working, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..cores * 8)
            .map(|_| {
                let (working, peak) = (Arc::clone(&working), Arc::clone(&peak));
                let work = move || {
                    peak.fetch_max(working.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    (0..1000).for_each(|_| std::thread::yield_now());
                    working.fetch_sub(1, Ordering::SeqCst);
                };
                tokio::spawn(offload_if(true, work))
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.expect("no panic"), Ok(()));
        }
        assert!((1..=cores).contains(&peak.load(Ordering::SeqCst)), "{peak:?}");
    }

    #[test]
    fn protobuf_groups_are_refused() {
        let group = [9 << 3 | 3, 9 << 3 | 4];
        let request = ReadRequest::decode(&group[..]).expect("elements are not decoded").list;
        let refused = ListLimits::read(9, "entities").check(&request);
        assert_eq!(refused, Err(Refusal::malformed(GROUP_REFUSAL)));
        let wire = [&[2 << 3 | 2, 2][..], &group].concat();
        let list = ReadRequest::decode(wire.as_slice()).expect("has one entity").list;
        let entity = decode_element::<pb::Entity>(&list, list.iter().next().expect("is there"));
        assert_eq!(entity, Err(Refusal::malformed(GROUP_REFUSAL)));
    }
}
