"""Packets and control state of a switch in process."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest
from conftest import ETHERNET, ROUTES

import weir


def frame(dst: int = 1, ether_type: int = 0x0800, rest: bytes = bytes(46)) -> bytes:
    return dst.to_bytes(6, "big") + bytes(6) + ether_type.to_bytes(2, "big") + rest


def test_packets_go_where_entries_say(switch: weir.Switch) -> None:
    rules = switch.tables["rules"]
    handle = rules.insert({"dst_addr": "00:00:00:00:00:01"}, "to", {"port": 3}, priority=10)
    assert switch.send(1, frame()) == [(3, frame())]
    assert switch.send(1, frame(dst=2)) == []
    rules.modify(handle, "to", {"port": 4})
    assert switch.send(1, frame()) == [(4, frame())]
    rules.delete(handle)
    assert switch.send(1, frame()) == []
    rules.set_default("to", {"port": 9})
    assert switch.send(1, frame()) == [(9, frame())]
    rules.reset_default()
    assert switch.send(1, frame()) == []
    assert (rules.hits, rules.misses) == (2, 4)


def test_every_match_kind_is_read_as_it_was_written(switch: weir.Switch) -> None:
    rules = switch.table("rules")
    rules.insert(
        {"hdr.ethernet.dst_addr": "0x10&&&0xf0", "ether_type": "0x800..0x8ff", "ingress_port": 2},
        "to", {"port": 1}, priority=5,
    )
    rules.insert({"dst_addr": weir.ternary(1, 1)}, "to", {"port": 2}, priority=4)
    rules.insert({"ether_type": weir.between(1, 2)}, "to", {"port": 3}, priority=3)
    first, second, third = rules
    assert first.key == {
        "hdr.ethernet.dst_addr": weir.Ternary(0x10, 0xF0),
        "hdr.ethernet.ether_type": weir.Range(0x800, 0x8FF),
        "std.ingress_port": 2,
    }
    assert (first.action, first.data, first.priority) == ("I.to", {"port": 1}, 5)
    assert second.key["std.ingress_port"] is None
    assert third.key["hdr.ethernet.ether_type"] == weir.Range(1, 2)
    assert len(rules) == 3 and rules.default.action == "I.drop"
    assert "I.to(port=1)" in str(first)
    assert rules.find({"dst_addr": weir.ternary(1, 1)}, priority=4) == second.handle
    assert rules.find({"dst_addr": weir.ternary(1, 1)}, priority=7) is None
    rules.clear()
    assert rules.entries() == []


def test_prefixes_are_texts_networks_or_objects(router: weir.Program) -> None:
    routes = weir.Switch(router).table("ipv4_lpm")
    routes.insert({"dst_addr": "10.0.0.0/8"}, "drop")
    routes.insert({"dst_addr": ipaddress.IPv4Network("10.1.0.0/16")}, "drop")
    routes.insert({"dst_addr": weir.lpm("10.2.0.0", 16)}, "route", {"next_hop": "10.0.0.1", "port": 2})
    routes.insert({"dst_addr": ipaddress.IPv4Address("10.3.0.1")}, "drop")
    found = [entry.key["hdr.ipv4.dst_addr"] for entry in routes]
    assert [(prefix.value, prefix.length) for prefix in found] == [
        (10 << 24, 8), (0x0A010000, 16), (0x0A020000, 16), (0x0A030001, 32)
    ]
    assert routes.entries()[2].data == {"next_hop": 0x0A000001, "port": 2}
    assert "10.2.0.0/16" in str(routes.entries()[2])


def test_numbers_may_be_wide_and_negative(switch: weir.Switch) -> None:
    wide = switch.table("wide")
    value = (1 << 255) + 12345
    wide.insert({"value": value, "small": -3}, "to", {"port": 6})
    assert wide.entries()[0].key == {"hdr.wide.value": value, "hdr.wide.small": 253}
    packet = frame(ether_type=0x9999, rest=value.to_bytes(32, "big") + b"\xfd")
    assert switch.send(1, packet) == [(6, packet)]
    with pytest.raises(ValueError, match="does not fit in 256 bits"):
        wide.insert({"value": 1 << 256, "small": 0}, "to", {"port": 6})
    with pytest.raises(ValueError, match="does not fit in 8 bits"):
        wide.insert({"value": 1, "small": -129}, "to", {"port": 6})


def test_entries_are_inserted_all_or_none(switch: weir.Switch) -> None:
    rules = switch.table("rules")
    entries = [weir.Entry({"dst_addr": n}, "to", {"port": n}, priority=1) for n in (1, 2, 3)]
    assert len(rules.insert_many(entries)) == 3
    with pytest.raises(weir.SwitchError, match="number 1") as caught:
        rules.insert_many([weir.Entry({"dst_addr": 9}, "drop", priority=1), entries[0]])
    assert caught.value.code == "ALREADY_EXISTS"
    assert len(rules) == 3


def test_many_packets_give_what_each_gives_alone(router: weir.Program) -> None:
    one, many = weir.Switch(router, ROUTES), weir.Switch(router, ROUTES)
    base = bytes.fromhex(
        "0200000001010200000001100800" "4500002e00014000401123ab0a00010a0a00020a"
        "0fa01389001a4c9461207765697220696e20612073747265616d"
    )
    packets = [(1, base), (2, base), (1, base[:20]), (1, base[:22] + b"\x01" + base[23:])] * 100
    expected = [one.send(port, data) for port, data in packets]
    assert many.send_many(packets) == expected
    assert len(expected[0]) == 1 and expected[0][0][0] == 2
    interpreted = weir.Switch(router, ROUTES, engine="interp")
    assert interpreted.send_many(iter(packets)) == expected
    assert weir.Switch(router).interpreted == []
    assert many.send_many([]) == []


def test_copies_of_a_group_belong_to_their_packet(switch: weir.Switch) -> None:
    rules = switch.table("rules")
    rules.insert({"dst_addr": 1}, "flood", priority=1)
    rules.insert({"dst_addr": 2}, "to", {"port": 8}, priority=1)
    switch.set_group(7, [1, (2, 5), 3])
    assert switch.group(7) == [(1, 0), (2, 5), (3, 0)]
    packets = [(4, frame(1)), (4, frame(2)), (4, frame(3)), (4, frame(1))]
    ports = [sorted(port for port, _ in out) for out in switch.send_many(packets)]
    assert ports == [[1, 2, 3], [8], [], [1, 2, 3]]
    switch.set_group(7, None)
    assert switch.group(7) is None and switch.send(4, frame(1)) == []


def test_clones_go_to_their_session(switch: weir.Switch) -> None:
    switch.table("rules").insert({"dst_addr": 1}, "copy", {"port": 3}, priority=1)
    switch.set_session(5, [9], truncate=20)
    assert sorted(switch.send(1, frame())) == [(3, frame()), (9, frame()[:20])]
    switch.set_session(5, None)
    assert switch.send(1, frame()) == [(3, frame())]


def test_counters_registers_and_meters(switch: weir.Switch) -> None:
    rules = switch.table("rules")
    handle = rules.insert({"dst_addr": 1}, "to", {"port": 3}, priority=1)
    switch.send_many([(1, frame())] * 3)
    assert switch.counter("seen", 1) == weir.Count(3, 180)
    assert switch.counter("rule_hits", handle).packets == 3
    switch.set_counter("seen", 1, packets=10)
    assert switch.counter("I.seen", 1).packets == 10
    assert switch.register("last_length", 1) == 60
    switch.set_register("last_length", 2, "0xff")
    assert switch.register("last_length", 2) == 255
    switch.set_register("last_length", None, 7)
    assert switch.register("last_length", 15) == 7
    assert switch.meter("limits", 0) is None
    rates = weir.Rates(cir=1, cbs=1, pir=1, pbs=2)
    switch.set_meter("limits", 0, rates)
    assert switch.meter("limits", 0) == rates
    assert sum(len(out) for out in switch.send_many([(1, frame())] * 5)) == 2
    switch.set_meter("limits", None, None)
    assert sum(len(out) for out in switch.send_many([(1, frame())] * 5)) == 5
    with pytest.raises(weir.SwitchError, match="beyond") as caught:
        switch.counter("seen", 4)
    assert caught.value.code == "INVALID_ARGUMENT"
    with pytest.raises(weir.SwitchError, match="no counter is called"):
        switch.counter("none")


def test_packets_to_and_from_the_controller(switch: weir.Switch) -> None:
    switch.table("rules").insert({"dst_addr": 1}, "punt", priority=1)
    sent = switch.send(6, frame())
    assert switch.packets_in(sent) == [weir.PacketIn(frame(), {"ingress_port": 6, "reason": 3})]
    assert switch.packet_out(frame(2), {"egress_port": 4}) == [(4, frame(2))]
    with pytest.raises(KeyError, match="no field"):
        switch.packet_out(frame(), {"none": 1})
    with pytest.raises(ValueError, match="9 bits"):
        switch.packet_out(frame(), {"egress_port": 512})


def test_ports_go_down_and_drops_are_counted(switch: weir.Switch) -> None:
    switch.table("rules").insert({"dst_addr": 1}, "to", {"port": 3}, priority=1)
    switch.set_port(3, False)
    assert not switch.is_up(3) and switch.is_up(4)
    assert switch.send(1, frame()) == []
    assert [drop.packets for drop in switch.drops() if drop.reason == "port-down"] == [1]
    switch.set_port(3, True)
    assert switch.send(1, frame()) == [(3, frame())]
    stats = {item.port: item for item in switch.ports()}
    assert (stats[1].received.packets, stats[3].sent.packets) == (2, 1)


def test_time_is_what_the_caller_says(switch: weir.Switch) -> None:
    rules = switch.table("rules")
    handle = rules.insert({"dst_addr": 1}, "to", {"port": 3}, priority=1, idle_timeout_ns=1000)
    assert switch.now == 0
    switch.send(1, frame(), at=500)
    assert switch.now == 500
    assert switch.advance(by=900) == [] and switch.idle_entries() == []
    switch.advance(to=1500)
    assert [entry.handle for entry in switch.idle_entries()] == [handle]
    with pytest.raises(ValueError, match="one of"):
        switch.advance()


def test_queues_send_at_the_rate_of_their_port(switch: weir.Switch) -> None:
    switch.table("rules").insert({"dst_addr": 1}, "to", {"port": 3}, priority=1)
    switch.configure("port_rate 3 pps 1000\n")
    for _ in range(3):
        switch.receive(1, frame())
    assert [out.time_ns for out in switch.advance(to=5_000_000)] == [0, 1_000_000, 2_000_000]


def test_entries_files_of_every_format_are_loaded(switch: weir.Switch, tmp_path: Path) -> None:
    (tmp_path / "stf").write_text("add rules 5 hdr.ethernet.dst_addr:1 to(port:3)\nmc_mgrp_create 3\n")
    (tmp_path / "cli").write_text("table_add rules I.to 2&&&0xff 0->0xffff 0&&&0 => 4 1\n")
    (tmp_path / "runtime.json").write_text(
        '{"target": "bmv2", "table_entries": [{"table": "I.rules", "match": {"hdr.ethernet.dst_addr": '
        '["00:00:00:00:00:05", "ff:ff:ff:ff:ff:ff"]}, "priority": 2, "action_name": "I.to", '
        '"action_params": {"port": 6}}]}'
    )
    switch.load_entries(tmp_path / "stf")
    switch.load_entries(tmp_path / "runtime.json")
    assert [entry.data["port"] for entry in switch.table("rules")] == [3, 6]
    before = switch.table("rules").entries()
    with pytest.raises(weir.SwitchError, match="wrong.*2"):
        switch.configure("add rules 9 hdr.ethernet.dst_addr:8 to(port:3)\nadd none x:1 to()\n", name="wrong")
    assert switch.table("rules").entries() == before


def test_digests_are_taken(tmp_path: Path) -> None:
    from conftest import PROGRAMS

    switch = weir.Switch(PROGRAMS / "l2_switch" / "l2_switch.p4")
    switch.send(3, ETHERNET, at=77)
    [digest] = switch.digests()
    assert (digest.name, digest.fields) == ("learned_t", {"mac": 0x020000000001, "port": 3})
    assert digest.time_ns == 77 and switch.digests() == []


def test_a_trace_says_why_and_changes_nothing(switch: weir.Switch) -> None:
    switch.table("rules").insert({"dst_addr": 1}, "to", {"port": 3}, priority=1)
    trace = switch.trace(1, frame())
    assert trace.sent == [(3, frame())]
    [table] = trace.tables
    assert table["table"] == "I.rules" and table["hit"] and table["action"] == "I.to"
    assert table.place is not None and table.place.file.endswith("features.p4")
    assert trace.fates[-1]["dropped"] is False
    assert "rules.apply();" in trace.text and "why:" in str(trace)
    assert "<pre>" in trace._repr_html_()
    assert switch.counter("seen", 1).packets == 0 and switch.table("rules").hits == 0
    dropped = switch.trace(1, frame(9))
    assert dropped.sent == [] and dropped.fates[-1]["dropped"]


def test_scapy_packets_are_taken(switch: weir.Switch) -> None:
    from scapy.all import IP, UDP, Ether

    switch.table("rules").insert({"dst_addr": "00:00:00:00:00:01"}, "to", {"port": 3}, priority=1)
    packet = Ether(dst="00:00:00:00:00:01", src="00:00:00:00:00:02") / IP(dst="10.0.0.1") / UDP()
    [(port, data)] = switch.send(1, packet)
    assert port == 3 and Ether(data)[IP].dst == "10.0.0.1"
    assert switch.send_many([(1, packet)]) == [[(3, data)]]


def test_the_port_of_the_controller_is_one_that_exists(features: weir.Program) -> None:
    for port in (100000, -1):
        with pytest.raises(ValueError, match="port"):
            weir.Switch(features, cpu_port=port)
