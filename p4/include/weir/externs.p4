// The externs that come with weir, besides those of an architecture. Usable with every
// architecture; include this file after the architecture's.
//
// Common to all of them:
// - A call that cannot do its work leaves the payload unchanged, sets its other results to 0, and
//   says why in `status`. It never drops the packet: programs look at the status.
// - Where a parameter has a type of the program (`in A aad`, `in T data`), its fields are taken in
//   order, without what is between them: each number most significant byte first, in whole bytes
//   (a bit<12> is 2 bytes, the first 4 bits 0). A header is a byte that is 1 if it is valid, and
//   then its fields; to cover the bytes of a header as they are in the packet, pass its fields
//   concatenated: `hdr.ip.version ++ hdr.ip.ihl ++ …`, or a tuple of fields of whole bytes.
// - Keys are set by the control plane, as bytes in the order of the algorithm's specification. An
//   empty key removes a key. No control plane and no program can read them. A constructor's
//   `keys` is their number, from 1 to 1,048,576; they are numbered from 0.
// - `@keys("PARAMETER")` at an extern type names the constructor parameter that is the number of
//   keys. P4Info and bfrt.json list the instances of such types.

#ifndef WEIR_EXTERNS_P4
#define WEIR_EXTERNS_P4

#include <core.p4>

// ------------------------------------------------------------------------------------ the payload
//
// An instance of one of these types, in a control, stands for the payload: the bytes of the packet
// behind the headers that the parser extracted. Passed to an extern, its type says what the extern
// may do with them.

// The extern reads the bytes.
extern payload_read {
    payload_read();
}

// The extern reads the bytes and changes them in place.
extern payload_write {
    payload_write();
}

// The extern reads and changes the bytes, and may append or remove bytes at the end.
extern payload_resize {
    payload_resize();
}

// ------------------------------------------------------------------------------------ the results

enum bit<8> extern_status_t {
    OK             = 8w0,  // the call did its work
    NO_KEY         = 8w1,  // the key is not set, or there is none of this number
    AUTHENTICATION = 8w2,  // the tag does not match: changed, or another key, nonce or aad
    NO_ROOM        = 8w3,  // the payload would become longer than its buffer allows
    MALFORMED      = 8w4,  // the payload is too short, or not of the expected format
    REPLAYED       = 8w5,  // the sequence number was seen, or is too old
    EXHAUSTED      = 8w6,  // all sequence numbers are used up
    INCOMPRESSIBLE = 8w7,  // the payload would not become shorter
    OUT_OF_RANGE   = 8w8,  // an argument is out of its range
    UNAVAILABLE    = 8w9   // no memory, or no device
}

// --------------------------------------------------------------------- authenticated encryption

// AES in Galois/Counter Mode (NIST SP 800-38D). Keys of 16 bytes are AES-128, of 32 AES-256.
//
// seal encrypts the payload in place and appends the tag of 16 bytes, which covers `aad` and the
// ciphertext. A nonce (12 bytes, most significant first) must never be used twice with a key: two
// packets with one nonce reveal enough to forge others. NO_KEY, NO_ROOM.
//
// open verifies the tag in the last 16 bytes, decrypts the others in place, and removes the tag.
// NO_KEY, AUTHENTICATION, MALFORMED (shorter than a tag).
@keys("keys")
extern aes_gcm {
    aes_gcm(bit<32> keys);
    void seal<A>(payload_resize p, in bit<32> key, in bit<96> nonce, in A aad, out extern_status_t status);
    void open<A>(payload_resize p, in bit<32> key, in bit<96> nonce, in A aad, out extern_status_t status);
}

// ChaCha20 and Poly1305 (RFC 8439). Keys of 32 bytes. Otherwise as aes_gcm.
@keys("keys")
extern chacha20_poly1305 {
    chacha20_poly1305(bit<32> keys);
    void seal<A>(payload_resize p, in bit<32> key, in bit<96> nonce, in A aad, out extern_status_t status);
    void open<A>(payload_resize p, in bit<32> key, in bit<96> nonce, in A aad, out extern_status_t status);
}

