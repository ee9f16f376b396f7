//! The wire messages of P4Runtime and BF Runtime, from our own `.proto` files.
//!
//! [`p4::config::v1`] describes a compiled program (P4Info), [`p4::v1`] holds the requests,
//! responses and entities that a controller exchanges with a device. [`text`] reads and writes the
//! text form (`.txtpb`) of all of them; the binary form is [`prost::Message`]'s.
//!
//! [`bfrt_proto`] holds the messages of BF Runtime; [`bfrt_info`] describes programs for it, as
//! P4Info does for P4Runtime.
//!
//! The feature `client` adds the gRPC clients `p4_runtime_client` and `bf_runtime_client` beside
//! the messages; `server` adds the services, in [`p4rt_raw`] and [`bfrt_raw`]. Without them this
//! crate has no network code. It knows no program: the owner of the P4Info interprets the ids in a
//! message.
//!
//! ```
//! use weir_proto::p4::config::v1::{P4Info, PkgInfo};
//! use weir_proto::text;
//!
//! let info = P4Info {
//!     pkg_info: Some(PkgInfo { arch: "v1model".into(), ..PkgInfo::default() }),
//!     ..P4Info::default()
//! };
//! let written = text::to_text(&info);
//! assert_eq!(written, "pkg_info {\n  arch: \"v1model\"\n}\n");
//! assert_eq!(text::from_text::<P4Info>(&written), Ok(info));
//! ```
#![forbid(unsafe_code)]

pub mod backwards;
pub mod bfrt_info;
pub mod bfrt_raw;
pub mod budget;
#[cfg(any(feature = "client", feature = "server"))]
pub mod codec;
pub mod custom_crc;
pub mod extern_keys;
pub mod listed;
pub mod p4rt_raw;
pub mod port_queues;
pub mod text;

use prost_reflect::DescriptorPool;
use std::sync::LazyLock;

pub use prost;
pub use prost_types;

/// Descriptors of weir's `.proto` files.
static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    let bytes = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
    DescriptorPool::decode(bytes.as_slice()).expect("the build script wrote these descriptors")
});

/// Messages of the P4 language consortium.
pub mod p4 {
    /// Descriptions of programs.
    pub mod config {
        /// Version 1 of P4Info.
        #[allow(missing_docs, clippy::all, clippy::pedantic)]
        pub mod v1 {
            include!(concat!(env!("OUT_DIR"), "/p4.config.v1.rs"));
        }
    }
    /// Version 1 of P4Runtime, with its service if a feature enables it.
    #[allow(missing_docs, unused_qualifications, clippy::all, clippy::pedantic)]
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/p4.v1.rs"));
    }
}

/// BF Runtime, with its service if a feature enables it. Byte strings are [`prost::bytes::Bytes`].
#[allow(missing_docs, unused_qualifications, deprecated, clippy::all, clippy::pedantic)]
pub mod bfrt_proto {
    include!(concat!(env!("OUT_DIR"), "/bfrt_proto.rs"));
}

/// weir's own messages, for extensions that P4Runtime leaves open.
pub mod weir {
    /// Version 1.
    #[allow(missing_docs, clippy::all, clippy::pedantic)]
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/weir.v1.rs"));
    }
}

/// Messages of Google that P4Runtime uses.
pub mod google {
    /// The status of a request.
    #[allow(missing_docs, clippy::all, clippy::pedantic)]
    pub mod rpc {
        include!(concat!(env!("OUT_DIR"), "/google.rpc.rs"));
    }
}
