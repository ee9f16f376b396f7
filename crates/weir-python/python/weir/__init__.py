"""P4 programs in Python: compile them, run packets through them, control targets.

>>> import weir
>>> switch = weir.Switch(weir.compile("router.p4"), entries="router.entries")
>>> switch.send(1, packet)
[(2, b'...')]

:func:`compile` gives a :class:`Program` or raises :class:`CompileError`. A :class:`Switch` runs a
program in process, without interfaces or privileges. :func:`connect` gives a client of P4Runtime or
BF Runtime; :mod:`weir.aio` has the same for asyncio. :mod:`weir.ptf` runs PTF tests on a switch in
process.
"""

from __future__ import annotations

from . import _weir  # noqa: F401
from ._client import Client, ClientTable, Subscription, connect
from ._errors import ClientError, CompileError, Diagnostic, SwitchError, UpdateError, WeirError
from ._program import Action, Field, Key, Program, TableInfo, compile, compile_text, load
from ._requests import ControllerPacket, DigestList, IdleEntry, Loaded, PortChange, Synced, Tls
from ._switch import Count, Departure, Digest, Drop, PacketIn, PortStats, Rates, Switch, Table
from ._trace import Node, Place, Trace
from ._values import Entry, Lpm, Range, Ternary, between, lpm, ternary

__all__ = [
    "Action",
    "Client",
    "ClientError",
    "ClientTable",
    "CompileError",
    "ControllerPacket",
    "Count",
    "Departure",
    "Diagnostic",
    "Digest",
    "DigestList",
    "Drop",
    "Entry",
    "Field",
    "IdleEntry",
    "Key",
    "Loaded",
    "Lpm",
    "Node",
    "PacketIn",
    "Place",
    "PortChange",
    "PortStats",
    "Program",
    "Range",
    "Rates",
    "Subscription",
    "Switch",
    "SwitchError",
    "Synced",
    "Table",
    "TableInfo",
    "Ternary",
    "Tls",
    "Trace",
    "UpdateError",
    "WeirError",
    "between",
    "compile",
    "compile_text",
    "connect",
    "load",
    "lpm",
    "ternary",
]
