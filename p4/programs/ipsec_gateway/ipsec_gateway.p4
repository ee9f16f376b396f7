// A gateway of ESP tunnels: AES-GCM as in RFC 4106, tunnel mode of RFC 4303, IPv4 in IPv4. Packets
// into a tunnel are encrypted, those out of one are checked and decrypted. See README.md beside
// this file.
#include <core.p4>
#include <v1model.p4>
#include <weir/externs.p4>

typedef bit<48> MacAddress;
typedef bit<32> Ipv4Address;
typedef bit<9> Port;

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_IPV4 = 4;
const bit<8> PROTOCOL_ESP = 50;

// Keys and sequence numbers of this many associations in each direction.
const bit<32> ASSOCIATIONS = 4096;

header ethernet_t {
    MacAddress dst_addr;
    MacAddress src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> total_len;
    bit<16> identification;
    bit<3> flags;
    bit<13> frag_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    Ipv4Address src_addr;
    Ipv4Address dst_addr;
}

// What stands before the encrypted bytes: RFC 4303, section 2, and the initialization vector of
// RFC 4106, section 3.1.
header esp_t {
    bit<32> spi;
    bit<32> sequence;
    bit<64> iv;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t outer;
    esp_t esp;
}

struct metadata_t {
    // Of a packet that is not ESP: its IPv4 header, which is encrypted as it is.
    ipv4_t inner;
    bool is_plain;
}

parser GatewayParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: look;
            default: accept;
        }
    }
    state look {
        meta.inner = packet.lookahead<ipv4_t>();
        transition select(meta.inner.version, meta.inner.ihl, meta.inner.protocol, meta.inner.frag_offset) {
            (4, 5, PROTOCOL_ESP, 0): esp;
            (4, _, _, _): plain;
            default: accept;
        }
    }
    state plain {
        meta.is_plain = true;
        transition accept;
    }
    state esp {
        packet.extract(hdr.outer);
        packet.extract(hdr.esp);
        transition accept;
    }
}

control GatewayVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.outer.isValid(),
            { hdr.outer.version, hdr.outer.ihl, hdr.outer.tos, hdr.outer.total_len, hdr.outer.identification,
              hdr.outer.flags, hdr.outer.frag_offset, hdr.outer.ttl, hdr.outer.protocol, hdr.outer.src_addr,
              hdr.outer.dst_addr },
            hdr.outer.checksum, HashAlgorithm.csum16);
    }
}

control GatewayIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // Why packets were dropped: 0 neither IPv4 nor ESP, or damaged; 1 no tunnel leads to the
    // address; 2 no such association; 3 too old, or seen before; 4 not authentic; 5 malformed;
    // 6 no key; 7 sequence numbers used up; 8 too long.
    counter(9, CounterType.packets) refused;

    esp_gcm(ASSOCIATIONS) outbound;
    esp_gcm(ASSOCIATIONS) inbound;
    sequence(ASSOCIATIONS) numbers;
    replay_window(ASSOCIATIONS) window;
    payload_resize() body;
    payload_read() bytes;

    // The association of the packet: keys and windows are numbered by it.
    bit<32> association = 0;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action refuse(bit<32> reason) {
        refused.count(reason);
        mark_to_drop(standard_metadata);
    }

    // Into a tunnel.
    action protect(bit<32> sa, bit<32> spi, Ipv4Address local, Ipv4Address remote, MacAddress src_mac, MacAddress dst_mac, Port port) {
        association = sa;
        hdr.outer = { 4, 5, 0, 0, 0, 2, 0, 64, PROTOCOL_ESP, 0, local, remote };
        hdr.esp = { spi, 0, 0 };
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
        standard_metadata.egress_spec = port;
    }

    table tunnels {
        key = { meta.inner.dst_addr: lpm; }
        actions = { protect; drop; }
        default_action = drop;
        size = 4096;
    }

    // Out of a tunnel, to the next hop behind it.
    action unprotect(bit<32> sa, MacAddress src_mac, MacAddress dst_mac, Port port) {
        association = sa;
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
        standard_metadata.egress_spec = port;
    }

    table associations {
        key = { hdr.outer.dst_addr: exact; hdr.esp.spi: exact; }
        actions = { unprotect; drop; }
        default_action = drop;
        size = 4096;
    }

    // The reason that `refused` counts for a status.
    action refuse_for(extern_status_t status) {
        bit<32> reason = 5;
        if (status == extern_status_t.REPLAYED) {
            reason = 3;
        } else if (status == extern_status_t.AUTHENTICATION) {
            reason = 4;
        } else if (status == extern_status_t.NO_KEY || status == extern_status_t.OUT_OF_RANGE) {
            reason = 6;
        } else if (status == extern_status_t.EXHAUSTED) {
            reason = 7;
        } else if (status == extern_status_t.NO_ROOM) {
            reason = 8;
        }
        refuse(reason);
    }

    apply {
        extern_status_t status = extern_status_t.OK;
        if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1) {
            refuse(0);
        } else if (hdr.esp.isValid()) {
            if (!associations.apply().hit) {
                refuse(2);
                return;
            }
            payload_truncate(body, (bit<32>) (hdr.outer.total_len - 36));
            window.check(association, hdr.esp.sequence, status);
            if (status == extern_status_t.OK) {
                bit<8> next_header;
                @async(order=flow) {
                    inbound.open(body, association, hdr.esp.spi, hdr.esp.sequence, hdr.esp.iv, next_header, status);
                }
                if (status == extern_status_t.OK && next_header != PROTOCOL_IPV4) {
                    status = extern_status_t.MALFORMED;
                }
            }
            // Packets of the association may have overtaken it while it waited.
            if (status == extern_status_t.OK) {
                window.commit(association, hdr.esp.sequence, status);
            }
            if (status != extern_status_t.OK) {
                refuse_for(status);
            } else {
                hdr.outer.setInvalid();
                hdr.esp.setInvalid();
            }
        } else if (meta.is_plain) {
            if (!tunnels.apply().hit) {
                refuse(1);
                return;
            }
            payload_truncate(body, (bit<32>) meta.inner.total_len);
            numbers.next(association, hdr.esp.sequence, status);
            if (status == extern_status_t.OK) {
                // A number is used once per key, as an initialization vector must be.
                hdr.esp.iv = (bit<64>) hdr.esp.sequence;
                @async(order=flow) {
                    outbound.seal(body, association, hdr.esp.spi, hdr.esp.sequence, hdr.esp.iv, PROTOCOL_IPV4, status);
                }
            }
            bit<32> sealed;
            payload_length(bytes, sealed);
            if (status != extern_status_t.OK) {
                refuse_for(status);
            } else {
                hdr.outer.total_len = (bit<16>) (sealed + 36);
            }
        } else {
            refuse(0);
        }
    }
}

control GatewayEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control GatewayComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.outer.isValid(),
            { hdr.outer.version, hdr.outer.ihl, hdr.outer.tos, hdr.outer.total_len, hdr.outer.identification,
              hdr.outer.flags, hdr.outer.frag_offset, hdr.outer.ttl, hdr.outer.protocol, hdr.outer.src_addr,
              hdr.outer.dst_addr },
            hdr.outer.checksum, HashAlgorithm.csum16);
    }
}

control GatewayDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.outer);
        packet.emit(hdr.esp);
    }
}

V1Switch(GatewayParser(), GatewayVerifyChecksum(), GatewayIngress(), GatewayEgress(), GatewayComputeChecksum(), GatewayDeparser()) main;
