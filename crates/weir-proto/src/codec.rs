//! Codecs of the gRPC services: small buffers, and limits that are checked before a message is
//! decoded.

use crate::budget::{self, Excess};
use prost::bytes::Buf;
use prost::{Message, Name};
use std::marker::PhantomData;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Size of a buffer until the length of its message is known, in bytes.
///
/// Most messages have some hundred bytes. Allocators cache blocks of up to 1 KiB per thread, but
/// not the 8 KiB blocks with which gRPC starts by default. For a longer message the buffer grows
/// once, to its size.
const BUFFER: usize = 960;

/// Bytes of a stream's messages that are collected before they are sent: gRPC's default.
const YIELD: usize = 32 << 10;

/// Buffer sizes for codecs.
#[must_use]
pub fn settings() -> BufferSettings {
    BufferSettings::new(BUFFER, YIELD)
}

/// A limit for messages before they are decoded: some become many times larger in memory than on
/// the wire, and valid ones are small.
///
/// The message has been received as a whole by then; the service limits its length.
pub trait Limit<M>: Send + 'static {
    /// Checks an encoded message.
    ///
    /// # Errors
    /// The message exceeds the limit.
    fn check(message: &[u8]) -> Result<(), Status>;
}

/// No limit.
#[derive(Debug, Clone)]
pub struct Unlimited;

/// At most 16 MiB: Reads.
#[derive(Debug, Clone)]
pub struct Medium;

/// At most 4 MiB, the least that the P4Runtime specification requires, and at most 16,384 fields:
/// all requests without long lists.
#[derive(Debug, Clone)]
pub struct Short;

impl<M> Limit<M> for Unlimited {
    fn check(_: &[u8]) -> Result<(), Status> {
        Ok(())
    }
}

impl<M> Limit<M> for Medium {
    fn check(message: &[u8]) -> Result<(), Status> {
        check_length(message, 16 << 20)
    }
}

/// The most fields of a [`Short`] message.
const FIELDS: usize = 1 << 14;

impl<M: Name> Limit<M> for Short {
    fn check(message: &[u8]) -> Result<(), Status> {
        check_length(message, 4 << 20)?;
        match budget::fields::<M>(message, FIELDS) {
            Ok(_) => Ok(()),
            Err(Excess::Fields) => Err(Status::resource_exhausted(format!(
                "the message has more than {FIELDS} fields"
            ))),
            Err(Excess::Group) => Err(Status::invalid_argument(
                "the message has a group, which no message of the protocol has",
            )),
        }
    }
}

fn check_length(message: &[u8], most: usize) -> Result<(), Status> {
    match message.len() > most {
        true => Err(Status::out_of_range(format!(
            "the message has {} bytes; of this kind at most {} KiB are taken",
            message.len(),
            most >> 10
        ))),
        false => Ok(()),
    }
}

/// Codec for prost's messages, with buffers that are small initially.
pub type SmallBuffers<T, U> = Limited<T, U, Unlimited>;

/// As [`SmallBuffers`], with a limit for received messages.
#[derive(Debug, Clone)]
pub struct Limited<T, U, L>(PhantomData<(T, U, L)>);

impl<T, U, L> Default for Limited<T, U, L> {
    fn default() -> Self {
        Limited(PhantomData)
    }
}

impl<T, U, L> Codec for Limited<T, U, L>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
    L: Limit<U>,
{
    type Encode = T;
    type Decode = U;
    type Encoder = Reserving<T>;
    type Decoder = LimitedDecoder<U, L>;

    fn encoder(&mut self) -> Self::Encoder {
        Reserving(PhantomData)
    }

    fn decoder(&mut self) -> Self::Decoder {
        LimitedDecoder(PhantomData)
    }
}

/// Decodes messages within a limit.
#[derive(Debug, Clone)]
pub struct LimitedDecoder<U, L>(PhantomData<(U, L)>);

impl<U: Message + Default, L: Limit<U>> Decoder for LimitedDecoder<U, L> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, src: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        // The message is contiguous: nothing is copied.
        let message = src.copy_to_bytes(src.remaining());
        L::check(&message)?;
        let decoded = U::decode(message);
        decoded.map(Some).map_err(|e| Status::internal(e.to_string()))
    }

    fn buffer_settings(&self) -> BufferSettings {
        settings()
    }
}

/// Encodes into a buffer that is reserved first: by default, prost's encoder lets it grow step by
/// step.
#[derive(Debug, Clone)]
pub struct Reserving<T>(PhantomData<T>);

impl<T: Message> Encoder for Reserving<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, item: T, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.reserve(item.encoded_len());
        item.encode_raw(out);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        settings()
    }
}
