//! Nothing but tests: the BF Runtime server of weir, driven by the unmodified `rbfrt` crate. It is
//! a crate of its own so that nothing else depends on what rbfrt depends on.
#![forbid(unsafe_code)]
