//! Keys of externs in the control protocols: names and numbers that are weir's own.
//!
//! By P4Runtime a key is an `ExternEntry` with an [`ExternKey`](crate::weir::v1::ExternKey). By BF
//! Runtime each instance has a table whose key is the number, with the key as data. Both write
//! keys; neither reads them back.

use std::ops::RangeInclusive;

/// P4Runtime's ids of extern types with keys: within `OTHER_EXTERNS_START` and `MAX` of P4Info's
/// prefixes, above those of [custom CRCs](crate::custom_crc).
pub const EXTERN_TYPES: RangeInclusive<u8> = 0x90..=0xfe;

/// The type of the message in an `ExternEntry`.
pub const MESSAGE: &str = "weir.v1.ExternKey";

/// How an `Any` names that type.
pub const TYPE_URL: &str = "type.googleapis.com/weir.v1.ExternKey";

/// The most bytes of a key.
pub const MAX_KEY_BYTES: usize = 1024;

/// The type of BF Runtime's tables.
pub const TABLE_TYPE: &str = "ExternKeys";

/// The key of the tables: the number of the extern's key.
pub const INDEX: &str = "$KEY_INDEX";
/// Its id.
pub const INDEX_ID: u32 = 0x1_1001;
/// The data field that sets a key. It is written only.
pub const KEY: &str = "$KEY";
/// Its id.
pub const KEY_ID: u32 = 0x1_1002;
/// The data field that says that a key is set. It is read only.
pub const IS_SET: &str = "$IS_SET";
/// Its id.
pub const IS_SET_ID: u32 = 0x1_1003;
