#!/usr/bin/env python3
"""What `weir run` reaches between real interfaces: two network namespaces with veth pairs between them.

    nsS: sa ----veth---- fa :nsF: fb ----veth---- ra :nsS

A sender in nsS sends by `sa` from core 0; the forwarder in nsF (weir, or a program that only forwards) has core 1;
what arrives at `ra` is counted by the kernel. Needs root, iproute2 and two cores, and nothing else running.

    bench/io.sh forward      weir against a bare forwarder, AF_XDP and AF_PACKET, taken in turns
    bench/io.sh rina         throughput by packet size and loss by inter-arrival time, IPv4 and EFCP
    bench/io.sh lossless     a minute below capacity: is a packet lost?
    bench/io.sh writes       half of capacity while a controller writes 100,000 entries per second: is a packet lost?
    bench/io.sh all
"""

import argparse
import atexit
import csv
import json
import os
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "performance"
SENDER_CORE, FORWARDER_CORE = 0, 1
PROGRAMS = ROOT / "p4" / "programs"


def sh(command):
    subprocess.run(command, shell=True, check=True)


class Network:
    """The namespaces and interfaces, gone when the program ends."""

    count = 0

    def __init__(self, mtu=1500):
        Network.count += 1
        self.mtu = mtu
        tag = f"wb{os.getpid() % 10000}n{Network.count % 100}"
        self.s, self.f = f"{tag}s", f"{tag}f"
        for ns in (self.s, self.f):
            sh(f"ip netns add {ns}")
            # Nothing but our packets on the wires.
            sh(f"ip netns exec {ns} sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
        for outer, inner in (("sa", "fa"), ("ra", "fb")):
            sh(f"ip -n {self.s} link add {outer} mtu {mtu} type veth peer name {inner} mtu {mtu} netns {self.f}")
            sh(f"ip -n {self.s} link set {outer} up arp off")
            sh(f"ip -n {self.f} link set {inner} up arp off")
        time.sleep(0.5)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for ns in (self.s, self.f):
            subprocess.run(f"ip netns del {ns}", shell=True)

    def counter(self, interface, name):
        ns = self.f if interface.startswith("f") else self.s
        path = f"/sys/class/net/{interface}/statistics/{name}"
        text = subprocess.run(f"ip netns exec {ns} cat {path}", shell=True, check=True, capture_output=True, text=True)
        return int(text.stdout)


class Bench:
    def __init__(self, arguments):
        self.a = arguments
        self.weir = Path(arguments.target) / "release" / "weir"
        self.examples = Path(arguments.target) / "release" / "examples"
        self.own, self.processes, self.left_out = set(), [], 0
        atexit.register(lambda: [p.kill() for p in self.processes])
        self.scratch = Path(tempfile.mkdtemp(prefix="weir-io-"))

    def on(self, core, priority, ns, command):
        real_time = [] if self.a.no_rt else ["chrt", "-f", str(priority)]
        return [*real_time, "taskset", "-c", str(core), "ip", "netns", "exec", ns, *map(str, command)]

    def wait_for_quiet(self):
        """Whatever else runs would be measured with us: wait until both cores have been idle for a moment."""
        started, quiet = time.monotonic(), 0
        while quiet < 2 and time.monotonic() < started + self.a.patience:
            quiet = 0 if self.others_real_time() or busy_share(0.4) > 0.15 else quiet + 1
        if quiet < 2:
            print("  (others do not stop)", flush=True)

    def others_real_time(self):
        kernel = ("migration", "idle_inject", "watchdog", "irq/", "rcu", "cpuhp", "ksoftirqd")
        lines = subprocess.run(["ps", "-eo", "cls=,pid=,comm="], capture_output=True, text=True).stdout.splitlines()
        real_time = [line.split(None, 2) for line in lines if line.split()[0] in ("FF", "RR")]
        return [n for _, pid, n in real_time if int(pid) not in self.own and not any(k in n for k in kernel)]

    def start(self, network, command, is_weir, serves=False):
        """A forwarder, once it is ready. One that serves a controller as well is not started as a real-time process: its worker
        always has packets, and threads of the same priority would not make way for each other. It gets a session of its own
        instead, which comes before all others, so that its threads share the core among themselves."""
        line = self.on(FORWARDER_CORE, 50, network.f, command)
        if serves and not self.a.no_rt:
            line = ["sh", "-c", 'echo -20 > /proc/self/autogroup; exec "$@"', "sh", *line[line.index("taskset") :]]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=serves)
        self.own.add(process.pid)
        self.processes.append(process)
        if is_weir:
            while True:
                said = process.stderr.readline()
                if "running" in said:
                    break
                if not said:
                    raise RuntimeError(f"weir did not start: {process.stdout.read()}")
        time.sleep(0.7)
        if process.poll() is not None:
            raise RuntimeError(f"{command}: {process.stderr.read()}")
        return process

    def send(self, network, device, seconds, capture, rate=None, burst=64):
        # AF_XDP takes no frames beyond a page.
        device = "packet" if network.mtu > 3754 else device
        command = [self.examples / "packet_sender", f"{device}:sa", "--seconds", seconds, "--pcap", capture]
        command += ["--burst", burst] + (["--rate", rate] if rate else [])
        line = self.on(SENDER_CORE, 40, network.s, command)
        sender = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        try:
            out, _ = sender.communicate()
        finally:
            sender.kill()
        return json.loads(out)

    def window(self, network, process, capture, sender, rate=None, seconds=None, burst=64):
        """Packets offered to a forwarder that runs, and packets that came through it."""
        counters = ("ra", "rx_packets"), ("fa", "rx_packets")
        (busy, waited), before = cpu_seconds(process.pid), [network.counter(*c) for c in counters]
        sent = self.send(network, sender, seconds or self.a.seconds, capture, rate, burst)
        time.sleep(0.2)
        times, after = cpu_seconds(process.pid), [network.counter(*c) for c in counters]
        busy, waited = times[0] - busy, times[1] - waited
        arrived, offered = after[0] - before[0], after[1] - before[1]
        return {
            "seconds": sent["seconds"],
            "sent": sent["sent"],
            "offered": offered,
            "arrived": arrived,
            "waited_ms": waited * 1e3,
            "cpu_us": busy * 1e6 / max(arrived, 1),
            "mpps": arrived / sent["seconds"] / 1e6,
            "offered_mpps": offered / sent["seconds"] / 1e6,
            "loss": 1 - arrived / offered if offered else 0.0,
        }

    def good_window(self, *arguments, **how):
        """As `window`, tried again while others have the forwarder's core: they would be measured, not it."""
        for _ in range(self.a.tries):
            result = self.window(*arguments, **how)
            if result["waited_ms"] <= TAKEN * result["seconds"] * 1e3:
                return result
            self.left_out += 1
            self.wait_for_quiet()
        return result

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
        return out

    def measure(self, network, command, capture, **how):
        """As `window`, with a weir that is started for it; and what it says."""
        self.wait_for_quiet()
        process = self.start(network, command, True)
        result = self.window(network, process, capture, self.a.senders[0], **how)
        result["report"] = json.loads(self.stop(process).strip().splitlines()[-1])
        return result

    def run_weir(self, device, program, entries, more=()):
        # `bypass` is AF_PACKET past the queueing discipline.
        kind, option = ("packet", ",bypass") if device == "bypass" else (device, "")
        ports = ["-i", f"1@{kind}:fa{option}", "-i", f"2@{kind}:fb{option}"]
        return [self.weir, "run", program, "--entries", entries, *ports, "--json", *more]

    def ring(self):
        return ["--ring", self.a.ring] if self.a.ring else []

    def bare(self, device):
        packet = {"packet": ["--packet"], "bypass": ["--packet", "--bypass"]}.get(device, [])
        return [self.examples / "xdp_forward", "fa", "fb", "--seconds", "3600", *packet]

    def path(self, name):
        return self.scratch / name


