//! How messages of the services travel.

use prost::Message;
use std::marker::PhantomData;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic_prost::ProstCodec;

/// Bytes of a buffer before the length of its message is known.
///
/// Most messages have some hundred bytes. Allocators keep blocks of up to 1 KiB at hand for each thread, not those of 8 KiB with which gRPC
/// begins by default; for a longer message a buffer grows once, to its size.
const BUFFER: usize = 960;

/// Bytes of a stream's messages that are collected before they are sent on: gRPC's default.
const YIELD: usize = 32 << 10;

/// How large buffers are, for codecs.
#[must_use]
pub fn settings() -> BufferSettings {
    BufferSettings::new(BUFFER, YIELD)
}

/// prost's messages, in buffers that are small at first.
pub type SmallBuffers<T, U> = Limited<T, U, { usize::MAX }>;

/// As [`SmallBuffers`], where a message that comes in has at most `MOST` bytes: for messages that become many times larger than
/// they are on the wire, and are small in earnest.
#[derive(Debug, Clone)]
pub struct Limited<T, U, const MOST: usize>(PhantomData<(T, U)>);

impl<T, U, const MOST: usize> Default for Limited<T, U, MOST> {
    fn default() -> Self {
        Limited(PhantomData)
    }
}

impl<T, U, const MOST: usize> Codec for Limited<T, U, MOST>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = Reserving<T>;
    type Decoder = LimitedDecoder<<ProstCodec<T, U> as Codec>::Decoder, MOST>;

    fn encoder(&mut self) -> Self::Encoder {
        Reserving(PhantomData)
    }

    fn decoder(&mut self) -> Self::Decoder {
        LimitedDecoder(ProstCodec::<T, U>::raw_decoder(settings()))
    }
}

/// Refuses long messages before they are read.
#[derive(Debug, Clone)]
pub struct LimitedDecoder<D, const MOST: usize>(D);

impl<D: Decoder<Error = Status>, const MOST: usize> Decoder for LimitedDecoder<D, MOST> {
    type Item = D::Item;
    type Error = Status;

    fn decode(&mut self, src: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Status> {
        let length = prost::bytes::Buf::remaining(src);
        match length > MOST {
            true => Err(Status::out_of_range(format!(
                "the message has {length} bytes; of this kind at most {} KiB are taken",
                MOST >> 10
            ))),
            false => self.0.decode(src),
        }
    }

    fn buffer_settings(&self) -> BufferSettings {
        self.0.buffer_settings()
    }
}

/// Encodes into a buffer that has been made large enough before: by itself prost has it grow step by step.
#[derive(Debug, Clone)]
pub struct Reserving<T>(PhantomData<T>);

impl<T: Message> Encoder for Reserving<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, item: T, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.reserve(item.encoded_len());
        item.encode(out).map_err(|e| Status::internal(e.to_string()))
    }

    fn buffer_settings(&self) -> BufferSettings {
        settings()
    }
}
