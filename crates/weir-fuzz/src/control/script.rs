//! Scripts of calls, and how they are run.

use prost::Message;
use prost::bytes::{Buf, BufMut};
use std::fmt::Debug;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::service::Routes;
use tonic::{Code, Request, Status};
use weir_proto::google::rpc;
use weir_proto::prost_types::Any;

/// Streams that a script may have.
pub(super) const STREAMS: u8 = 3;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// One thing that a script does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Write,
    Read,
    SetPipeline,
    GetPipeline,
    Capabilities,
    /// A message on a stream, which is opened where it is not.
    Say(u8),
    /// The end of a stream.
    Close(u8),
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Kind::Write => 0,
            Kind::Read => 1,
            Kind::SetPipeline => 2,
            Kind::GetPipeline => 3,
            Kind::Capabilities => 4,
            Kind::Say(n) => 16 + n % STREAMS,
            Kind::Close(n) => 32 + n % STREAMS,
        }
    }

    fn of(code: u8) -> Self {
        match code {
            0 => Kind::Write,
            1 => Kind::Read,
            2 => Kind::SetPipeline,
            3 => Kind::GetPipeline,
            4 => Kind::Capabilities,
            n if n < 32 => Kind::Say((n & 15) % STREAMS),
            n => Kind::Close((n & 31) % STREAMS),
        }
    }

    fn method(self) -> &'static str {
        match self {
            Kind::Write => "Write",
            Kind::Read => "Read",
            Kind::SetPipeline => "SetForwardingPipelineConfig",
            Kind::GetPipeline => "GetForwardingPipelineConfig",
            Kind::Capabilities => "Capabilities",
            Kind::Say(_) | Kind::Close(_) => "StreamChannel",
        }
    }
}

/// Adds a step to a script: its kind, the length of its message, the message.
pub(super) fn push(script: &mut Vec<u8>, kind: Kind, message: &[u8]) {
    script.push(kind.code());
    script.extend((message.len() as u32).to_le_bytes());
    script.extend(message);
}

/// The steps of a script; the last may be cut off.
fn steps(mut script: &[u8]) -> Vec<(Kind, Vec<u8>)> {
    let mut steps = Vec::new();
    while let [kind, a, b, c, d, rest @ ..] = script {
        let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        let (message, after) = rest.split_at(length.min(rest.len()));
        steps.push((Kind::of(*kind), message.to_vec()));
        script = after;
    }
    steps
}

/// Messages as they are, for servers that decode them.
struct Bytes;

impl Encoder for Bytes {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Bytes {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut bytes = vec![0; from.remaining()];
        from.copy_to_slice(&mut bytes);
        Ok(Some(bytes))
    }
}

impl Codec for Bytes {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Bytes;
    type Decoder = Bytes;

    fn encoder(&mut self) -> Bytes {
        Bytes
    }

    fn decoder(&mut self) -> Bytes {
        Bytes
    }
}

/// A server, and what is known of its protocol.
pub(super) struct Server {
    /// All of it behind one door.
    pub routes: Routes,
    /// The name of its service.
    pub service: &'static str,
    /// Whether a Write to whose updates was answered this has changed nothing: a batch that is all
    /// or nothing, or one all of whose updates failed.
    pub is_refused: fn(&[u8], &Status) -> bool,
    /// Reads whose answers are the state.
    pub state: Vec<Vec<u8>>,
    /// The entities of an answer to a read, for people.
    pub entities: fn(&[u8]) -> Vec<String>,
}

/// What was answered to a call: messages, and the status at the end where it is an error.
type Answer = (Vec<Vec<u8>>, Option<Status>);

impl Server {
    async fn call(&self, kind: Kind, message: Vec<u8>) -> Answer {
        let answer = tokio::time::timeout(PATIENCE, self.answer(kind, message));
        let answer = answer
            .await
            .unwrap_or_else(|_| panic!("{} is not answered", kind.method()));
        if let Some(status) = &answer.1 {
            let text = status.message();
            let is_mistake = text.contains("mistake in weir") || text.contains("not running any more");
            assert!(!is_mistake, "{}: {status:?}", kind.method());
            assert!(
                status.code() != Code::Cancelled,
                "{} was cut off: {status:?}",
                kind.method()
            );
        }
        answer
    }

    fn grpc(&self) -> tonic::client::Grpc<Routes> {
        tonic::client::Grpc::new(self.routes.clone()).max_decoding_message_size(256 << 20)
    }

    fn path(&self, kind: Kind) -> PathAndQuery {
        let path = format!("/{}/{}", self.service, kind.method());
        PathAndQuery::try_from(path).expect("is a path")
    }

    async fn answer(&self, kind: Kind, message: Vec<u8>) -> Answer {
        let mut grpc = self.grpc();
        let _ = grpc.ready().await;
        let mut found = Vec::new();
        // One answer is a stream of one.
        let answers = grpc
            .server_streaming(Request::new(message), self.path(kind), Bytes)
            .await;
        let mut answers = match answers {
            Ok(answers) => answers.into_inner(),
            Err(status) => return (found, Some(status)),
        };
        loop {
            match answers.message().await {
                Ok(Some(message)) => found.push(message),
                Ok(None) => return (found, None),
                Err(status) => return (found, Some(status)),
            }
        }
    }