// AES in CBC mode, then HMAC-SHA-256 over the ciphertext, cut to 16 bytes (RFC 3602, RFC 4868).
// Keys of 48 or 64 bytes: the AES key of 16 or 32, then the HMAC key of 32.
//
// seal pads the payload to whole blocks of 16 bytes (1 to 16 bytes, each their number: RFC 5652,
// 6.3), encrypts it in place, and appends the tag of 16 bytes, which covers `aad`, `iv` and the
// ciphertext, in this order. An IV must not be predictable. NO_KEY, NO_ROOM.
//
// open verifies the tag, decrypts, and removes padding and tag. NO_KEY, AUTHENTICATION, MALFORMED
// (no whole number of blocks, or wrong padding behind a right tag).
//
// seal_esp and open_esp do so with the trailer of ESP for padding, and `spi`, `sequence` for `aad`,
// 4 bytes each: see esp_gcm.
@keys("keys")
extern aes_cbc_hmac {
    aes_cbc_hmac(bit<32> keys);
    void seal<A>(payload_resize p, in bit<32> key, in bit<128> iv, in A aad, out extern_status_t status);
    void open<A>(payload_resize p, in bit<32> key, in bit<128> iv, in A aad, out extern_status_t status);
    void seal_esp(payload_resize p, in bit<32> key, in bit<32> spi, in bit<32> sequence, in bit<128> iv,
                  in bit<8> next_header, out extern_status_t status);
    void open_esp(payload_resize p, in bit<32> key, in bit<32> spi, in bit<32> sequence, in bit<128> iv,
                  out bit<8> next_header, out extern_status_t status);
}

// ------------------------------------------------------------------------------------------ IPsec

// The Encapsulating Security Payload with AES-GCM and a tag of 16 bytes (RFC 4303, RFC 4106), with
// 32-bit sequence numbers. Keys of 20 or 36 bytes: the AES key of 16 or 32, then the salt of 4.
//
// The ESP header and the IV are headers of the program, in front of the payload.
//
// seal appends the trailer (padding 1, 2, 3, … to a multiple of 4 bytes, the pad length, next
// header), encrypts payload and trailer in place, and appends the tag, which also covers `spi` and
// `sequence`. The nonce is the salt and `iv`; an IV must never be used twice with a key. NO_KEY,
// NO_ROOM.
//
// open verifies the tag, decrypts, checks and removes the trailer, and returns its next header.
// NO_KEY, AUTHENTICATION, MALFORMED (shorter than a tag, or a wrong trailer behind a right tag).
@keys("keys")
extern esp_gcm {
    esp_gcm(bit<32> keys);
    void seal(payload_resize p, in bit<32> key, in bit<32> spi, in bit<32> sequence, in bit<64> iv,
              in bit<8> next_header, out extern_status_t status);
    void open(payload_resize p, in bit<32> key, in bit<32> spi, in bit<32> sequence, in bit<64> iv,
              out bit<8> next_header, out extern_status_t status);
}

// Anti-replay windows of 64 numbers (RFC 4303, 3.4.3), one per association.
//
// check says whether a packet with this number may be accepted; commit does so and marks the
// number. Call check before the packet is opened, and commit once it proved authentic. Only one
// commit of a number succeeds, whatever threads packets are on. REPLAYED (also for number 0, with
// which no association begins), OUT_OF_RANGE (there is no such association).
//
// The control plane resets an association, when it sets a new key for it, by removing the "key" of
// this number of this instance; other keys it does not have.
@keys("associations")
extern replay_window {
    replay_window(bit<32> associations);
    void check(in bit<32> association, in bit<32> sequence, out extern_status_t status);
    void commit(in bit<32> association, in bit<32> sequence, out extern_status_t status);
}

// Sequence numbers of associations: 1, 2, 3, … Each number is returned once, whatever threads
// packets are on. After 0xffffffff follows none (EXHAUSTED) until the control plane resets the
// association as for replay_window. OUT_OF_RANGE: there is no such association.
@keys("associations")
extern sequence {
    sequence(bit<32> associations);
    void next(in bit<32> association, out bit<32> number, out extern_status_t status);
}

// ---------------------------------------------------------------------------------- authentication

// HMAC-SHA-256 (RFC 2104, RFC 4231), over fields or over the payload. Keys of 1 to 1024 bytes. The
// first byte of the tag is the most significant of the number; a shorter tag is its first bits:
// `tag[255:128]`. NO_KEY.
@keys("keys")
extern hmac_sha256 {
    hmac_sha256(bit<32> keys);
    void compute<T>(in bit<32> key, in T data, out bit<256> tag, out extern_status_t status);
    void compute_payload(payload_read p, in bit<32> key, out bit<256> tag, out extern_status_t status);
}

