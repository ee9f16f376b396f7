"""The client of both protocols, for threads. :mod:`weir.aio` has the one for asyncio."""

from __future__ import annotations

import json
import time
from concurrent.futures import TimeoutError as Timeout
from typing import Any, Dict, Generic, Iterable, Iterator, List, Mapping, Optional, Tuple, TypeVar

from ._pending import waited
from ._program import Program
from ._requests import (
    ControllerPacket,
    DigestList,
    Events,
    IdleEntry,
    Loaded,
    PortChange,
    Requests,
    Synced,
    Tls,
    Update,
    connected,
    packet_of,
)
from ._values import Entry, Match, Number, Value, find

T = TypeVar("T")


class ClientTable:
    """A table of a target: of entries, or of counters, meters, registers, groups, members."""

    def __init__(self, requests: Requests, info: Mapping[str, Any]) -> None:
        self._requests = requests
        self.info: Mapping[str, Any] = info
        """Its description: kind, keys, actions, data."""
        self.name: str = info["name"]
        """The full name."""

    def entry(
        self,
        key: Optional[Mapping[str, Match]] = None,
        action: Optional[str] = None,
        data: Optional[Mapping[str, Value]] = None,
        *,
        priority: int = 0,
    ) -> Entry:
        """An entry of this table, for requests with many. Without a key it is the default entry."""
        return Entry(dict(key or {}), action, dict(data or {}), priority, self.name, key is None)

    def insert(
        self,
        key: Mapping[str, Match],
        action: Optional[str] = None,
        data: Optional[Mapping[str, Value]] = None,
        *,
        priority: int = 0,
    ) -> None:
        """Inserts an entry that must not exist.

        :raises ClientError: the target refuses it.
        """
        self._update("insert", self.entry(key, action, data, priority=priority))

    def modify(
        self,
        key: Mapping[str, Match],
        action: Optional[str] = None,
        data: Optional[Mapping[str, Value]] = None,
        *,
        priority: int = 0,
    ) -> None:
        """Modifies an entry that must exist; sets counters, meters and registers."""
        self._update("modify", self.entry(key, action, data, priority=priority))

    def set(
        self,
        key: Mapping[str, Match],
        action: Optional[str] = None,
        data: Optional[Mapping[str, Value]] = None,
        *,
        priority: int = 0,
    ) -> None:
        """Inserts an entry, or modifies it if it exists."""
        self._update("insert_or_modify", self.entry(key, action, data, priority=priority))

    def delete(self, key: Mapping[str, Match], *, priority: int = 0) -> None:
        """Deletes an entry."""
        self._update("delete", self.entry(key, priority=priority))

    def set_default(self, action: str, data: Optional[Mapping[str, Value]] = None) -> None:
        """Sets the action of packets that match no entry."""
        self._update("modify", self.entry(None, action, data))

    def reset_default(self) -> None:
        """Sets the default action to that of the program."""
        self._update("delete", self.entry(None))

    def default(self) -> Optional[Entry]:
        """The default entry."""
        found = waited(self._requests.read(self.name, default=True))
        return found[0] if found else None

    def get(self, key: Mapping[str, Match], *, priority: int = 0) -> Optional[Entry]:
        """The entry with this key; ``None``: there is none."""
        found = waited(self._requests.read(self.name, self.entry(key, priority=priority)))
        return found[0] if found else None

    def entries(self) -> List[Entry]:
        """All entries."""
        return waited(self._requests.read(self.name))

    def clear(self) -> None:
        """Deletes all entries."""
        waited(self._requests.clear(self.name))

    def sync(self, entries: Iterable[Entry]) -> Synced:
        """Makes the table hold these entries and no others, by the changes that are needed."""
        return waited(self._requests.sync(self.name, entries))

    def operation(self, name: str) -> None:
        """An operation on the whole table (BF Runtime), such as ``SyncCounters``."""
        waited(self._requests.operation(self.name, name))

    def _update(self, operation: str, entry: Entry) -> None:
        waited(self._requests.write([(operation, entry)], "continue"))

    def __repr__(self) -> str:
        return f"<weir table {self.name}: {self.info['kind']}>"


