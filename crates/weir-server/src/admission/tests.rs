use super::*;
use std::future::poll_fn;
use tokio::sync::mpsc;
use tonic::Code;

const LIMITS: MessageLimits = MessageLimits {
    max_message_bytes: 100_000,
    budget_bytes: 150_000,
    rate_window: Duration::from_secs(30),
};

/// A body whose pieces the test sends.
struct Pieces(mpsc::UnboundedReceiver<Vec<u8>>);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Status>>> {
        let piece = ready!(self.0.poll_recv(context));
        Poll::Ready(piece.map(|bytes| Ok(http_body::Frame::data(bytes.into()))))
    }
}

/// A request in progress.
struct Call {
    send: mpsc::UnboundedSender<Vec<u8>>,
    body: MeteredBody,
}

impl Call {
    /// Sends the next piece and polls the body.
    async fn piece(&mut self, bytes: Vec<u8>) -> Result<(), Code> {
        self.send.send(bytes).expect("is received");
        self.next().await
    }

    async fn next(&mut self) -> Result<(), Code> {
        let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await;
        frame.map_or(Ok(()), |frame| frame.map(|_| ()).map_err(|status| status.code()))
    }
}

/// A request on a new connection.
fn call(layer: &AdmissionLayer, is_stream: bool) -> Call {
    call_of(&Peer::new(), layer, is_stream)
}

fn call_of(peer: &Arc<Peer>, layer: &AdmissionLayer, is_stream: bool) -> Call {
    let (send, pieces) = mpsc::unbounded_channel();
    let request_charge = RequestCharge::new(&layer.budget, Arc::clone(peer));
    let body = MeteredBody::new(Body::new(Pieces(pieces)), request_charge, layer.limits, is_stream);
    Call { send, body }
}

fn free(layer: &AdmissionLayer) -> usize {
    layer.budget.total_bytes - lock(&layer.budget.charged).sum()
}

/// The header of a message.
fn claim(bytes: u32) -> Vec<u8> {
    [&[0][..], &bytes.to_be_bytes()].concat()
}

/// A complete message.
fn whole(bytes: usize) -> Vec<u8> {
    let mut message = claim(bytes as u32);
    message.resize(HEADER_BYTES + bytes, 7);
    message
}

#[tokio::test]
async fn a_claimed_length_is_charged_until_the_request_ends() {
    let layer = AdmissionLayer::new(LIMITS);
    let (mut one, mut two) = (call(&layer, false), call(&layer, false));
    assert_eq!(one.piece(claim(100_000)).await, Ok(()));
    assert_eq!(free(&layer), 50_000);
    assert_eq!(two.piece(claim(50_001)).await, Err(Code::ResourceExhausted));
    // A short message that has arrived completely is not charged.
    assert_eq!(call(&layer, false).piece(whole(1000)).await, Ok(()));
    assert_eq!(free(&layer), 50_000);
    assert_eq!(call(&layer, false).piece(whole(MIN_CHARGED_BYTES)).await, Ok(()));
    drop(one);
    assert_eq!(free(&layer), 150_000);
    // The transport refuses messages that are too long for it.
    assert_eq!(call(&layer, false).piece(claim(100_001)).await, Ok(()));
    assert_eq!(free(&layer), 150_000);
}

#[tokio::test]
async fn work_that_outlives_its_client_keeps_the_charge() {
    let layer = AdmissionLayer::new(LIMITS);
    let mut call = call(&layer, false);
    assert_eq!(call.piece(whole(100_000)).await, Ok(()));
    let permit = BudgetPermit(Arc::clone(&call.body.request_charge));
    let (done, is_done) = tokio::sync::oneshot::channel::<()>();
    let work = tokio::spawn(run_then_release(Some(permit), is_done));
    drop(call);
    assert_eq!(free(&layer), 50_000);
    done.send(()).expect("still runs");
    work.await.expect("ends").expect("is sent");
    assert_eq!(free(&layer), 150_000);
}

#[tokio::test]
async fn the_longest_message_is_possible_whatever_the_budget_is() {
    let layer = AdmissionLayer::new(MessageLimits {
        budget_bytes: 9,
        ..LIMITS
    });
    assert_eq!(call(&layer, false).piece(claim(100_000)).await, Ok(()));
}

#[tokio::test]
async fn headers_may_come_byte_by_byte_and_messages_together() {
    let layer = AdmissionLayer::new(LIMITS);
    let mut stream = call(&layer, true);
    for byte in claim(30_000) {
        assert_eq!(stream.piece(vec![byte]).await, Ok(()));
    }
    assert_eq!(free(&layer), 120_000);
    // The rest, a short message, and the first bytes of another one. Only the last is still charged
    // when the next bytes are polled.
    let bytes = [vec![7; 30_000], whole(0), whole(9), claim(7000), vec![7; 6999]].concat();
    assert_eq!(stream.piece(bytes).await, Ok(()));
    assert_eq!(free(&layer), 113_000);
    assert_eq!(stream.piece(vec![7]).await, Ok(()));
    assert_eq!(free(&layer), 143_000);
    assert_eq!(stream.piece(whole(9)).await, Ok(()));
    assert_eq!(free(&layer), 150_000);
}