def busy_share(seconds):
    """The part of all cores' time that somebody used."""

    def read():
        numbers = [int(n) for n in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        return sum(numbers), numbers[3] + numbers[4]

    before = read()
    time.sleep(seconds)
    after = read()
    return 1 - (after[1] - before[1]) / max(after[0] - before[0], 1)


def cpu_seconds(pid):
    """What all threads of a process have run so far, and have waited for their core while others had it."""
    ran = waited = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        numbers = (task / "schedstat").read_text().split()
        ran, waited = ran + int(numbers[0]), waited + int(numbers[1])
    return ran / 1e9, waited / 1e9


# ------------------------------------------------------------------------------------- packets

SOURCE, DESTINATION = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv4(size, number):
    payload = bytes(i & 0xFF for i in range(size - 14 - 20 - 8))
    udp = struct.pack(">HHHH", 1024 + number, 9, 8 + len(payload), 0)
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, size - 14, number, 0, 64, 17, 0, bytes([10, 0, 1, 10]), bytes([10, 0, 2, 10]))
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    return DESTINATION + SOURCE + b"\x08\x00" + head + udp + payload


def efcp(size, number):
    payload = bytes(i & 0xFF for i in range(size - 14 - 20))
    head = struct.pack(">BHHBHHBBHI", 1, 2, 1, 1, 7, 9, 0x80, 0, size - 14, number)
    return DESTINATION + SOURCE + b"\xd1\xf0" + head + struct.pack(">H", checksum(head)) + payload


