"""Compiles a router, fills a table and sends packets through it: no interfaces, no privileges."""

import sys
from pathlib import Path

import weir

PROGRAMS = Path(__file__).resolve().parents[3] / "p4" / "programs"
PACKET = bytes.fromhex(
    "020000000101020000000110080045000020000140004011"
    "0000"  # the checksum follows
    "0a00010a0a09000100010002000c0000"
    "77656972"
)


def with_checksum(packet: bytes) -> bytes:
    """The packet with the checksum of its IPv4 header."""
    header = packet[14:24] + b"\0\0" + packet[26:34]
    total = sum(int.from_bytes(header[at : at + 2], "big") for at in range(0, 20, 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return packet[:24] + (total ^ 0xFFFF).to_bytes(2, "big") + packet[26:]


def main() -> str:
    folder = PROGRAMS / "ipv4_router"
    switch = weir.Switch(weir.compile(folder / "ipv4_router.p4"), folder / "ipv4_router.entries")
    lines = []
    packet = with_checksum(PACKET)
    lines.append(f"without a route: {switch.send(1, packet)}")
    switch.table("ipv4_lpm").insert({"dst_addr": "10.9.0.0/16"}, "route", {"next_hop": "10.0.2.254", "port": 2})
    for port, data in switch.send(1, packet):
        lines.append(f"with a route: port {port}, TTL {data[22]}")
    lines.extend(str(entry) for entry in switch.table("ipv4_lpm"))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(main())
