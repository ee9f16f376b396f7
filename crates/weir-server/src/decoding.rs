//! Lists of requests, read where that holds up nobody, and no further than they may go.

use crate::refusal::Refusal;
use tokio::task::spawn_blocking;
use weir_proto::listed::EncodedList;
use weir_proto::prost::Message;

/// Bytes from which on a list is read on a thread of its own.
const LARGE: usize = 16 << 10;

/// Bytes of the longest element that is read: it may take a hundred times as many while that is done.
const LONGEST: usize = 8 << 20;

/// Refuses lists with more elements than are taken, and those with an element that is too long.
///
/// Comes before all other checks: of a list that was cut off, the rest of the request is not complete.
pub fn check(list: &EncodedList, most: usize, elements: &str, request: &str) -> Result<(), Refusal> {
    let most = most.min(EncodedList::MOST);
    if list.len() > most {
        let found = match list.len() > EncodedList::MOST {
            true => format!("more than {}", EncodedList::MOST),
            false => list.len().to_string(),
        };
        return Err(Refusal::full(format!(
            "{found} {elements} in one {request}; at most {most} are taken"
        )));
    }
    let longest = list.longest();
    if longest > LONGEST {
        return Err(Refusal::full(format!(
            "one of the {elements} has {longest} bytes; at most {LONGEST} are taken"
        )));
    }
    Ok(())
}

/// One element as a message.
pub fn element<M: Message + Default>(bytes: &[u8]) -> Result<M, Refusal> {
    M::decode(bytes).map_err(|e| Refusal::malformed(format!("not a message of this kind: {e}")))
}

/// What is made of a list, on a thread of its own if that may take long.
pub async fn read<T: Send + 'static>(
    list: EncodedList,
    make: impl FnOnce(EncodedList) -> T + Send + 'static,
) -> Result<T, Refusal> {
    if list.bytes_in_all() + list.len() < LARGE {
        return Ok(make(list));
    }
    let made = spawn_blocking(move || make(list)).await;
    made.map_err(|_| Refusal::gone("the server is stopping"))
}

/// All elements as messages.
pub async fn all<M: Message + Default + 'static>(list: EncodedList) -> Result<Vec<M>, Refusal> {
    read(list, |list| list.iter().map(element).collect()).await?
}