def write_capture(path, packets):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for packet in packets:
            file.write(struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet)
    return path


def l2_entries(path):
    path.write_text(
        "add source_macs hdr.ethernet.src_addr:02-00-00-00-00-01 known(port:1)\n"
        "add source_macs hdr.ethernet.src_addr:02-00-00-00-00-02 known(port:2)\n"
        "add destination_macs hdr.ethernet.dst_addr:02-00-00-00-00-01 forward(port:1)\n"
        "add destination_macs hdr.ethernet.dst_addr:02-00-00-00-00-02 forward(port:2)\n"
    )
    return path


# ------------------------------------------------------------------------------------- benches


def spread(values):
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


# The part of a window for which others may have the forwarder's core. A busy machine takes a twentieth in any case.
TAKEN = 0.07


def l2_case(b):
    """l2_switch, its entries, and packets that it forwards."""
    entries = l2_entries(b.path("l2.entries"))
    capture = write_capture(b.path("l2.pcap"), [ipv4(60, i) for i in range(64)])
    return PROGRAMS / "l2_switch" / "l2_switch.p4", entries, capture


def forward(b):
    """weir against a bare forwarder, in turns."""
    rows = []
    program, entries, capture = l2_case(b)
    for device in b.a.devices:
        commands = {"weir": b.run_weir(device, program, entries), "bare": b.bare(device)}
        with Network() as one, Network() as other:
            networks = {"weir": one, "bare": other}
            # Both run all the time; whoever has nothing to do sleeps.
            processes = {n: b.start(networks[n], commands[n], n == "weir") for n in commands}
            for sender in b.a.senders:
                results, left_out = {"weir": [], "bare": []}, 0
                while len(results["weir"]) < b.a.runs and left_out < 5 * b.a.runs:
                    b.wait_for_quiet()
                    run = len(results["weir"])
                    order = ("weir", "bare") if (run + left_out) % 2 == 0 else ("bare", "weir")
                    pair = {name: b.window(networks[name], processes[name], capture, sender) for name in order}
                    # Where somebody else has the core, that is what would be measured.
                    if max(r["waited_ms"] for r in pair.values()) > TAKEN * b.a.seconds * 1e3:
                        left_out += 1
                        continue
                    for name, r in pair.items():
                        results[name].append(r)
                        row = [f"{r[key]:.4f}" for key in ("mpps", "offered_mpps", "cpu_us", "waited_ms")]
                        rows.append([device, sender, name, run, *row])
                compare(device, sender, results["weir"], results["bare"], left_out)
            for name in commands:
                b.stop(processes[name])
    save("forward.csv", ["device", "sender", "forwarder", "run", "mpps", "offered_mpps", "core_us_per_packet", "core_taken_ms"], rows)