    async fn open(&self) -> mpsc::Sender<Vec<u8>> {
        let (out, messages) = mpsc::channel(16);
        let mut grpc = self.grpc();
        let path = self.path(Kind::Say(0));
        let _ = grpc.ready().await;
        tokio::spawn(async move {
            let stream = grpc
                .streaming(Request::new(ReceiverStream::new(messages)), path, Bytes)
                .await;
            let Ok(stream) = stream else { return };
            let mut stream = stream.into_inner();
            while let Some(Ok(_)) = stream.next().await {}
        });
        out
    }

    /// The state: what all reads of it find.
    async fn state(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for request in &self.state {
            let (found, status) = self.call(Kind::Read, request.clone()).await;
            all.extend(found);
            // What there is not in this program is an error each time.
            all.extend(status.map(|s| format!("{:?} {}", s.code(), s.message()).into_bytes()));
        }
        all
    }

    /// Checks that nothing has changed.
    async fn unchanged(&self, before: &[Vec<u8>], by: &str) -> Vec<Vec<u8>> {
        let after = self.state().await;
        if before != after {
            let all = |state: &[Vec<u8>]| state.iter().flat_map(|s| (self.entities)(s)).collect::<Vec<_>>();
            let (before, after) = (all(before), all(&after));
            let gone = before.iter().filter(|e| !after.contains(e)).take(3);
            let new = after.iter().filter(|e| !before.contains(e)).take(3);
            let (gone, new): (Vec<_>, Vec<_>) = (gone.collect(), new.collect());
            panic!("{by} has changed something: {gone:#?} became {new:#?}");
        }
        after
    }

    /// Runs a script.
    async fn run(&self, script: &[u8]) {
        let mut streams: [Option<mpsc::Sender<Vec<u8>>>; STREAMS as usize] = Default::default();
        let mut known = None;
        for (kind, message) in steps(script) {
            match kind {
                Kind::Say(n) => {
                    known = None;
                    let place = &mut streams[usize::from(n)];
                    if place.as_ref().is_none_or(mpsc::Sender::is_closed) {
                        *place = Some(self.open().await);
                    }
                    if let Some(stream) = place {
                        let _ = stream.send(message).await;
                    }
                    settle().await;
                }
                Kind::Close(n) => {
                    streams[usize::from(n)] = None;
                    settle().await;
                }
                Kind::Write | Kind::SetPipeline => {
                    let before = match known.take() {
                        Some(state) => state,
                        None => self.state().await,
                    };
                    let (_, status) = self.call(kind, message.clone()).await;
                    let Some(status) = status else { continue };
                    // Other errors are about requests that were not looked at.
                    let is_of_updates = kind == Kind::Write && status.code() == Code::Unknown;
                    if !is_of_updates || (self.is_refused)(&message, &status) {
                        let by = format!("a refused {} ({status:?})", kind.method());
                        known = Some(self.unchanged(&before, &by).await);
                    }
                }
                Kind::Read | Kind::GetPipeline | Kind::Capabilities => {
                    let before = known.take();
                    self.call(kind, message).await;
                    if let Some(before) = before {
                        known = Some(self.unchanged(&before, kind.method()).await);
                    }
                }
            }
        }
        let (found, status) = self.call(Kind::GetPipeline, Vec::new()).await;
        assert!(!found.is_empty() || status.is_some(), "the server does not go on");
    }
}

/// What is told of each update, as the protocol says it.
pub(super) fn errors<E: Message + Default>(status: &Status) -> Vec<E> {
    let details = rpc::Status::decode(status.details()).unwrap_or_default().details;
    let error = |d: &Any| E::decode(d.value.as_slice()).unwrap_or_default();
    details.iter().map(error).collect()
}

/// The entities of an answer, for people.
pub(super) fn entities<A: Message + Default, E: Debug>(answer: &[u8], of: impl Fn(A) -> Vec<E>) -> Vec<String> {
    match A::decode(answer) {
        Ok(answer) => of(answer).iter().map(|e| format!("{e:?}")).collect(),
        Err(_) => vec![String::from_utf8_lossy(answer).into_owned()],
    }
}

/// Lets the tasks of streams do what they were told: all tasks are on this thread, and each turn
/// lets every one go on.
async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

/// Panics of this process so far, also those of tasks, which end silently.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Runs a script on a server that is made for it.
///
/// # Panics
/// The server has met what must not be.
pub(super) fn run(script: &[u8], server: impl FnOnce() -> Server) {
    static COUNTED: Once = Once::new();
    COUNTED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            before(info);
        }));
    });
    let panics = PANICS.load(Ordering::SeqCst);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        let server = server();
        server.run(script).await;
    });
    drop(runtime);
    assert_eq!(
        PANICS.load(Ordering::SeqCst),
        panics,
        "a task of the server has panicked"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_as_it_was_written_also_where_it_is_cut() {
        let mut script = Vec::new();
        push(&mut script, Kind::Write, b"abc");
        push(&mut script, Kind::Say(2), b"");
        push(&mut script, Kind::Close(1), b"xyz");
        let written = [
            (Kind::Write, b"abc".to_vec()),
            (Kind::Say(2), Vec::new()),
            (Kind::Close(1), b"xyz".to_vec()),
        ];
        assert_eq!(steps(&script), written);
        script.pop();
        assert_eq!(steps(&script)[2].1, b"xy");
    }
}