#[tokio::test]
async fn a_request_that_is_one_message_is_no_two() {
    let layer = AdmissionLayer::new(LIMITS);
    let mut call = call(&layer, false);
    assert_eq!(call.piece(whole(20_000)).await, Ok(()));
    assert_eq!(call.piece(whole(20_000)).await, Err(Code::Unimplemented));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_too_slowly_loses_its_request() {
    let layer = AdmissionLayer::new(MessageLimits {
        max_message_bytes: 1 << 30,
        budget_bytes: 1 << 30,
        ..LIMITS
    });
    // Nothing; part of a header; a header without message; a message without end of the request.
    for sent in [vec![], vec![0, 0], claim(1 << 20), whole(1 << 20)] {
        let mut call = call(&layer, false);
        if !sent.is_empty() {
            assert_eq!(call.piece(sent).await, Ok(()));
        }
        assert_eq!(call.next().await, Err(Code::DeadlineExceeded));
    }
    assert_eq!(free(&layer), 1 << 30);
    // A byte now and then is not enough, 30 MiB are.
    for (bytes, enough) in [(1, false), (30 << 20, true)] {
        let mut call = call(&layer, false);
        assert_eq!(call.piece(claim(1 << 30)).await, Ok(()));
        let send = call.send.clone();
        tokio::spawn(async move {
            for _ in 0..4 {
                sleep(Duration::from_secs(29)).await;
                let _ = send.send(vec![7; bytes]);
            }
        });
        let mut heard = 0;
        while call.next().await.is_ok() {
            heard += 1;
        }
        assert_eq!(heard == 4, enough, "{heard} pieces of {bytes} bytes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_bytes_keeps_others_out_for_one_interval() {
    let layer = AdmissionLayer::new(LIMITS);
    let mut claimed = call(&layer, false);
    assert_eq!(claimed.piece(claim(100_000)).await, Ok(()));
    let two_intervals = Duration::from_secs(2);
    assert!(tokio::time::timeout(two_intervals, claimed.next()).await.is_err());
    // No other request was refused until now.
    assert_eq!(
        call(&layer, false).piece(claim(100_000)).await,
        Err(Code::ResourceExhausted)
    );
    let lost = tokio::time::timeout(two_intervals, claimed.next()).await;
    assert_eq!(lost, Ok(Err(Code::DeadlineExceeded)));
    drop(claimed);
    assert_eq!(call(&layer, false).piece(claim(100_000)).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_stream_may_be_silent_between_messages_only() {
    let layer = AdmissionLayer::new(LIMITS);
    let mut stream = call(&layer, true);
    assert_eq!(stream.piece(whole(9)).await, Ok(()));
    let hour = Duration::from_secs(3600);
    assert!(tokio::time::timeout(hour, stream.next()).await.is_err());
    assert_eq!(stream.piece(claim(9)).await, Ok(()));
    assert_eq!(stream.next().await, Err(Code::DeadlineExceeded));
}

const MIB: u32 = 1 << 20;

/// The ratios of BF Runtime's limits, in MiB instead of GiB.
fn large() -> AdmissionLayer {
    AdmissionLayer::new(MessageLimits {
        max_message_bytes: 64 * MIB as usize,
        budget_bytes: 128 * MIB as usize,
        ..LIMITS
    })
}

#[tokio::test]
async fn a_connection_has_a_quarter_of_the_budget_or_one_message_of_any_length() {
    let layer = large();
    let peer = Peer::new();
    let of_peer = || call_of(&peer, &layer, false);
    let mut longest = of_peer();
    assert_eq!(longest.piece(claim(64 * MIB)).await, Ok(()));
    assert_eq!(of_peer().piece(claim(MIB)).await, Err(Code::ResourceExhausted));
    // It was refused by its quota, not for lack of budget: no other message blocks it.
    assert_eq!(layer.budget.refusals(), 0);
    // Small messages have a quota of their own.
    assert_eq!(of_peer().piece(claim(MIB - 1)).await, Ok(()));
    assert_eq!(call(&layer, false).piece(claim(MIB)).await, Ok(()));
    drop(longest);
    let mut two = (of_peer(), of_peer());
    assert_eq!(two.0.piece(claim(31 * MIB)).await, Ok(()));
    assert_eq!(of_peer().piece(claim(2 * MIB)).await, Err(Code::ResourceExhausted));
    assert_eq!(two.1.piece(claim(MIB)).await, Ok(()));
    drop(two);
    assert_eq!(free(&layer), 128 * MIB as usize);
}

#[tokio::test]
async fn large_messages_leave_room_for_short_ones() {
    let layer = large();
    let mut claims: Vec<Call> = (0..3).map(|_| call(&layer, false)).collect();
    assert_eq!(claims[0].piece(claim(64 * MIB)).await, Ok(()));
    assert_eq!(claims[1].piece(claim(48 * MIB)).await, Ok(()));
    assert_eq!(claims[2].piece(claim(MIB)).await, Err(Code::ResourceExhausted));
    let mut short: Vec<Call> = (0..17).map(|_| call(&layer, false)).collect();
    for call in &mut short[..16] {
        assert_eq!(call.piece(claim(MIB - 1)).await, Ok(()));
    }
    assert_eq!(short[16].piece(claim(MIB - 1)).await, Err(Code::ResourceExhausted));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_blocks_others_must_arrive_in_time() {
    // At the rate that suffices if no other request is refused, and at the rate by which the whole
    // message arrives in time.
    for (bytes, enough) in [(MIB, false), (3 * MIB, true)] {
        let layer = large();
        let (mut one, mut two) = (call(&layer, false), call(&layer, false));
        assert_eq!(one.piece(claim(64 * MIB)).await, Ok(()));
        assert_eq!(two.piece(claim(48 * MIB)).await, Ok(()));
        let send = one.send.clone();
        tokio::spawn(async move {
            for _ in 0..9 {
                sleep(Duration::from_millis(900)).await;
                let _ = send.send(vec![7; bytes as usize]);
            }
        });
        let mut heard = 0;
        while heard < 9 && one.next().await.is_ok() {
            heard += 1;
            assert_eq!(
                call(&layer, false).piece(claim(MIB)).await,
                Err(Code::ResourceExhausted)
            );
        }
        assert_eq!(heard == 9, enough, "{heard} pieces of {bytes} bytes");
    }
}
