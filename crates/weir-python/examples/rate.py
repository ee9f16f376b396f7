"""How fast do packets run through a router in process? The median of several rounds."""

import statistics
import sys
import time
from pathlib import Path

import weir

FOLDER = Path(__file__).resolve().parents[3] / "p4" / "programs" / "ipv4_router"
PACKET = bytes.fromhex(
    "0200000001010200000001100800" "4500002e00014000401123ab0a00010a0a00020a"
    "0fa01389001a4c9461207765697220696e20612073747265616d"
)


def main(packets: int = 10_000, rounds: int = 41) -> str:
    switch = weir.Switch(FOLDER / "ipv4_router.p4", FOLDER / "ipv4_router.entries")
    given = [(1, PACKET)] * packets
    rates = []
    for _ in range(rounds):
        start = time.perf_counter()
        sent = switch.send_many(given)
        rates.append(packets / (time.perf_counter() - start))
        if [port for port, _ in sent[-1]] != [2] or len(sent) != packets:
            raise SystemExit("the router does not route")
    return f"{statistics.median(rates):,.0f} packets/s (median of {rounds} rounds of {packets})\n"


if __name__ == "__main__":
    sys.stdout.write(main(*map(int, sys.argv[1:])))
