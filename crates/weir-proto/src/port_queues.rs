//! Queues of ports in the control protocols: names and numbers that are weir's own.
//!
//! By P4Runtime the queues of a port are an `ExternEntry` with a
//! [`PortQueues`](crate::weir::v1::PortQueues). P4Info does not list it, as it belongs to no
//! program. BF Runtime has tables of its own for rates: `tf1.tm.port.sched_cfg` and
//! `tf1.tm.port.sched_shaping`.

/// P4Runtime's id of the extern type: within `OTHER_EXTERNS_START` and `MAX` of P4Info's prefixes,
/// between those of [custom CRCs](crate::custom_crc) and [keys](crate::extern_keys).
pub const EXTERN_TYPE: u32 = 0x83;

/// The largest number of a port that fits an id.
pub const MAX_PORT: u32 = 0x00ff_ffff;

/// The type of the message in an `ExternEntry`.
pub const MESSAGE: &str = "weir.v1.PortQueues";

/// How an `Any` names that type.
pub const TYPE_URL: &str = "type.googleapis.com/weir.v1.PortQueues";

/// The extern_id of a port's queues; `None`: the number does not fit.
#[must_use]
pub fn extern_id(port: u32) -> Option<u32> {
    (port <= MAX_PORT).then_some(EXTERN_TYPE << 24 | port)
}

/// The port of an extern_id; `None`: it is an id of something else.
#[must_use]
pub fn port(extern_id: u32) -> Option<u32> {
    (extern_id >> 24 == EXTERN_TYPE).then_some(extern_id & MAX_PORT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_have_ids_of_the_type() {
        assert_eq!(extern_id(2).map(|id| (id, port(id))), Some((0x8300_0002, Some(2))));
        assert_eq!((extern_id(MAX_PORT + 1), port(0x8200_0001)), (None, None));
    }
}
