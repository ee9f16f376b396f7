//! How messages of the services travel.

use prost::Message;
use std::marker::PhantomData;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::ProstCodec;

/// Bytes of a buffer before the length of its message is known.
///
/// Most messages have some hundred bytes. Allocators keep blocks of up to 1 KiB at hand for each thread, not those of 8 KiB with which gRPC
/// begins by default; for a longer message a buffer grows once, to its size.
const BUFFER: usize = 960;

/// Bytes after which a stream of messages lets others run: gRPC's default.
const YIELD: usize = 32 << 10;

/// How large buffers are, for codecs.
#[must_use]
pub fn settings() -> BufferSettings {
    BufferSettings::new(BUFFER, YIELD)
}

/// [`ProstCodec`] with buffers that are small at first.
#[derive(Debug, Clone)]
pub struct SmallBuffers<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for SmallBuffers<T, U> {
    fn default() -> Self {
        SmallBuffers(PhantomData)
    }
}

impl<T, U> Codec for SmallBuffers<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = <ProstCodec<T, U> as Codec>::Encoder;
    type Decoder = <ProstCodec<T, U> as Codec>::Decoder;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::raw_encoder(settings())
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<T, U>::raw_decoder(settings())
    }
}
