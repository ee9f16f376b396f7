"""PTF tests on a switch in process: no interfaces, no privileges.

.. code-block:: console

    ptf --test-dir tests --allow-user \\
        --platform weir_switch --platform-dir "$(python -m weir.ptf)" \\
        --platform-args "program=router.p4;entries=router.entries;ports=0-7"

Tests are unmodified: ``send_packet`` runs the switch at once, ``verify_packet`` reads what left.
Tests that set tables find the switch by :func:`switch_of`.
"""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Any, Deque, Dict, List, MutableMapping, Optional, Tuple

from .. import Switch, compile
from .._program import Path

PLATFORMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "platforms")
"""The folder for ``--platform-dir``."""


def platform_dir() -> str:
    """The folder for ``--platform-dir``."""
    return PLATFORMS


def switch_of(config: MutableMapping[str, Any]) -> Switch:
    """The switch of a run: ``weir.ptf.switch_of(ptf.config)``.

    :raises LookupError: the run has another platform.
    """
    switch = config.get("weir_switch")
    if not isinstance(switch, Switch):
        raise LookupError("the run has no switch in process: --platform weir_switch")
    return switch


class PacketSource:
    """What left a switch, in order, for the thread of PTF that reads packets."""

    def __init__(self, device: int, switch: Switch) -> None:
        self.device = device
        self.switch = switch
        self.ports: Dict[int, None] = {}
        self._packets: Deque[Tuple[int, bytes]] = deque()
        self._reader, self._writer = os.pipe()

    def fileno(self) -> int:
        """Readable while there are packets."""
        return self._reader

    def recv(self) -> Optional[Tuple[int, int, bytes, float]]:
        """The next packet: device, port, bytes, time."""
        os.read(self._reader, 1)
        port, data = self._packets.popleft()
        return (self.device, port, data, time.time()) if port in self.ports else None

    def send(self, port: int, data: bytes) -> int:
        """Sends a packet to the switch, and keeps what leaves."""
        for out, packet in self.switch.send(port, data, at=time.monotonic_ns()):
            self._packets.append((out, packet))
            os.write(self._writer, b"\0")
        return len(data)

    def __del__(self) -> None:
        os.close(self._reader)
        os.close(self._writer)


class Port:
    """A port of the switch, in the form that ``ptf.dataplane`` has for ports."""

    def __init__(self, interface_name: Any, device_number: int, port_number: int, config: Any = None) -> None:
        self.interface_name = interface_name
        self._source: PacketSource = config["weir_sources"][device_number]
        self._port = port_number
        self._source.ports[port_number] = None

    def get_packet_source(self) -> PacketSource:
        """All ports of a switch have one."""
        return self._source

    def send(self, packet: Any) -> int:
        """Sends a packet to the switch."""
        return self._source.send(self._port, bytes(packet))

    def down(self) -> None:
        """The link goes down."""
        self._source.switch.set_port(self._port, False)

    def up(self) -> None:
        """The link comes up."""
        self._source.switch.set_port(self._port, True)

    def mac(self) -> str:
        """An address for the port."""
        return f"00:00:5e:00:53:{self._port & 0xFF:02x}"


def attach(
    config: MutableMapping[str, Any],
    switch: Switch,
    ports: List[int],
    device: int = 0,
) -> None:
    """Makes a run of PTF use a switch: what the platform ``weir_switch`` does, for own platforms."""
    config["weir_switch"] = switch
    sources = config.setdefault("weir_sources", {})
    sources[device] = PacketSource(device, switch)
    dataplane = config.get("dataplane")
    config["dataplane"] = {**(dataplane if isinstance(dataplane, dict) else {}), "portclass": Port}
    port_map = config.get("port_map") or {}
    port_map.update({(device, port): f"weir{port}" for port in ports})
    config["port_map"] = port_map


def ports_of(text: str) -> List[int]:
    """Ports of a text such as ``0-3,7``."""
    found: List[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def configure(config: MutableMapping[str, Any], arguments: str) -> None:
    """Makes the switch that ``--platform-args`` describes: ``program=FILE``, and optionally
    ``entries=FILE``, ``ports=0-7``, ``include=FOLDER``, ``define=NAME=VALUE``, ``engine=interp``,
    separated by ``;``.

    :raises ValueError: an argument is missing or unknown.
    """
    options: Dict[str, List[str]] = {}
    for part in filter(None, (part.strip() for part in arguments.split(";"))):
        name, equal, value = part.partition("=")
        if name not in ("program", "entries", "ports", "include", "define", "engine") or not equal:
            raise ValueError(f"--platform-args: `{part}` is none of program=, entries=, ports=, include=, …")
        options.setdefault(name, []).append(value)
    if "program" not in options:
        raise ValueError("--platform-args: program=FILE is missing")
    path: Path = options["program"][-1]
    program = compile(path, include=options.get("include", []), define=options.get("define", []))
    switch = Switch(program, options.get("entries", []), engine=options.get("engine", ["jit"])[-1])
    interfaces = [int(port) for _, port, _ in config.get("interfaces") or []]
    attach(config, switch, interfaces or ports_of(options.get("ports", ["0-7"])[-1]))
