"""A switch in process."""

from __future__ import annotations

import html
import os
from dataclasses import dataclass
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, SupportsBytes
from typing import Tuple, Union

from . import _weir
from ._program import Field, Path, Program, TableInfo
from ._trace import Trace
from ._values import Entry, Lowered, Match, Number, find, lowered, number, raised, show

Data = Union[bytes, bytearray, memoryview, SupportsBytes]
"""The bytes of a packet, or anything that ``bytes()`` takes."""


class Departure(NamedTuple):
    """A packet that left."""

    port: int
    data: bytes
    time_ns: int


@dataclass(frozen=True)
class Count:
    """A counter."""

    packets: int
    bytes: int


@dataclass(frozen=True)
class PortStats:
    """A port that received or sent anything."""

    port: int
    received: Count
    sent: Count
    is_up: bool


@dataclass(frozen=True)
class Drop:
    """Packets that were dropped for one reason at one place."""

    reason: str
    place: Optional[str]
    packets: int


@dataclass(frozen=True)
class Rates:
    """Rates of a meter in tokens per second, and sizes of its buckets in tokens. A token is a packet
    or a byte, as the program says."""

    cir: int
    cbs: int
    pir: int
    pbs: int


@dataclass(frozen=True)
class Digest:
    """A message of the program to the controller."""

    name: str
    fields: Dict[str, int]
    time_ns: int


@dataclass(frozen=True)
class PacketIn:
    """A packet for the controller: the bytes behind the header, and the header's fields."""

    payload: bytes
    metadata: Dict[str, int]


class Table:
    """A table of a switch. It is iterable: its entries, oldest first."""

    def __init__(self, native: "_weir.Switch", place: int, info: TableInfo) -> None:
        self._native = native
        self._place = place
        self.info = info
        """Keys and actions."""

    @property
    def name(self) -> str:
        """The full name."""
        return self.info.name

    def insert(
        self,
        key: Mapping[str, Match],
        action: str,
        data: Optional[Mapping[str, Number]] = None,
        *,
        priority: int = 0,
        idle_timeout_ns: int = 0,
    ) -> int:
        """Inserts an entry, and gives its handle.

        Keys and actions may be called by an ending of their name. Keys that are left out match
        anything. ``action`` may be ``member(N)`` or ``group(N)`` for a table with an action profile.

        :raises SwitchError: the entry exists, or the table does not take it.
        """
        entry = Entry(dict(key), action, dict(data or {}), priority, idle_timeout_ns=idle_timeout_ns)
        return self.insert_many([entry])[0]

    def insert_many(self, entries: Iterable[Entry]) -> List[int]:
        """Inserts entries, all or none, and gives their handles."""
        given = [
            (self._keys(e.key), e.priority, self._action(e.action, e.data), e.idle_timeout_ns) for e in entries
        ]
        return self._native.insert(self._place, given)

    def find(self, key: Mapping[str, Match], *, priority: int = 0) -> Optional[int]:
        """The handle of the entry with exactly this key; ``None``: there is none."""
        return self._native.find(self._place, self._keys(key), priority)

    def modify(
        self, which: Union[int, Mapping[str, Match]], action: str, data: Optional[Mapping[str, Number]] = None,
        *, priority: int = 0,
    ) -> None:
        """Gives an entry another action; ``which`` is its handle or its key.

        :raises SwitchError: there is no such entry.
        """
        self._native.modify(self._place, self._handle(which, priority), self._action(action, data or {}))

    def delete(self, which: Union[int, Mapping[str, Match]], *, priority: int = 0) -> None:
        """Deletes an entry, by its handle or its key.

        :raises SwitchError: there is no such entry.
        """
        self._native.delete(self._place, self._handle(which, priority))

    def clear(self) -> None:
        """Deletes all entries that are not const."""
        self._native.clear(self._place)

    def set_default(self, action: str, data: Optional[Mapping[str, Number]] = None) -> None:
        """Sets the action of packets that match no entry."""
        _, place, arguments = self._action(action, data or {})
        self._native.set_default(self._place, (place, arguments))

    def reset_default(self) -> None:
        """Sets the default action to that of the program."""
        self._native.set_default(self._place, None)

    @property
    def default(self) -> Entry:
        """The default entry."""
        entry = Entry(table=self.name, is_default=True)
        self._set_action(entry, self._native.default_action(self._place))
        return entry

    def entries(self) -> List[Entry]:
        """All entries, oldest first."""
        return [self._entry(item) for item in self._native.entries(self._place)]

    @property
    def hits(self) -> int:
        """Lookups that found an entry."""
        return self._native.table_counts(self._place)[1]

    @property
    def misses(self) -> int:
        """Lookups that found none."""
        return self._native.table_counts(self._place)[2]

    def __len__(self) -> int:
        return self._native.table_counts(self._place)[0]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries())

    def __repr__(self) -> str:
        return f"<weir.Table {self.name}: {len(self)} entries>"

    def _repr_html_(self) -> str:
        heads = [key.name for key in self.info.keys] + ["priority", "action", "data"]
        rows = []
        for entry in [*self.entries(), self.default]:
            keys = ["default" if entry.is_default else show(k.name, entry.key.get(k.name)) for k in self.info.keys]
            data = ", ".join(f"{name}={show(name, value)}" for name, value in entry.data.items())
            cells = [*keys, str(entry.priority or ""), entry.action or "", data]
            rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
        head = "".join(f"<th>{html.escape(text)}</th>" for text in heads)
        return f"<table><caption>{html.escape(self.name)}</caption><tr>{head}</tr>{''.join(rows)}</table>"

    def _keys(self, key: Mapping[str, Match]) -> List[Lowered]:
        keys: List[Lowered] = [None] * len(self.info.keys)
        for name, value in key.items():
            keys[self.info.key(name)] = lowered(value)
        return keys

    def _action(self, action: Optional[str], data: Mapping[str, Number]) -> Tuple[str, int, List[int]]:
        if action is None:
            raise ValueError(f"{self.name}: an entry needs an action")
        form, _, rest = action.partition("(")
        if rest and form in ("member", "group"):
            return (form, int(rest.rstrip(")")), [])
        place = self.info.action(action)
        parameters = self.info.actions[place].parameters
        known = [parameter.name for parameter in parameters]
        for name in data:
            if name not in known:
                raise KeyError(f"action {action} has no parameter `{name}`; it has {', '.join(known) or 'none'}")
        missing = [name for name in known if name not in data]
        if missing:
            raise KeyError(f"action {action} needs {', '.join(missing)}")
        return ("action", place, [number(data[name]) for name in known])

    def _handle(self, which: Union[int, Mapping[str, Match]], priority: int) -> int:
        if isinstance(which, int):
            return which
        return self.find(which, priority=priority) or 0

    def _entry(self, item: Tuple[int, List[Any], int, Tuple[str, int, List[int]], bool, int]) -> Entry:
        handle, keys, priority, action, is_const, idle = item
        names = (key.name for key in self.info.keys)
        entry = Entry(
            dict(zip(names, (raised(key) for key in keys))),
            priority=priority,
            table=self.name,
            is_const=is_const,
            handle=handle,
            idle_timeout_ns=idle,
        )
        self._set_action(entry, action)
        return entry

    def _set_action(self, entry: Entry, item: Tuple[str, int, List[int]]) -> None:
        form, place, arguments = item
        if form == "action":
            action = self.info.actions[place]
            entry.action = action.name
            entry.data = dict(zip((p.name for p in action.parameters), arguments))
        else:
            entry.action = f"{form}({place})"


