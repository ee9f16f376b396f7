#!/bin/bash
# Builds what the I/O bench needs and runs it: bench/io.sh forward|rina|lossless|writes|all [--runs N] [--seconds N]
# Everything else is in bench/io.py.
set -e
cd "$(dirname "$0")/.."
cargo build --release -p weir
cargo build --release -p weir-io --examples
cargo build --release -p weir-client --example paced_writes
exec python3 bench/io.py "$@"
