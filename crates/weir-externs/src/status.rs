//! What an extern reports to the program that called it.

/// Defines the enum and the table of its members from one list.
macro_rules! statuses {
    ($($(#[doc = $doc:literal])+ $member:ident = $code:literal, $name:literal;)+) => {
        /// The result of a call, as the program sees it: `extern_status_t` of `weir/externs.p4`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Status {
            $($(#[doc = $doc])+ $member = $code,)+
        }

        impl Status {
            /// All of them, in the order of their codes.
            pub const ALL: &[Status] = &[$(Status::$member),+];

            /// The name in `weir/externs.p4`.
            #[must_use]
            pub fn p4_name(self) -> &'static str {
                match self {
                    $(Status::$member => $name,)+
                }
            }
        }
    };
}

statuses! {
    /// The call did its work.
    Ok = 0, "OK";
    /// The key is not set, or the instance has no key of this number.
    NoKey = 1, "NO_KEY";
    /// The tag does not match: the packet was changed, or sealed with another key or nonce.
    Authentication = 2, "AUTHENTICATION";
    /// The payload cannot grow as far as it would have to.
    NoRoom = 3, "NO_ROOM";
    /// The payload is not of the expected format.
    Malformed = 4, "MALFORMED";
    /// The sequence number was seen before, or lies before the anti-replay window.
    Replayed = 5, "REPLAYED";
    /// All sequence numbers are used up.
    Exhausted = 6, "EXHAUSTED";
    /// The payload would not become smaller.
    Incompressible = 7, "INCOMPRESSIBLE";
    /// An argument is out of its range.
    OutOfRange = 8, "OUT_OF_RANGE";
    /// The extern lacks a resource, such as memory or a device.
    Unavailable = 9, "UNAVAILABLE";
}

impl Status {
    /// The number that the program sees.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }
}