def compare(device, sender, weir, bare, left_out):
    print(f"{device}, sender {sender}, {len(weir)} pairs ({left_out} left out: others had the core):")
    for key, unit in (("mpps", "Mpps"), ("cpu_us", "us of a core per packet"), ("loss", "of what was offered lost")):
        w, p = [r[key] for r in weir], [r[key] for r in bare]
        print(f"  weir {spread(w)}, bare {spread(p)} {unit}")
    ratios = [w["mpps"] / max(p["mpps"], 1e-9) for w, p in zip(weir, bare)]
    medians = statistics.median(r["mpps"] for r in weir) / statistics.median(r["mpps"] for r in bare)
    cost = statistics.median(p["cpu_us"] / w["cpu_us"] for w, p in zip(weir, bare))
    print(f"  ratio of medians {medians:.3f}, of pairs {spread(ratios)}; by time on the core {cost:.3f}", flush=True)


def rina(b):
    """Throughput by packet size, loss by inter-arrival time."""
    program, entries = PROGRAMS / "rina_router" / "rina_router.p4", PROGRAMS / "rina_router" / "rina_router.entries"
    makers = {"IPv4": ipv4, "EFCP": efcp}
    rows, loss_rows = [], []
    for device in b.a.devices:
        jumbo = 3000 if device == "xdp" else 9000
        for mtu, sizes in ((1500, [64, 128, 256, 512, 1024, 1280, 1500]), (jumbo, [jumbo])):
            with Network(mtu) as network:
                process = b.start(network, b.run_weir(device, program, entries), True)
                for size in sizes:
                    rows += throughput(b, network, process, device, size, makers)
                for gap in GAPS if mtu == 1500 else []:
                    loss_rows += loss(b, network, process, device, gap, makers)
                # What was late in its window has arrived as well by now.
                time.sleep(1)
                sums = {"offered": network.counter("fa", "rx_packets"), "arrived": network.counter("ra", "rx_packets")}
                sums["report"] = json.loads(b.stop(process).strip().splitlines()[-1])
                print(f"  {device}, MTU {mtu}: {sums['offered']} offered, {sums['arrived']} arrived, every loss counted: {accounted(sums)}", flush=True)
    print(f"  {b.left_out} windows were left out because others had the core", flush=True)
    save("throughput.csv", ["device", "protocol", "bytes", "mpps", "mbits", "offered_mpps"], rows)
    save("loss.csv", ["device", "protocol", "gap_us", "real_gap_us", "loss_percent"], loss_rows)
    plots()


GAPS = (0.6, 0.8, 1.0, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 5.0, 7.5, 10.0, 15.0, 20.0)


def windows(b, network, process, makers, size, runs, **how):
    """For each protocol its runs, taken in turns."""
    results = {name: [] for name in makers}
    captures = {n: write_capture(b.path(f"{n}.pcap"), [make(size, i) for i in range(16)]) for n, make in makers.items()}
    for _ in range(runs):
        b.wait_for_quiet()
        for name in makers:
            r = b.good_window(network, process, captures[name], b.a.senders[0], **how)
            results[name].append(r)
    return results


def throughput(b, network, process, device, size, makers):
    """As many packets of a size as go."""
    for name, runs in windows(b, network, process, makers, size, b.a.runs).items():
        mpps, offered = (statistics.median(r[key] for r in runs) for key in ("mpps", "offered_mpps"))
        print(f"  {device} {name} {size} bytes: {mpps:.3f} of {offered:.3f} Mpps, {mpps * size * 8:.0f} Mbit/s", flush=True)
        yield [device, name, size, f"{mpps:.4f}", f"{mpps * size * 8:.0f}", f"{offered:.4f}"]


