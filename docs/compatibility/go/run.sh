#!/bin/bash
# Runs the smoke test of p4runtime-go-client against weir: docs/compatibility/go/run.sh CLIENT [WEIR]
# CLIENT is a checkout of https://github.com/antoninbas/p4runtime-go-client, which is not changed; WEIR is target/release/weir
# unless told otherwise. Needs Go, root and iproute2; Go gets the modules that the client is made of.
set -e
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
client=$(cd "$1" && pwd)
weir=${2:-$root/target/release/weir}
scratch=$(mktemp -d)
program=$root/crates/weir-server/tests/p4/everything.p4
trap 'kill "$switch" 2>/dev/null; wait 2>/dev/null; ip link del weirgo1 2>/dev/null; rm -rf "$scratch"' EXIT

cp "$here/main.go" "$here/go.mod" "$scratch"
ln -s "$client" "$scratch/client"
(cd "$scratch" && go mod tidy && go build -o smoke .)
"$weir" build "$program" --p4info "$scratch/p4info.txtpb"

# A cable from port 1 to port 2, with nothing on it but the test's packets.
ip link add weirgo1 type veth peer name weirgo2
for end in weirgo1 weirgo2; do
    sysctl -qw net.ipv6.conf.$end.disable_ipv6=1
    ip link set $end up arp off
done
: >"$scratch/weir.log"
"$weir" run "$program" -i 1@packet:weirgo1 -i 2@packet:weirgo2 --cpu-port 510 --p4runtime 127.0.0.1:19559 >"$scratch/weir.out" 2>"$scratch/weir.log" &
switch=$!
until grep -q running "$scratch/weir.log"; do
    kill -0 "$switch" || { cat "$scratch/weir.log"; exit 2; }
    sleep 0.1
done
"$scratch/smoke" 127.0.0.1:19559 "$program" "$scratch/p4info.txtpb"
