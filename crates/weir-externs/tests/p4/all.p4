// Every extern of weir/externs.p4, called as programs do.

#include <core.p4>
#include <weir/externs.p4>

header esp_t {
    bit<32> spi;
    bit<32> sequence;
    bit<64> iv;
}

header tag_t {
    bit<4>   version;
    bit<12>  length;
    bit<256> tag;
}

struct headers_t {
    esp_t esp;
    tag_t tag;
}

struct pair_t {
    bit<16> a;
    bit<8>  b;
}

control All(inout headers_t hdr, inout bit<8> result) {
    payload_resize() payload;
    payload_read() bytes;
    aes_gcm(16) gcm;
    chacha20_poly1305(4) chacha;
    aes_cbc_hmac(4) cbc;
    esp_gcm(1024) esp;
    replay_window(1024) window;
    sequence(1024) numbers;
    hmac_sha256(2) hmac;
    siphash(1) cookies;

    extern_status_t status = extern_status_t.OK;
    bit<32> length;
    bit<8> next_header = 41;
    bit<64> cookie;

    action seal(bit<32> key) {
        gcm.seal(payload, key, 32w0 ++ hdr.esp.iv, { hdr.esp.spi, hdr.esp.sequence }, status);
    }

    apply {
        seal(3);
        gcm.open(payload, 3, 32w0 ++ hdr.esp.iv, hdr.esp, status);
        chacha.seal(payload, 0, 96w7, (pair_t) { a = 1, b = 2 }, status);
        chacha.open(payload, 0, 96w7, hdr.esp.spi, status);
        cbc.seal(payload, 0, 128w7, hdr, status);
        cbc.open(payload, 0, 128w7, hdr.esp.spi, status);
        cbc.seal_esp(payload, 0, hdr.esp.spi, hdr.esp.sequence, 128w7, 8w41, status);
        cbc.open_esp(payload, 0, hdr.esp.spi, hdr.esp.sequence, 128w7, next_header, status);

        numbers.next(hdr.esp.spi & 1023, hdr.esp.sequence, status);
        if (status == extern_status_t.OK) {
            esp.seal(payload, 5, hdr.esp.spi, hdr.esp.sequence, hdr.esp.iv, next_header, status);
        }
        window.check(5, hdr.esp.sequence, status);
        esp.open(payload, 5, hdr.esp.spi, hdr.esp.sequence, hdr.esp.iv, next_header, status);
        window.commit(5, hdr.esp.sequence, status);

        hmac.compute(0, hdr.tag.version ++ hdr.tag.length, hdr.tag.tag, status);
        hmac.compute_payload(bytes, 1, hdr.tag.tag, status);
        cookies.compute(0, { hdr.esp.spi, hdr.esp.sequence }, cookie, status);
        cookies.compute_payload(bytes, 0, cookie, status);

        lz4_compress(payload, length, status);
        lz4_decompress(payload, length, status);
        zstd_compress(payload, 3, length, status);
        zstd_decompress(payload, length, status);
        busy_cycles(500);
        switch (status) {
            extern_status_t.OK: { result = 0; }
            extern_status_t.REPLAYED: { result = 1; }
            default: { result = (bit<8>) status; }
        }
        result = result ^ cookie[7:0];
    }
}
