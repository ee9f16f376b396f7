"""The client of both protocols, sync and asyncio, with the server of `weir run`."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import List, Optional

import pytest
from conftest import HERE, PROGRAMS, Target

import weir
import weir.aio

CERTIFICATES = HERE.parents[1] / "weir-server" / "tests" / "shared" / "tls"
FEATURES = HERE / "features.p4"
FRAME = bytes.fromhex("0000000000010000000000020800") + bytes(46)


def test_entries_are_written_and_read(target: Target) -> None:
    with weir.connect(target(FEATURES, "p4runtime")) as client:
        client.primary()
        assert (client.protocol, client.standing) == ("p4runtime", "primary")
        rules = client.table("rules")
        key = {"dst_addr": "00:00:00:00:00:01&&&0xffffffffffff", "ether_type": "0..5"}
        rules.insert(key, "to", {"port": 3}, priority=9)
        [entry] = rules.entries()
        assert entry.key["hdr.ethernet.dst_addr"] == weir.Ternary(1, (1 << 48) - 1)
        assert entry.key["hdr.ethernet.ether_type"] == weir.Range(0, 5)
        assert (entry.action, entry.data["port"], entry.priority) == ("I.to", 3, 9)
        rules.modify(key, "to", {"port": 4}, priority=9)
        found = rules.get(key, priority=9)
        assert found is not None and found.data["port"] == 4
        rules.set(key, "to", {"port": 5}, priority=9)
        assert [item.data["port"] for item in rules.entries()] == [5]
        rules.set_default("to", {"port": 7})
        default = rules.default()
        assert default is not None and default.data["port"] == 7
        rules.delete(key, priority=9)
        assert rules.entries() == [] and rules.get(key, priority=9) is None
        wide = client.table("wide")
        value = (1 << 255) + 5
        wide.insert({"value": value, "small": 3}, "to", {"port": 1})
        assert wide.entries()[0].key["hdr.wide.value"] == value


def test_errors_carry_code_and_text(target: Target) -> None:
    with weir.connect(target(FEATURES, "p4runtime")) as client:
        rules = client.table("rules")
        rules.insert({"dst_addr": "1&&&1"}, "to", {"port": 3}, priority=1)
        with pytest.raises(weir.ClientError) as caught:
            rules.insert({"dst_addr": "1&&&1"}, "to", {"port": 3}, priority=1)
        assert caught.value.code == "ALREADY_EXISTS" and not caught.value.retryable
        assert caught.value.updates[0].table == "I.rules"
        updates = [("insert", rules.entry({"dst_addr": f"{n}&&&3"}, "drop", priority=1)) for n in (1, 1, 2)]
        with pytest.raises(weir.ClientError) as failed:
            client.write(updates)
        assert [(u.index, u.code) for u in failed.value.updates] == [(1, "ALREADY_EXISTS")]
        assert len(rules.entries()) == 3
        with pytest.raises(weir.ClientError):
            client.write([("insert", rules.entry({"dst_addr": "7&&&7"}, "drop", priority=2))] * 2, atomicity="rollback")
        assert len(rules.entries()) == 3
        with pytest.raises(weir.ClientError, match="no_such") as named:
            rules.insert({"no_such": 1}, "to", {"port": 3}, priority=1)
        assert named.value.code == "NOT_FOUND"
        with pytest.raises(KeyError, match="no table"):
            client.table("none")


def test_many_entries_are_loaded_and_synced(target: Target) -> None:
    program = PROGRAMS / "l2_switch" / "l2_switch.p4"
    with weir.connect(target(program, "p4runtime")) as client:
        macs = client.table("destination_macs")
        entries = [macs.entry({"dst_addr": n}, "forward", {"port": n % 500}) for n in range(5000)]
        loaded = client.load(entries)
        assert (loaded.done, loaded.failures) == (5000, 0)
        again = client.load(entries[:10])
        assert again.failures == 10 and again.failed[0].code == "ALREADY_EXISTS"
        synced = macs.sync(entries[10:20] + [macs.entry({"dst_addr": 9999}, "drop")])
        assert (synced.inserted, synced.deleted, synced.unchanged) == (1, 4990, 10)
        macs.clear()
        assert macs.entries() == []


def test_packets_come_to_every_thread_that_waits(target: Target) -> None:
    arguments = ["--cpu-port", "510", "-i", "3@gen:rate=100"]
    with weir.connect(target(FEATURES, "p4runtime", *arguments)) as client:
        client.primary()
        packets = client.packets()
        assert packets.next(0.01) is None and packets.lost == 0
        client.table("rules").set_default("punt")
        found: List[Optional[weir.ControllerPacket]] = []
        threads = [threading.Thread(target=lambda: found.extend(packets.next(30) for _ in range(5))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 20
        for packet in found:
            assert packet is not None and packet.metadata == {"ingress_port": 3, "reason": 3}
        assert client.counter("seen", 3)[0] >= 20
        client.packet_out(FRAME, {"egress_port": 1})
        registers = client.table("last_length")
        assert len(registers.entries()) == 16


def test_packets_come_to_every_task_that_waits(target: Target) -> None:
    address = target(FEATURES, "p4runtime", "--cpu-port", "510", "-i", "3@gen:rate=100")

    async def run() -> None:
        async with await weir.aio.connect(address) as client:
            await client.primary()
            await client.table("rules").set_default("punt")
            packets = client.packets()
            found = await asyncio.gather(*(packets.next(30) for _ in range(8)))
            assert all(packet is not None for packet in found)

    asyncio.run(run())


def test_a_program_is_loaded(target: Target, features: weir.Program, router: weir.Program) -> None:
    with weir.connect(target(FEATURES, "p4runtime")) as client:
        client.primary()
        client.set_program(router)
        assert "RouterIngress.ipv4_lpm" in client.tables
        routes = client.table("ipv4_lpm")
        routes.insert({"dst_addr": "10.0.0.0/8"}, "route", {"next_hop": "10.0.0.1", "port": 2})
        assert routes.entries()[0].key == {"hdr.ipv4.dst_addr": weir.Lpm(10 << 24, 8)}
        client.set_program(features, action="verify")
        assert "RouterIngress.ipv4_lpm" in client.tables


def test_bf_runtime_has_the_same_calls(target: Target) -> None:
    program = PROGRAMS / "l2_switch_tna" / "l2_switch_tna.p4"
    with weir.connect(target(program, "bfrt"), "bfrt") as client:
        assert client.protocol == "bfrt"
        name = next(name for name in client.tables if name.endswith("destination_macs"))
        macs = client.table(name)
        key = {macs.info["keys"][0]["name"]: "02:00:00:00:00:01"}
        macs.insert(key, "forward", {"port": 3})
        found = [entry for entry in macs.entries() if not entry.is_default]
        assert [entry.data["port"] for entry in found] == [3]
        macs.delete(key)
        assert all(entry.is_default for entry in macs.entries())
        with pytest.raises(weir.ClientError) as caught:
            macs.delete(key)
        assert caught.value.code == "NOT_FOUND"


def test_asyncio_has_the_same_calls(target: Target) -> None:
    address = target(FEATURES, "p4runtime", "--cpu-port", "510")

    async def use() -> None:
        async with await weir.aio.connect(address) as client:
            await client.primary()
            rules = client.table("rules")
            keys = [{"dst_addr": f"{n}&&&0xff"} for n in range(20)]
            await asyncio.gather(*(rules.insert(key, "to", {"port": 3}, priority=1) for key in keys))
            assert len(await rules.entries()) == 20
            with pytest.raises(weir.ClientError) as caught:
                await rules.insert(keys[0], "to", {"port": 3}, priority=1)
            assert caught.value.code == "ALREADY_EXISTS"
            packets = client.packets()
            assert await packets.next(0.01) is None
            waiting = asyncio.ensure_future(packets.next())
            await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await rules.clear()
            assert await rules.entries() == []

    asyncio.run(use())


def test_a_closed_client_raises(target: Target) -> None:
    client = weir.connect(target(FEATURES, "p4runtime"))
    rules = client.table("rules")
    client.close()
    client.close()
    with pytest.raises(weir.WeirError):
        rules.insert({"dst_addr": "1&&&1"}, "to", {"port": 3}, priority=1)


def test_what_waits_ends_when_the_client_is_closed(target: Target) -> None:
    client = weir.connect(target(FEATURES, "p4runtime", "--cpu-port", "510"))
    packets = client.packets()
    waiting: List[object] = []
    thread = threading.Thread(target=lambda: waiting.extend(packets))
    thread.start()
    client.close()
    thread.join(30)
    assert not thread.is_alive() and waiting == []
    assert list(client.packets()) == []
    with pytest.raises(StopIteration):
        next(packets)
    with pytest.raises(weir.WeirError):
        client.primary()


def test_idle_entries_are_notified(target: Target, tmp_path: Path) -> None:
    with weir.connect(target(FEATURES, "p4runtime")) as client:
        idle = client.idle_entries("rules")
        assert idle.pending() is None and idle.lost == 0
    program = PROGRAMS / "l2_switch_tna" / "l2_switch_tna.p4"
    with weir.connect(target(program, "bfrt"), "bfrt") as client:
        idle = client.idle_entries()
        sources = next(table for table in map(client.table, client.tables) if table.name.endswith("source_macs"))
        name = sources.name
        key = {field["name"]: 1 for field in sources.info["keys"]}
        actions = [action["name"] for action in sources.info["actions"] if not action["parameters"]]
        sources.insert(key, actions[0], {"$ENTRY_TTL": 20})
        found = next(idle)
        assert found.entry.table == name and not found.is_active


def test_digests_come(target: Target) -> None:
    program = PROGRAMS / "l2_switch" / "l2_switch.p4"
    with weir.connect(target(program, "p4runtime", "-i", "3@gen:rate=100")) as client:
        client.primary()
        digests = client.digests("learned_t", max_delay=0)
        found = digests.next(30)
        assert found is not None and found.name == "learned_t" and digests.lost == 0
        [learned] = found.data[:1]
        assert learned == {"mac": 0x020000000001, "port": 3}
        with pytest.raises(weir.ClientError) as caught:
            client.digests("none")
        assert caught.value.code == "NOT_FOUND"


def test_changes_of_ports_come(target: Target) -> None:
    program = PROGRAMS / "l2_switch_tna" / "l2_switch_tna.p4"
    with weir.connect(target(program, "bfrt"), "bfrt") as client:
        changes = client.port_changes()
        ports = client.table("$PORT")
        speed = {"$SPEED": "BF_SPEED_10G", "$FEC": "BF_FEC_TYP_NONE"}
        ports.insert({"$DEV_PORT": 1}, data={**speed, "$PORT_ENABLE": True})
        assert changes.next(30) == weir.PortChange(1, True)
        ports.modify({"$DEV_PORT": 1}, data={"$PORT_ENABLE": False})
        assert changes.next(30) == weir.PortChange(1, False)
        assert changes.pending() is None and changes.lost == 0


def test_both_sides_prove_who_they_are(target: Target) -> None:
    def part(name: str) -> bytes:
        return (CERTIFICATES / name).read_bytes()

    files = ["--tls-cert", "server.pem", "--tls-key", "server.key", "--tls-client-ca", "ca.pem"]
    arguments = [word if word.startswith("--") else str(CERTIFICATES / word) for word in files]
    address = target(FEATURES, "p4runtime", *arguments)
    known = weir.Tls(part("ca.pem"), "localhost", part("client.pem"), part("client.key"))
    with weir.connect(address, tls=known) as client:
        assert client.table("rules").entries() == []
    strangers = [None, weir.Tls(part("ca.pem"), "localhost"), weir.Tls(part("client.pem"), "localhost")]
    for stranger in strangers:
        with pytest.raises(weir.ClientError) as caught:
            weir.connect(address, tls=stranger, reconnect=None)
        assert caught.value.code == "UNAVAILABLE"
