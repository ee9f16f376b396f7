/* The types of payload parameters of externs.
 *
 * The payload of a packet is what lies behind the headers that the parser has extracted. An
 * instance of one of these types in a control stands for it. Externs that access the payload have a
 * parameter of the type that says how. */

#ifndef WEIR_PAYLOAD_P4
#define WEIR_PAYLOAD_P4

/// The extern reads the payload.
extern payload_read {
    payload_read();
}

/// The extern changes bytes of the payload, and keeps their number.
extern payload_write {
    payload_write();
}

/// The extern may also append bytes to the payload, or remove some.
extern payload_resize {
    payload_resize();
}

#endif