class Tables(Mapping[str, Table]):
    """The tables of a switch, by their names or unique endings of them."""

    def __init__(self, native: "_weir.Switch", program: Program) -> None:
        self._tables = [Table(native, place, info) for place, info in enumerate(program.tables)]
        self._names = [table.name for table in self._tables]

    def __getitem__(self, name: str) -> Table:
        return self._tables[find("table", name, self._names)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._tables)


class Switch:
    """A program on ports, in process: no interfaces, no privileges, no clock of its own.

    Threads may share a switch: calls run one after another, and hold no lock of Python's while they
    do. ``engine`` is ``jit`` or ``interp``; a program that cannot be compiled is interpreted
    (:attr:`interpreted` says why). ``entries`` are files as ``weir test`` and ``weir run --entries``
    read them: STF, lines of simple_switch_CLI, runtime files of the P4 tutorials.
    """

    def __init__(
        self,
        program: Union[Program, Path],
        entries: Union[Path, Sequence[Path]] = (),
        *,
        engine: str = "jit",
        cpu_port: Optional[int] = None,
    ) -> None:
        if engine not in ("jit", "interp"):
            raise ValueError(f"expected the engine jit or interp, found {engine}")
        if not isinstance(program, Program):
            from ._program import compile

            program = compile(program)
        self.program = program
        """The program."""
        self.cpu_port = cpu_port
        """The port of the controller, for :meth:`packet_in` and :meth:`packet_out`."""
        self._native = _weir.Switch(program._native, engine == "jit")
        if cpu_port is not None:
            self._native.check_port(cpu_port)
        self.tables = Tables(self._native, program)
        """The tables, by name."""
        files = [entries] if isinstance(entries, (str, os.PathLike)) else entries
        for file in files:
            self.load_entries(file)

    @property
    def interpreted(self) -> List[str]:
        """Why packets are interpreted, in whole or in part. Empty: all is machine code."""
        return self._native.interpreted

    # ---------------------------------------------------------------------------- packets

    def send(self, port: int, data: Data, *, at: Optional[int] = None) -> List[Tuple[int, bytes]]:
        """Runs one packet through the switch, and gives what leaves: ports and bytes.

        ``data`` is ``bytes``, or anything that ``bytes()`` takes, such as a packet of scapy. ``at`` is
        the time in ns; a time before the switch's clock counts as now.

        :raises ValueError: there is no such port.
        """
        return self._native.send(port, data, at)

    def send_many(
        self, packets: Iterable[Tuple[int, Data]], *, at: Optional[int] = None
    ) -> List[List[Tuple[int, bytes]]]:
        """Runs packets as vectors through the compiled program: for each what left because of it."""
        return self._native.send_many(packets, at)

    def receive(self, port: int, data: Data, *, at: Optional[int] = None) -> None:
        """Takes a packet in; what comes of it waits in the queues until :meth:`advance`."""
        self._native.receive(port, data, at)

    def advance(self, *, by: Optional[int] = None, to: Optional[int] = None) -> List[Departure]:
        """Moves the clock by or to a time in ns, and gives what leaves until then: packets in queues,
        and those of packet generators."""
        if (by is None) == (to is None):
            raise ValueError("expected one of `by` and `to`")
        target = to if to is not None else self.now + (by or 0)
        return [Departure(*item) for item in self._native.advance(target)]

    @property
    def now(self) -> int:
        """The clock in ns."""
        return self._native.now()

    def trace(self, port: int, data: Data, *, at: Optional[int] = None) -> Trace:
        """Why does this packet do what it does? A tree of parser states, tables, branches and fates.

        The packet runs on a copy of the switch: neither counters nor registers of this one change.
        """
        return Trace(*self._native.trace(port, data, at))

    def packet_out(
        self, payload: Data, metadata: Optional[Mapping[str, Number]] = None, *, at: Optional[int] = None
    ) -> List[Tuple[int, bytes]]:
        """Sends a packet from the controller, behind the header ``packet_out`` of the program.

        Fields that are left out are 0.
        """
        header = _encode(self.program.packet_out, metadata or {}, "packet_out")
        return self.send(self._controller(), header + bytes(payload), at=at)

    def packet_in(self, data: Data) -> PacketIn:
        """A packet that left by the controller's port, without the header ``packet_in``."""
        return _decode(self.program.packet_in, bytes(data))

    def packets_in(self, sent: Iterable[Tuple[int, bytes]]) -> List[PacketIn]:
        """Of packets that left, those for the controller."""
        port = self._controller()
        return [self.packet_in(data) for to, data in sent if to == port]

    def _controller(self) -> int:
        if self.cpu_port is None:
            raise ValueError("the switch has no port for the controller: Switch(…, cpu_port=N)")
        return self.cpu_port

    # ---------------------------------------------------------------------------- control

    def load_entries(self, path: Path) -> None:
        """Executes a file of entries, in any format that weir reads. All or nothing.

        :raises SwitchError: a line cannot be executed; all of them are named.
        """
        with open(path, encoding="utf-8") as file:
            self.configure(file.read(), name=os.fspath(path))

    def configure(self, text: str, *, name: str = "entries") -> None:
        """Executes directives: entries, groups, sessions, meters, ports (docs/stf.md). All or
        nothing."""
        self._native.configure(text, name)

    def table(self, name: str) -> Table:
        """A table by its name or a unique ending of it."""
        return self.tables[name]

    def counter(self, name: str, index: int = 0) -> Count:
        """A counter; of a direct counter, ``index`` is the handle of the entry."""
        return Count(*self._native.counter(name, index))

    def set_counter(self, name: str, index: Optional[int] = None, *, packets: int = 0, bytes: int = 0) -> None:
        """Sets a counter; without an index all of the array."""
        self._native.set_counter(name, index, packets, bytes)

    def meter(self, name: str, index: int = 0) -> Optional[Rates]:
        """The rates of a meter; ``None``: no limit."""
        found = self._native.meter(name, index)
        return None if found is None else Rates(*found)

    def set_meter(self, name: str, index: Optional[int], rates: Optional[Rates]) -> None:
        """Sets the rates of a meter (``None``: no limit); an index of ``None`` means all."""
        given = None if rates is None else (rates.cir, rates.cbs, rates.pir, rates.pbs)
        self._native.set_meter(name, index, given)

    def register(self, name: str, index: int = 0) -> Union[int, Tuple[int, ...]]:
        """A cell of a register: a number, or one for each field of its struct."""
        values = self._native.register(name, index)
        return values[0] if len(values) == 1 else tuple(values)

    def set_register(self, name: str, index: Optional[int], value: Union[Number, Sequence[Number]]) -> None:
        """Sets a cell of a register; an index of ``None`` means all."""
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        self._native.set_register(name, index, [number(v) for v in values])  # type: ignore[arg-type]

    def set_group(self, group: int, ports: Optional[Iterable[Union[int, Tuple[int, int]]]]) -> None:
        """Sets the ports of a multicast group, or ports with instances; ``None`` removes it."""
        self._native.set_group(group, None if ports is None else _replicas(ports))

    def group(self, group: int) -> Optional[List[Tuple[int, int]]]:
        """Ports and instances of a multicast group; ``None``: there is none."""
        return self._native.group(group)

    def set_session(
        self,
        session: int,
        ports: Optional[Iterable[Union[int, Tuple[int, int]]]],
        *,
        group: Optional[int] = None,
        truncate: int = 0,
    ) -> None:
        """Sets a clone session; ``None`` removes it. ``truncate``: the longest clone in bytes, 0: all."""
        self._native.set_session(session, None if ports is None else _replicas(ports), group, truncate)

    def digests(self) -> List[Digest]:
        """Takes the digests that the program has made."""
        return [Digest(name, dict(fields), time) for name, fields, time in self._native.digests()]

    def messages(self) -> List[str]:
        """Takes the texts of ``log_msg`` and of assertions that failed."""
        return [text for text, _ in self._native.messages()]

    def idle_entries(self) -> List[Entry]:
        """Entries that were not hit for their idle time-out."""
        tables = [self.tables[name] for name in self.tables]
        idle = self._native.idle_entries()
        return [entry for place, handle in idle for entry in tables[place] if entry.handle == handle]

    # ------------------------------------------------------------------------------ ports

    def set_port(self, port: int, up: bool) -> None:
        """A port comes up or goes down. At first all are up."""
        self._native.set_port(port, up)

    def is_up(self, port: int) -> bool:
        """Whether a port is up."""
        return self._native.is_up(port)

    def ports(self) -> List[PortStats]:
        """Ports that received or sent anything."""
        return [PortStats(port, Count(*rx), Count(*tx), up) for port, rx, tx, up in self._native.ports()]

    def drops(self) -> List[Drop]:
        """Packets that were dropped, by reason and place."""
        return [Drop(*item) for item in self._native.drops()]

    # -------------------------------------------------------------------------- notebooks

    def svg(self) -> str:
        """The pipeline, with hits and misses in the boxes of tables."""
        counts = ((name, self._native.table_counts(place)) for place, name in enumerate(self.tables))
        notes = {name: f"{hits} hits, {misses} misses" for name, (_, hits, misses) in counts}
        return self.program.svg(notes=notes)

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        tables = "".join(self.tables[name]._repr_html_() for name in self.tables)
        return f"<div>{self.svg()}</div>{tables}"

    def __repr__(self) -> str:
        return f"<weir.Switch {self.program.name}>"