def loss(b, network, process, device, gap, makers):
    """Packets of 500 bytes with a time between them."""
    results = windows(b, network, process, makers, 500, max(b.a.runs // 2, 3), rate=1e6 / gap, burst=8)
    for name, runs in results.items():
        lost = 100 * statistics.median(r["loss"] for r in runs)
        real = statistics.median(r["seconds"] * 1e6 / max(r["offered"], 1) for r in runs)
        print(f"  {device} {name} every {gap} us (really {real:.2f}): {lost:.3f} % lost", flush=True)
        yield [device, name, gap, f"{real:.3f}", f"{lost:.4f}"]


def accounted(r):
    """Whether what was offered is what left and what weir says that it or its devices lost."""
    devices = r["report"].get("devices", [])
    lost = sum(d["rx_dropped"] + d["tx_dropped"] + d["refused"] for d in devices)
    lost += sum(d["packets"] for d in r["report"].get("drops", []))
    return r["offered"] == r["arrived"] + lost


def lossless(b):
    """A minute below capacity."""
    program, entries, capture = l2_case(b)
    rows = []
    for device in b.a.devices:
        for rate in b.a.rates:
            for attempt in range(b.a.attempts):
                with Network() as network:
                    r = b.measure(network, b.run_weir(device, program, entries), capture, rate=rate, seconds=b.a.minute)
                lost = r["offered"] - r["arrived"]
                rows.append([device, rate, f"{r['seconds']:.1f}", r["offered"], r["arrived"], lost, accounted(r), f"{r['waited_ms']:.1f}"])
                print(
                    f"  {device} at {r['offered_mpps']:.3f} Mpps for {r['seconds']:.0f} s: {r['offered']} offered, {lost} lost, "
                    f"all counted: {accounted(r)}; others had its core for {r['waited_ms']:.1f} ms",
                    flush=True,
                )
                # Another try where somebody else needed the core for longer than the rings can bridge.
                if lost == 0 or r["waited_ms"] < 2:
                    break
    header = ["device", "rate", "seconds", "offered", "arrived", "lost", "every_loss_counted", "core_taken_ms"]
    save("lossless.csv", header, rows)


def losses(offered, arrived, report):
    """Where packets were lost: every counter that is not 0, and what no counter has."""
    found = {}
    for place in report.get("devices", []):
        for counter in ("rx_dropped", "tx_dropped", "refused"):
            found[f"{place.get('device', place.get('port'))} {counter}"] = place[counter]
    for drop in report.get("drops", []):
        found[f"{drop['reason']} {drop.get('place') or ''}".strip()] = drop["packets"]
    found["no counter"] = offered - arrived - sum(found.values())
    return {name: count for name, count in found.items() if count}


SERVERS = {"p4runtime": "--p4runtime", "bfrt": "--bfrt"}
CONTROL = "127.0.0.1:9559"


def writes(b):
    """Half of capacity while a controller writes."""
    program, entries, capture = l2_case(b)
    rows = []
    for device in b.a.devices:
        with Network() as network:
            process = b.start(network, b.run_weir(device, program, entries, b.ring()), True, serves=True)
            b.wait_for_quiet()
            capacity = statistics.median(b.window(network, process, capture, b.a.senders[0])["mpps"] for _ in range(5))
            b.stop(process)
        print(f"  {device}: capacity {capacity:.3f} Mpps", flush=True)
        for protocol in b.a.protocols:
            for batch in b.a.batches:
                # Another try where packets were lost, while somebody else may have had the core. Every try is written down.
                for _ in range(b.a.attempts):
                    row, lost = writes_row(b, device, protocol, batch, capacity, program, entries, capture)
                    rows.append(row)
                    if not lost:
                        break
    header = ["device", "protocol", "batch", "ring", "capacity_mpps", "seconds", "offered_mpps", "sent", "offered", "arrived", "lost", "lost_at"]
    header += ["writes_per_second", "inserted", "modified", "deleted", "request_ms", "p99_ms", "longest_ms", "worker_waited_ms", "servers_ms"]
    save("writes.csv", header, rows)


def writes_row(b, device, protocol, batch, capacity, program, entries, capture):
    """A run of half a minute."""
    b.wait_for_quiet()
    with Network() as network:
        sh(f"ip -n {network.f} link set lo up")
        process = b.start(network, b.run_weir(device, program, entries, (SERVERS[protocol], CONTROL, *b.ring())), True, serves=True)
        w = beside_writes(b, network, process, capture, protocol, batch, capacity * 1e6 / 2)
    lost = w["offered"] - w["arrived"]
    done, times = w["client"], w["client"]["request_ms"]
    places = losses(w["offered"], w["arrived"], w["report"])
    print(
        f"  {device} {protocol}, batches of {batch}: {w['offered']} offered at {w['offered_mpps']:.3f} Mpps, {lost} lost {places or ''}; "
        f"{done['per_second']:.0f} writes/s, {times['median']:.1f} ms each, {times['p99']:.1f} at p99, {times['longest']:.1f} at most; "
        f"the worker waited {w['worker_ms']:.0f} ms for its core, the servers had it for {w['servers_ms']:.0f} ms",
        flush=True,
    )
    where = "; ".join(f"{name}: {count}" for name, count in places.items())
    row = [device, protocol, batch, b.a.ring or "default", f"{capacity:.4f}", f"{w['seconds']:.1f}", f"{w['offered_mpps']:.4f}", w["sent"], w["offered"], w["arrived"]]
    row += [lost, where, f"{done['per_second']:.0f}", done["inserted"], done["modified"], done["deleted"], f"{times['median']:.2f}"]
    return [*row, f"{times['p99']:.2f}", f"{times['longest']:.2f}", f"{w['worker_ms']:.0f}", f"{w['servers_ms']:.0f}"], lost


def beside_writes(b, network, process, capture, protocol, batch, rate):
    """Packets at a rate through a weir that was just started, and a controller that writes from before to after them."""
    seconds = b.a.half_minute
    command = [b.examples / "paced_writes", protocol, CONTROL, "destination_macs", "forward", "--first", 0x0600_0000_0000]
    command += ["--rate", b.a.writes, "--batch", batch, "--seconds", seconds + 3]
    # Before the sender, which never sleeps; what it misses meanwhile it makes up for.
    client = subprocess.Popen(b.on(SENDER_CORE, 41, network.f, command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    b.own.add(client.pid)
    b.processes.append(client)
    time.sleep(1.5)
    before = shares(process.pid)
    result = b.window(network, process, capture, b.a.senders[0], rate, seconds, burst=512)
    result["worker_ms"], result["servers_ms"] = (after - early for after, early in zip(shares(process.pid), before))
    out, errors = client.communicate(timeout=60)
    if client.returncode:
        raise RuntimeError(f"the controller: {errors}")
    time.sleep(0.5)
    result["offered"], result["arrived"] = network.counter("fa", "rx_packets"), network.counter("ra", "rx_packets")
    result["client"] = json.loads(out)
    result["report"] = json.loads(b.stop(process).strip().splitlines()[-1])
    return result


def shares(pid):
    """How long, in ms, the worker of a weir has waited for its core so far, and how long its servers had it."""
    waited = ran = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        numbers = (task / "schedstat").read_text().split()
        if (task / "comm").read_text().startswith("worker"):
            waited += int(numbers[1]) / 1e6
        else:
            ran += int(numbers[0]) / 1e6
    return waited, ran


def save(name, header, rows):
    OUT.mkdir(parents=True, exist_ok=True)
    with open(OUT / name, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


# --------------------------------------------------------------------------------------- plots

COLORS = ["#1b6ca8", "#d1495b", "#3c9d63", "#8a5fbf"]


def ticks(low, high):
    """Round numbers between two."""
    span = high - low or 1
    step = 10 ** len(str(int(span / 5)))
    step = next((s for s in (step / 10, step / 5, step / 4, step / 2, step) if span / s <= 7), step)
    first = -(-low // step) * step
    return [first + i * step for i in range(int((high - first) / step + 1e-9) + 1)]


def plot(path, title, x_title, y_title, series):
    """Lines as SVG: `series` is a list of (name, [(x, y)])."""
    width, height, left, right, top, bottom = 760, 420, 78, 24, 44, 62
    xs = [x for _, points in series for x, _ in points]
    ys = [y for _, points in series for _, y in points]
    x_high, y_high = max(xs) * 1.02, max(max(ys) * 1.08, 1e-9)
    at_x = lambda x: left + x / x_high * (width - left - right)
    at_y = lambda y: height - bottom - y / y_high * (height - top - bottom)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="24" font-size="15">{title}</text>',
    ]
    for x in ticks(0, x_high):
        out.append(f'<line x1="{at_x(x):.1f}" y1="{top}" x2="{at_x(x):.1f}" y2="{height - bottom}" stroke="#eee"/>')
        out.append(f'<text x="{at_x(x):.1f}" y="{height - bottom + 18}" text-anchor="middle">{x:g}</text>')
    for y in ticks(0, y_high):
        out.append(f'<line x1="{left}" y1="{at_y(y):.1f}" x2="{width - right}" y2="{at_y(y):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 8}" y="{at_y(y) + 4:.1f}" text-anchor="end">{y:g}</text>')
    out.append(f'<text x="{(left + width - right) / 2}" y="{height - 22}" text-anchor="middle">{x_title}</text>')
    out.append(f'<text x="18" y="{height / 2}" text-anchor="middle" transform="rotate(-90 18 {height / 2})">{y_title}</text>')
    for i, (name, points) in enumerate(series):
        line = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in sorted(points))
        color = COLORS[i % len(COLORS)]
        out.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        out += [f'<circle cx="{at_x(x):.1f}" cy="{at_y(y):.1f}" r="3" fill="{color}"/>' for x, y in points]
        x = width - right - 150
        out.append(f'<line x1="{x}" y1="{20 + 14 * i - 4}" x2="{x + 20}" y2="{20 + 14 * i - 4}" stroke="{color}" stroke-width="2"/>')
        out.append(f'<text x="{x + 26}" y="{20 + 14 * i}">{name}</text>')
    out.append("</svg>")
    path.write_text("\n".join(out) + "\n")


def read(name):
    with open(OUT / name) as file:
        return list(csv.DictReader(file))


def plots():
    names = {"xdp": "AF_XDP", "packet": "AF_PACKET"}

    def lines(rows, x, y):
        keys = sorted({(r["device"], r["protocol"]) for r in rows}, reverse=True)
        return [(f"{p}, {names[d]}", [(float(r[x]), float(r[y])) for r in rows if (r["device"], r["protocol"]) == (d, p)]) for d, p in keys]

    rows = read("throughput.csv")
    plot(OUT / "throughput.svg", "RINA router: throughput", "bytes per packet", "Mbit/s", lines(rows, "bytes", "mbits"))
    plot(OUT / "packets.svg", "RINA router: packets per second", "bytes per packet", "million packets per second", lines([r for r in rows if int(r["bytes"]) <= 1500], "bytes", "mpps"))
    rows = read("loss.csv")
    plot(OUT / "loss.svg", "RINA router: loss, 500 bytes per packet", "time between packets as sent (µs)", "% lost", lines(rows, "real_gap_us", "loss_percent"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["forward", "rina", "lossless", "writes", "plots", "all"])
    parser.add_argument("--runs", type=int, default=11, help="of each kind, at least 5 for a median that means something")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--minute", type=float, default=60.0)
    parser.add_argument("--half-minute", type=float, default=30.0, help="of `writes`")
    parser.add_argument("--writes", type=int, default=100_000, help="per second")
    parser.add_argument("--batches", type=lambda t: [int(n) for n in t.split(",")], default=[1000], help="of `writes`: updates per request")
    parser.add_argument("--protocols", type=lambda t: t.split(","), default=["p4runtime", "bfrt"], help="of `writes`")
    parser.add_argument("--ring", type=int, default=32768, help="of `writes`: packets an interface has room for; 0 for what weir has by default")
    parser.add_argument("--attempts", type=int, default=4, help="of `lossless` and `writes`, while others take the core")
    parser.add_argument("--rates", type=lambda t: [int(r) for r in t.split(",")], default=[100_000, 400_000])
    parser.add_argument("--senders", type=lambda t: t.split(","), default=["xdp"], help="xdp, packet or both")
    parser.add_argument("--target", default=os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--patience", type=float, default=600, help="seconds to wait for others to stop before each run")
    parser.add_argument("--devices", type=lambda t: t.split(","), default=["xdp", "packet"])
    parser.add_argument("--tries", type=int, default=6, help="of a measurement, while others have the core")
    parser.add_argument("--no-rt", action="store_true", help="without real-time priority")
    b = Bench(parser.parse_args())
    for what, function in (("forward", forward), ("rina", rina), ("lossless", lossless), ("writes", writes)):
        if b.a.what in (what, "all"):
            print(f"{what} (load {os.getloadavg()[0]:.1f})", flush=True)
            function(b)
    if b.a.what == "plots":
        plots()


if __name__ == "__main__":
    sys.exit(main())
