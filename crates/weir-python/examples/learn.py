"""A controller in process: learns from the digests of a switch, and fills its tables."""

import sys
from pathlib import Path

import weir

PROGRAM = Path(__file__).resolve().parents[3] / "p4" / "programs" / "l2_switch" / "l2_switch.p4"


def frame(dst: int, src: int) -> bytes:
    """An Ethernet frame."""
    return dst.to_bytes(6, "big") + src.to_bytes(6, "big") + b"\x88\xb5" + bytes(46)


def learn(switch: weir.Switch) -> int:
    """Writes what the switch has reported; gives how many addresses were new."""
    digests = switch.digests()
    for digest in digests:
        mac, port = digest.fields["mac"], digest.fields["port"]
        switch.table("source_macs").insert({"src_addr": mac}, "known", {"port": port})
        switch.table("destination_macs").insert({"dst_addr": mac}, "forward", {"port": port})
    return len(digests)


def main() -> str:
    switch = weir.Switch(PROGRAM)
    switch.set_group(1, [1, 2, 3, 4])
    one, two = 0x020000000001, 0x020000000002
    lines = []
    for port, data in [(1, frame(two, one)), (2, frame(one, two)), (1, frame(two, one))]:
        ports = sorted(out for out, _ in switch.send(port, data))
        lines.append(f"from port {port} to {ports}; learned {learn(switch)}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(main())
