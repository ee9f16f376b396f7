"""Why was my packet dropped? A trace as a tree, and as text."""

import sys
from pathlib import Path

import weir

FOLDER = Path(__file__).resolve().parents[3] / "p4" / "programs" / "ipv4_router"


def main() -> str:
    switch = weir.Switch(FOLDER / "ipv4_router.p4", FOLDER / "ipv4_router.entries")
    trace = switch.trace(1, bytes.fromhex("02000000010102000000011008004500"))
    lines = [f"{node.kind} at {node.place}" for node in trace.walk() if node.kind in ("parser-error", "fate")]
    return "\n".join(lines) + "\n" + trace.text


if __name__ == "__main__":
    sys.stdout.write(main())
