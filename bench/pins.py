#!/usr/bin/env python3
"""Entries and packets for the PINS middleblock program (pins_middleblock.p4 of p4lang/p4c's samples).

10,000 IPv4 routes, 500 ternary ACL entries over three tables that nearly no packet matches, and packets to
those routes: what `weir bench` is given to measure a real program.

    bench/pins.py OUT_DIR
    weir bench .../pins/pins_middleblock.p4 --entries OUT_DIR/pins.entries --packet OUT_DIR/pins.pcap --pool 4096
"""

import random
import struct
import sys
from pathlib import Path

ROUTES = 10_000
PACKETS = 4096
PORTS = 16
NEIGHBOURS = 64
OWN_MAC = "02-00-00-00-00-01"
# Prefix lengths as in the tables of routers: mostly /24.
LENGTHS = [(24, 60), (23, 10), (22, 12), (21, 5), (20, 5), (19, 3), (18, 2), (16, 3)]


def address(value):
    return ".".join(str(value >> shift & 0xFF) for shift in (24, 16, 8, 0))


def routes(rng):
    found = {}
    weights = [weight for _, weight in LENGTHS]
    while len(found) < ROUTES:
        length = rng.choices([length for length, _ in LENGTHS], weights)[0]
        # No multicast, loopback or broadcast: the program drops what comes from or goes there.
        value = rng.randrange(11 << 24, 126 << 24) >> (32 - length) << (32 - length)
        found[value, length] = rng.randrange(NEIGHBOURS)
    return found


def entries(found, rng):
    yield f"add l3_admit_table 1 dst_mac:{OWN_MAC} admit_to_l3()"
    yield "add acl_pre_ingress_table 1 is_ipv4:1 set_vrf(vrf_id:1)"
    yield "add vrf_table vrf_id:1 no_action()"
    for port in range(PORTS):
        mac = f"02-00-00-00-01-{port:02x}"
        yield f"add router_interface_table router_interface_id:{port + 1} set_port_and_src_mac(port:{port}, src_mac:{mac})"
    for number in range(NEIGHBOURS):
        interface, mac = number % PORTS + 1, f"02-00-00-00-02-{number:02x}"
        identity = f"router_interface_id:{interface}"
        yield f"add neighbor_table {identity} neighbor_id:{number + 1} set_dst_mac(dst_mac:{mac})"
        yield f"add nexthop_table nexthop_id:{number + 1} set_ip_nexthop({identity}, neighbor_id:{number + 1})"
    for (value, length), number in found.items():
        key = f"vrf_id:1 ipv4_dst:{address(value)}/{length}"
        yield f"add ipv4_table {key} set_nexthop_id(nexthop_id:{number + 1})"
    for priority in range(200):
        source = address(rng.randrange(192 << 24, 200 << 24) & 0xFFFFFF00)
        port = rng.randrange(1, 1024)
        yield f"add acl_ingress_table {priority + 1} is_ipv4:1 src_ip:{source}/24 l4_dst_port:{port} ip_protocol:17 acl_drop()"
    for priority in range(200):
        source = address(rng.randrange(200 << 24, 208 << 24) & 0xFFFF0000)
        yield f"add acl_ingress_security_table {priority + 1} is_ipv4:1 src_ip:{source}/16 acl_deny()"
    for priority in range(100):
        mac = f"06-00-00-00-{priority:02x}-00&&&ff-ff-ff-ff-ff-00"
        yield f"add acl_egress_table {priority + 1} src_mac:{mac} acl_drop()"


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packet(destination, rng):
    source = rng.randrange(20 << 24, 120 << 24)
    udp = struct.pack(">4H", rng.randrange(1024, 65536), rng.randrange(1024, 65536), 26, 0) + bytes(18)
    head = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, source, destination)
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    ethernet = bytes.fromhex(OWN_MAC.replace("-", "")) + bytes.fromhex("020000000a01") + b"\x08\x00"
    return ethernet + head + udp


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out, rng = Path(sys.argv[1]), random.Random(1)
    out.mkdir(parents=True, exist_ok=True)
    found = routes(rng)
    (out / "pins.entries").write_text("\n".join(entries(found, rng)) + "\n")
    capture = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    prefixes = list(found)
    for number in range(PACKETS):
        value, length = rng.choice(prefixes)
        data = packet(value | rng.randrange(1 << (32 - length)), rng)
        capture += struct.pack("<IIII", 0, number, len(data), len(data)) + data
    (out / "pins.pcap").write_bytes(capture)


if __name__ == "__main__":
    main()
