#!/usr/bin/env python3
"""What an access to a register costs: registers/accesses.p4 with 0, 1, 2 and 4 accesses per packet, in turns.

    bench/registers.py WEIR [--rounds 5] [--kinds plain,predicate,…]

Prints a row per kind: the cycles per packet with each number of accesses (medians of the rounds, the programs run one after
the other in each round), and what one access adds. Indices are random. The pool has 4,096 packets; 65,536 for registers
that are larger than the first caches (140k cells is the most that a Tofino has in one).
"""

import argparse
import json
import random
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent / "registers" / "accesses.p4"
ACCESSES = (0, 1, 2, 4)
# Definitions, cells per register, packets, and the kind that has all of it but the accesses.
KINDS = {
    "plain": ([], 4096, 4096, None),
    "predicate": (["KIND_PREDICATE"], 4096, 4096, None),
    "MathUnit": (["KIND_MATH"], 4096, 4096, None),
    "direct": (["KIND_DIRECT"], 4096, 4096, ["KIND_TABLE"]),
    "140k cells": ([], 140_000, 65536, None),
    "8 MB": ([], 1 << 20, 65536, None),
    "16 MB": ([], 1 << 21, 65536, None),
    "128 MB": ([], 1 << 24, 65536, None),
    "1 GB": ([], 1 << 27, 65536, None),
}


def pcap(path, packets, cells):
    rng = random.Random(1)
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for _ in range(packets):
            indices = struct.pack(">4I", *(rng.randrange(cells) for _ in range(4)))
            frame = bytes(12) + b"\x12\x34" + indices + bytes(16) + bytes(14)
            out.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)


def entries(path, cells):
    with open(path, "w") as out:
        for table in range(4):
            for key in range(cells):
                out.write(f"add t{table} hdr.work.i{table}:{key} hit{table}()\n")


def cycles(weir, definitions, folder, many, options):
    command = [weir, "bench", PROGRAM, "--packet", folder / "packets.pcap", "--pool", str(many), "--json"]
    command += ["--runs", "3", "--seconds", str(options.seconds)]
    for definition in definitions:
        command += ["-D", definition]
    if any(d in ("KIND_DIRECT", "KIND_TABLE") for d in definitions):
        needed = int(next(d for d in definitions if d.startswith("ACCESSES")).split("=")[1])
        lines = (folder / "all.entries").read_text().splitlines(keepends=True)
        (folder / "some.entries").write_text("".join(lines[: needed * 4096]))
        command += ["--entries", folder / "some.entries"]
    done = subprocess.run(["chrt", "-f", "50", "taskset", "-c", str(options.core), *map(str, command)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["results"][0]["cycles_per_packet"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weir")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--core", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    for kind in options.kinds.split(","):
        definitions, cells, many, without = KINDS[kind]
        found = {}
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            pcap(folder / "packets.pcap", many, cells)
            entries(folder / "all.entries", 4096)
            for _ in range(options.rounds):
                for accesses in ACCESSES:
                    for what in [definitions] + ([without] if without else []):
                        wanted = what + [f"ACCESSES={accesses}", f"SIZE={cells}"]
                        key = (accesses, what is without)
                        found.setdefault(key, []).append(cycles(options.weir, wanted, folder, many, options))
        medians = {key: statistics.median(values) for key, values in found.items()}
        base = lambda n: medians[n, True] if without else medians[0, False]
        per_access = [(medians[n, False] - base(n)) / n for n in ACCESSES if n]
        row = " ".join(f"{medians[n, False]:7.1f}" for n in ACCESSES)
        beside = "  beside " + " ".join(f"{medians[n, True]:7.1f}" for n in ACCESSES) if without else ""
        print(f"{kind:10} {row}{beside}  an access " + " ".join(f"{value:6.1f}" for value in per_access), flush=True)


if __name__ == "__main__":
    main()
