// Answers a packet, at the port where it came in, with the SipHash of what follows its first byte,
// which is the number of the key; with the status of the hash, and the next sequence number of
// the association of the same number.
#include <core.p4>
#include <v1model.p4>
#include <weir/externs.p4>

header question_t { bit<8> key; }
header answer_t { bit<8> status; bit<64> hash; bit<32> number; }
struct headers { question_t question; answer_t answer; }
struct meta { }

parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t s) {
    state start { p.extract(h.question); transition accept; }
}
control V(inout headers h, inout meta m) { apply { } }
control I(inout headers h, inout meta m, inout standard_metadata_t s) {
    siphash(4) tags;
    aes_gcm(2) ciphers;
    sequence(4) numbers;
    @hidden siphash(1) unseen;
    payload_read() data;
    payload_resize() text;
    extern_status_t status;
    extern_status_t other;
    apply {
        s.egress_spec = s.ingress_port;
        h.answer.setValid();
        tags.compute_payload(data, (bit<32>)h.question.key, h.answer.hash, status);
        numbers.next((bit<32>)h.question.key, h.answer.number, other);
        if (h.question.key == 255) {
            ciphers.seal(text, 0, 96w0, { h.question.key }, status);
            unseen.compute_payload(data, 0, h.answer.hash, other);
        }
        h.answer.status = (bit<8>)status;
        h.question.setInvalid();
        payload_truncate(text, 0);
    }
}
control E(inout headers h, inout meta m, inout standard_metadata_t s) { apply { } }
control C(inout headers h, inout meta m) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h.answer); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