// SipHash-2-4 (Aumasson and Bernstein, 2012), over fields or over the payload: a keyed hash, for
// cookies and for tables that attackers must not fill, not for long-lived signatures. Keys of 16
// bytes. The number is that of the paper; implementations that return bytes return its least
// significant byte first. NO_KEY.
@keys("keys")
extern siphash {
    siphash(bit<32> keys);
    void compute<T>(in bit<32> key, in T data, out bit<64> hash, out extern_status_t status);
    void compute_payload(payload_read p, in bit<32> key, out bit<64> hash, out extern_status_t status);
}

// ------------------------------------------------------------------------------------- compression
//
// Compression changes the payload only if it becomes shorter: INCOMPRESSIBLE otherwise. The length
// before is in `original_length`, also then; decompression needs it, so a header must carry it. It
// is at most 65535 bytes: OUT_OF_RANGE. So no packet expands to more than that.
//
// Decompression: MALFORMED (not of the format, or another length than `original_length`), NO_ROOM.
// UNAVAILABLE (zstd only): no memory for the state that a thread keeps.

// A block of the LZ4 format, without a frame.
extern void lz4_compress(payload_resize p, out bit<32> original_length, out extern_status_t status);
extern void lz4_decompress(payload_resize p, in bit<32> original_length, out extern_status_t status);

// A frame of Zstandard (RFC 8878). Levels 1 (fast) to 19 (small): OUT_OF_RANGE. A constant level is
// faster than one that changes from packet to packet.
extern void zstd_compress(payload_resize p, in bit<8> level, out bit<32> original_length,
                          out extern_status_t status);
extern void zstd_decompress(payload_resize p, in bit<32> original_length, out extern_status_t status);

// --------------------------------------------------------------------------------------- inference
//
// These need a weir that is built with `--features onnx`.

// An ONNX model: a feed-forward network that gives each of 1 to 256 classes a score for features of
// the packet. `file` is its path, below the folder of the program. A model that is missing, damaged
// or of another form is an error when the program is loaded.
//
// The input of the model is a tensor of float, of the shape [n] or [1, n] with n from 1 to 256; an
// open first dimension is 1. It gets the fields of `features` in order, each of at most 64 bits,
// as the unsigned number that the field is: whatever scaling there is, is part of the model. A field
// in fixed point with f bits behind the point arrives multiplied by 2^f. Fields of more than 24
// significant bits are rounded to the nearest float.
//
// The output is a tensor of float with a score per class, usually that of Softmax. A single score,
// usually that of Sigmoid, is the score of class 1, and class 0 has the rest to 1.
//
// classify returns the class with the greatest score (the first of several), and this score.
// score returns the score of one class. Scores are in units of 1/65536, rounded, from 0 to 65535;
// others count as the nearest of these. OUT_OF_RANGE (there is no such class, or a score is not a
// number), UNAVAILABLE (the model cannot be executed, for example for lack of memory).
//
// The same features have the same result on every call; on another model of processor the last
// digits of a score may differ, because sums are computed in another order.
extern onnx_model {
    onnx_model(string file);
    void classify<T>(in T features, out bit<8> class, out bit<16> score, out extern_status_t status);
    void score<T>(in T features, in bit<8> class, out bit<16> score, out extern_status_t status);
}

// ---------------------------------------------------------------------------- the payload's length

// The bytes of the payload.
extern void payload_length(payload_read p, out bit<32> bytes);

// Removes what is behind the first `bytes` bytes of the payload, such as the padding of a short
// Ethernet frame. A payload that is not longer stays as it is.
extern void payload_truncate(payload_resize p, in bit<32> bytes);

// ------------------------------------------------------------------------------------- experiments

// Takes about this number of cycles of the time-stamp counter, and has no effect: a stand-in for an
// extern of known cost. The most is 1,000,000,000; more count as these. It executes a chain of
// dependent instructions, whose speed is measured when the program is loaded: within about 5 %
// while the core's clock is as it was then.
extern void busy_cycles(in bit<32> cycles);

#endif