def _replicas(ports: Iterable[Union[int, Tuple[int, int]]]) -> List[Tuple[int, int]]:
    return [(port, 0) if isinstance(port, int) else (port[0], port[1]) for port in ports]


def _encode(fields: Optional[Tuple[Field, ...]], values: Mapping[str, Number], what: str) -> bytes:
    known = [field.name for field in fields or ()]
    for name in values:
        if name not in known:
            raise KeyError(f"the header {what} has no field `{name}`; it has {', '.join(known) or 'none'}")
    whole, bits = 0, 0
    for field in fields or ():
        width = field.width or 0
        value = number(values.get(field.name, 0))
        if not 0 <= value < 1 << width:
            raise ValueError(f"{what}.{field.name}: {value} does not fit in {width} bits")
        whole, bits = whole << width | value, bits + width
    if bits % 8:
        raise ValueError(f"the header {what} has {bits} bits, which are no whole bytes")
    return whole.to_bytes(bits // 8, "big")


def _decode(fields: Optional[Tuple[Field, ...]], data: bytes) -> PacketIn:
    bits = sum(field.width or 0 for field in fields or ())
    if bits % 8 or len(data) * 8 < bits:
        raise ValueError(f"a packet of {len(data)} bytes has no header packet_in, which has {bits} bits")
    whole, metadata = int.from_bytes(data[: bits // 8], "big"), {}
    left = bits
    for field in fields or ():
        left -= field.width or 0
        metadata[field.name] = whole >> left & (1 << (field.width or 0)) - 1
    return PacketIn(data[bits // 8 :], metadata)
