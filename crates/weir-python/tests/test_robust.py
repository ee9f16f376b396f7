"""Whatever Python code passes: an exception, and nothing worse."""

from __future__ import annotations

import threading
from typing import Any, Callable, List

import pytest
from conftest import ETHERNET

import weir
from weir import _weir

HUGE = 1 << 200

WRONG: List[Callable[[Any], Any]] = [
    lambda s: s.send(-1, b""),
    lambda s: s.send(512, b"x"),
    lambda s: s.send(HUGE, b"x"),
    lambda s: s.send("1", b"x"),
    lambda s: s.send(1, "text"),
    lambda s: s.send(1, 7),
    lambda s: s.send(1, None),
    lambda s: s.send(1, b"x", at=-1),
    lambda s: s.send(1, b"x", at=HUGE),
    lambda s: s.send_many(5),
    lambda s: s.send_many([5]),
    lambda s: s.send_many([(1,)]),
    lambda s: s.send_many([(1, b"x", 3)]),
    lambda s: s.send_many([(1, object())]),
    lambda s: s.advance(to=HUGE),
    lambda s: s.advance(by=-1),
    lambda s: s.table("none"),
    lambda s: s.table("rules").insert({"none": 1}, "to", {"port": 1}),
    lambda s: s.table("rules").insert({"dst_addr": 1}, "none", {}),
    lambda s: s.table("rules").insert({"dst_addr": 1}, "to", {}),
    lambda s: s.table("rules").insert({"dst_addr": 1}, "to", {"port": 1, "x": 1}),
    lambda s: s.table("rules").insert({"dst_addr": 1}, "to", {"port": HUGE}),
    lambda s: s.table("rules").insert({"dst_addr": HUGE}, "to", {"port": 1}),
    lambda s: s.table("rules").insert({"dst_addr": object()}, "to", {"port": 1}),
    lambda s: s.table("rules").insert({"dst_addr": "1.2.3"}, "to", {"port": 1}),
    lambda s: s.table("rules").insert({"ether_type": "5..1"}, "to", {"port": 1}, priority=1),
    lambda s: s.table("rules").insert({"ether_type": weir.lpm(1, 99)}, "to", {"port": 1}, priority=1),
    lambda s: s.table("rules").insert({"dst_addr": 1}, "to", {"port": 1}, priority=-1),
    lambda s: s.table("rules").insert({"dst_addr": 1}, "to", {"port": 1}, priority=HUGE),
    lambda s: s.table("rules").insert({"dst_addr": 1}, "member(9)", priority=1),
    lambda s: s.table("wide").insert({}, "to", {"port": 1}),
    lambda s: s.table("rules").delete(0),
    lambda s: s.table("rules").delete(99),
    lambda s: s.table("rules").delete({"dst_addr": 1}),
    lambda s: s.table("rules").modify(99, "drop"),
    lambda s: s.table("wide").set_default("to", {"port": 1}),
    lambda s: s.register("last_length", HUGE),
    lambda s: s.register("last_length", 16),
    lambda s: s.set_register("last_length", 0, [1, 2]),
    lambda s: s.set_register("last_length", 0, HUGE),
    lambda s: s.set_meter("limits", 9, weir.Rates(1, 1, 1, 1)),
    lambda s: s.set_meter("limits", 0, weir.Rates(HUGE, 1, 1, 1)),
    lambda s: s.set_group(7, [HUGE]),
    lambda s: s.set_group(1 << 20, [1]),
    lambda s: s.set_session(1 << 20, [1]),
    lambda s: s.set_port(600, True),
    lambda s: s.configure("nonsense\n"),
    lambda s: s.configure("packet 1 00\n"),
    lambda s: s.load_entries("none.entries"),
    lambda s: s.trace(600, b"x"),
    lambda s: weir.Switch(s.program, engine="none"),
    lambda s: weir.Switch(s),
    lambda s: _weir.Switch(s, True),
    lambda s: s._native.insert(99, []),
    lambda s: s._native.insert(0, [([1], 0, ("action", 0, []), 0)]),
    lambda s: s._native.insert(0, [([None] * 3, 0, ("action", 99, []), 0)]),
    lambda s: s._native.insert(0, [([("lpm", 1)] * 3, 0, ("action", 1, []), 0)]),
    lambda s: s._native.modify(0, 0, ("action", 1, [])),
    lambda s: weir.connect("nowhere:1", connect_timeout=0.2),
    lambda s: weir.connect("no address"),
    lambda s: weir.connect("localhost:1", "none"),
    lambda s: weir.connect("localhost:1", deadline=-1.0),
    lambda s: weir.connect("localhost:1", connect_timeout=float("nan")),
    lambda s: weir.connect("localhost:1", election_id=-1),
    lambda s: weir.connect("localhost:1", tls=weir.Tls(b"no certificate"), connect_timeout=0.2),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_mistakes_are_exceptions(switch: weir.Switch, number: int) -> None:
    expected = (ValueError, TypeError, KeyError, OverflowError, OSError, weir.WeirError)
    with pytest.raises(expected):
        WRONG[number](switch)
    # The switch goes on.
    switch.table("rules").set_default("to", {"port": 3})
    assert switch.send(1, ETHERNET) == [(3, ETHERNET)]


@pytest.mark.parametrize("length", [0, 1, 13, 14, 15, 9000, 16384, 16385, 70000])
def test_packets_of_any_length_are_taken(switch: weir.Switch, length: int) -> None:
    switch.table("rules").set_default("to", {"port": 3})
    alone = switch.send(1, bytes(length))
    assert switch.send_many([(1, bytes(length))] * 3) == [alone] * 3


def test_threads_may_share_a_switch(switch: weir.Switch) -> None:
    rules = switch.table("rules")
    rules.set_default("to", {"port": 3})
    failures: List[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(50):
                handle = rules.insert({"dst_addr": 1000 + number}, "to", {"port": number}, priority=1)
                assert switch.send_many([(number, ETHERNET)] * 70) == [[(3, ETHERNET)]] * 70
                if step % 10 == 0:
                    assert switch.trace(number, ETHERNET).sent == [(3, ETHERNET)]
                rules.delete(handle)
                len(rules.entries())
        except BaseException as failed:
            failures.append(failed)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sum(item.received.packets for item in switch.ports()) == 4 * 50 * 70