class Subscription(Generic[T]):
    """Events of one kind, in order."""

    def __init__(self, events: "Events[T]") -> None:
        self._events = events

    def next(self, timeout: Optional[float] = None) -> Optional[T]:
        """The next event; ``None`` after so many seconds, or when the client is closed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            found = self._events.take()
            if found is not None:
                return found
            future = self._events.wait()
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                is_open = future.result(left)
            except (TimeoutError, Timeout):
                future.cancel()
                return self._events.take()
            except BaseException:
                future.cancel()
                raise
            if not is_open:
                return self._events.take()
            # Another thread may take the event first: then this call waits for the next one.

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        found = self.next()
        if found is None:
            raise StopIteration
        return found

    def pending(self) -> Optional[T]:
        """The next event, if there is one; does not wait."""
        return self._events.take()

    @property
    def lost(self) -> int:
        """Events that were dropped because the queue was full."""
        return self._events.native.lost()


class Client:
    """Controls a target by P4Runtime or BF Runtime. :func:`connect` makes one."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._schema: Dict[str, Any] = json.loads(requests.native.schema())

    @property
    def protocol(self) -> str:
        """``p4runtime`` or ``bfrt``."""
        return str(self._schema["protocol"])

    @property
    def tables(self) -> List[str]:
        """Names of all tables, those of counters, meters, registers and groups among them."""
        return [table["name"] for table in self._schema["tables"]]

    @property
    def standing(self) -> str:
        """``primary``, ``backup``, ``observer``, ``connecting`` or ``lost``."""
        return self._requests.native.standing()[0]

    def table(self, name: str) -> ClientTable:
        """A table by its name or a unique ending of it.

        :raises KeyError: there is none, or there are several.
        """
        return ClientTable(self._requests, self._schema["tables"][find("table", name, self.tables)])

    def primary(self) -> None:
        """Waits until this client controls the target."""
        waited(self._requests.primary())

    def refresh(self) -> None:
        """Reads the description of the target's program again."""
        waited(self._requests.refresh())
        self._schema = json.loads(self._requests.native.schema())

    def set_program(self, program: Program, *, action: str = "commit", name: Optional[str] = None) -> None:
        """Loads a program. ``action`` is ``commit``, ``reconcile`` (P4Runtime: keeps state) or
        ``verify``; ``name`` is that of the program at a BF Runtime target.
        """
        waited(self._requests.set_program(program, action, name))
        self._schema = json.loads(self._requests.native.schema())

    def write(self, updates: Iterable[Update], *, atomicity: str = "continue") -> None:
        """Writes updates in one request: pairs of ``insert``, ``modify``, ``insert_or_modify`` or
        ``delete`` and an entry. ``atomicity`` is ``continue``, ``rollback`` or ``atomic``.

        :raises ClientError: some failed; it lists them.
        """
        waited(self._requests.write(updates, atomicity))

    def load(
        self,
        entries: Iterable[Entry],
        *,
        operation: str = "insert",
        batch_size: int = 2500,
        in_flight: int = 4,
    ) -> Loaded:
        """Writes many entries, with several requests in flight. Failures are in the result."""
        return waited(self._requests.load(entries, operation, batch_size, in_flight))

    def counter(self, name: str, index: int = 0) -> Tuple[int, int]:
        """Packets and bytes of an indexed counter."""
        table = self.table(name)
        key = table.info["keys"][0]["name"]
        found = table.get({key: index})
        data = {} if found is None else found.data
        return (int(_cell(data, "PKTS")), int(_cell(data, "BYTES")))

    def packet_out(self, payload: bytes, metadata: Optional[Mapping[str, Number]] = None) -> None:
        """Sends a packet from the controller (P4Runtime). Fields that are left out are 0."""
        waited(self._requests.packet_out(bytes(payload), metadata or {}))

    def packets(self, *, capacity: int = 1024, wait: bool = False) -> "Subscription[ControllerPacket]":
        """Packets for the controller (P4Runtime). ``wait``: a full queue holds back the stream instead
        of dropping events."""
        return Subscription(Events(self._requests.native.packets(capacity, wait), packet_of))

    def digests(
        self,
        name: str,
        *,
        max_delay: float = 0.01,
        max_list: int = 1000,
        capacity: int = 1024,
        wait: bool = False,
    ) -> "Subscription[DigestList]":
        """Digests of one kind."""
        found = waited(self._requests.digests(name, max_delay, max_list, capacity, wait))
        return Subscription(found)

    def idle_entries(
        self, table: Optional[str] = None, *, capacity: int = 1024, wait: bool = False
    ) -> "Subscription[IdleEntry]":
        """Entries of a table, or of all, that had no hit for their time-out."""
        return Subscription(waited(self._requests.idle_entries(table, capacity, wait)))

    def port_changes(self, *, capacity: int = 1024, wait: bool = False) -> "Subscription[PortChange]":
        """Ports that go up or down (BF Runtime)."""
        return Subscription(waited(self._requests.port_changes(capacity, wait)))

    def close(self) -> None:
        """Ends the stream to the target."""
        waited(self._requests.close())

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<weir client: {self.protocol}, {self.standing}>"


def _cell(data: Mapping[str, Value], unit: str) -> Any:
    found = (value for name, value in data.items() if name.endswith(unit))
    return next(found, 0)


def connect(
    address: str,
    protocol: str = "p4runtime",
    *,
    device_id: Optional[int] = None,
    role: str = "",
    election_id: int = 1,
    client_id: int = 1,
    program: Optional[str] = None,
    observer: bool = False,
    deadline: float = 60.0,
    connect_timeout: float = 5.0,
    reconnect: Optional[float] = 0.2,
    tls: Optional[Tls] = None,
) -> Client:
    """Connects to a target: ``HOST[:PORT]``, ``[IPV6]:PORT`` or ``unix:PATH``.

    ``protocol`` is ``p4runtime`` (port 9559, device 1) or ``bfrt`` (port 50052, device 0). An
    ``observer`` only reads. ``deadline`` and ``connect_timeout`` are in seconds; ``reconnect`` is the
    first delay before a lost connection is made again, ``None``: it is not.

    :raises ClientError: the target cannot be reached, or refuses the client.
    """
    return Client(
        waited(
            connected(
                address,
                protocol,
                device_id=device_id,
                role=role,
                election_id=election_id,
                client_id=client_id,
                program=program,
                observer=observer,
                deadline=deadline,
                connect_timeout=connect_timeout,
                reconnect=reconnect,
                tls=tls,
            )
        )
    )
