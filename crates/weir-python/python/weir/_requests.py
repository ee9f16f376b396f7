"""Requests of the client as futures; :mod:`weir._client` waits for them, :mod:`weir.aio` awaits
them."""

from __future__ import annotations

import json
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Callable, Dict, Generic, Iterable, List, Mapping, Optional, Sequence, Tuple, TypeVar

from . import _weir
from ._errors import UpdateError
from ._pending import GATE, start
from ._program import Program
from ._values import Entry, Lpm, Match, Number, Range, Ternary, Value, match, number, raised

T = TypeVar("T")

Update = Tuple[str, Entry]
"""An operation (``insert``, ``modify``, ``insert_or_modify``, ``delete``) and its entry."""


@dataclass(frozen=True)
class Tls:
    """Transport security: PEM texts."""

    authorities: bytes
    """Certificate authorities for the target's certificate."""
    domain: Optional[str] = None
    """The name in the target's certificate, if it is not the host."""
    certificate: Optional[bytes] = None
    """The client's certificate, for targets that require one."""
    key: Optional[bytes] = None
    """Its key."""


@dataclass(frozen=True)
class Loaded:
    """What became of many entries."""

    done: int
    failures: int
    failed: List[UpdateError]
    """The first 100,000 of them."""


@dataclass(frozen=True)
class Synced:
    """What a table needed to hold the given entries and no others."""

    inserted: int
    modified: int
    deleted: int
    unchanged: int
    failed: List[UpdateError]


@dataclass(frozen=True)
class ControllerPacket:
    """A packet for the controller."""

    payload: bytes
    metadata: Dict[str, Value]


@dataclass(frozen=True)
class DigestList:
    """Digests of one kind."""

    name: str
    data: List[Value]
    timestamp_ns: int


@dataclass(frozen=True)
class IdleEntry:
    """An entry that had no hit for its time-out, or (BF Runtime) was hit again."""

    entry: Entry
    is_active: bool


@dataclass(frozen=True)
class PortChange:
    """A port that went up or down (BF Runtime)."""

    port: int
    is_up: bool


def packet_of(item: Any) -> ControllerPacket:
    return ControllerPacket(item[0], dict(item[1]))


def digest_of(item: Any) -> DigestList:
    return DigestList(item[0], list(item[1]), item[2])


def idle_of(item: Any) -> IdleEntry:
    return IdleEntry(entry_of(item[0]), item[1])


def port_of(item: Any) -> PortChange:
    return PortChange(item[0], item[1])


def entry_of(item: Any) -> Entry:
    """An entry of the native part as an object."""
    table, keys, priority, action, data, is_default, is_const = item
    key = {name: raised(value) for name, value in keys}
    return Entry(key, action, dict(data), priority, table, is_default, is_const)


def _match_text(value: Match) -> Any:
    if isinstance(value, str) and not any(mark in value for mark in ("/", "&&&", "..", "->")):
        # A text may be the value of a translated type: the native part knows the key.
        return value
    plain = match(value)
    if plain is None:
        return "*"
    if isinstance(plain, Lpm):
        return f"{plain.value}/{plain.length}"
    if isinstance(plain, Ternary):
        return f"{plain.value:#x}&&&{plain.mask:#x}"
    if isinstance(plain, Range):
        return f"{plain.low}..{plain.high}"
    return _number_text(plain)


def _number_text(value: Any) -> str:
    return f"{value:#x}" if isinstance(value, int) else str(value)


def _value_json(value: Value) -> Any:
    if isinstance(value, bool) or isinstance(value, (str, float)) or value is None:
        return value
    if isinstance(value, dict):
        return {name: _value_json(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_value_json(part) for part in value]
    plain = number(value)
    if plain < 0:
        raise ValueError(f"{plain} is negative: give its two's complement")
    return plain if plain < 1 << 53 else f"{plain:#x}"


def json_of(entry: Entry) -> str:
    """An entry as the native part reads it."""
    found: Dict[str, Any] = {"table": entry.table}
    if entry.is_default:
        found["default"] = True
    else:
        found["key"] = {name: _match_text(value) for name, value in entry.key.items()}
    if entry.priority:
        found["priority"] = entry.priority
    if entry.action is not None:
        found["action"] = entry.action
    if entry.data:
        found["data"] = {name: _value_json(value) for name, value in entry.data.items()}
    return json.dumps(found)


def none_of(_: Any) -> None:
    return None


class Events(Generic[T]):
    """A subscription, whoever waits for it."""

    def __init__(self, native: "_weir.Subscription", convert: Callable[[Any], T]) -> None:
        self.native = native
        self.convert = convert

    def wait(self) -> "Future[bool]":
        return start(self.native.wait, bool)

    def take(self) -> Optional[T]:
        item = self.native.take()
        return None if item is None else self.convert(item)


class Requests:
    """The calls of a client, as futures."""

    def __init__(self, native: "_weir.Client") -> None:
        self.native = native

    def write(self, updates: Iterable[Update], atomicity: str) -> "Future[None]":
        given = [(operation, json_of(entry)) for operation, entry in updates]
        return start(lambda done: self.native.write(done, given, atomicity), none_of)

    def load(self, entries: Iterable[Entry], operation: str, batch_size: int, in_flight: int) -> "Future[Loaded]":
        given = [json_of(entry) for entry in entries]

        def loaded(item: Any) -> Loaded:
            return Loaded(item[0], item[1], [UpdateError(*update) for update in item[2]])

        return start(lambda done: self.native.load(done, given, operation, batch_size, in_flight), loaded)

    def sync(self, table: str, entries: Iterable[Entry]) -> "Future[Synced]":
        given = [json_of(entry) for entry in entries]

        def synced(item: Any) -> Synced:
            inserted, modified, deleted, unchanged, failed = item
            return Synced(inserted, modified, deleted, unchanged, [UpdateError(*update) for update in failed])

        return start(lambda done: self.native.resync(done, table, given), synced)

    def read(self, table: str, like: Optional[Entry] = None, default: bool = False) -> "Future[List[Entry]]":
        key = None if like is None else json_of(like)
        return start(
            lambda done: self.native.read(done, table, key, default), lambda items: [entry_of(i) for i in items]
        )

    def clear(self, table: str) -> "Future[None]":
        return start(lambda done: self.native.clear(done, table), none_of)

    def operation(self, table: str, name: str) -> "Future[None]":
        return start(lambda done: self.native.operation(done, table, name), none_of)

    def set_program(self, program: Program, action: str, name: Optional[str]) -> "Future[None]":
        config = program.ir().encode()
        if json.loads(self.native.schema())["protocol"] == "p4runtime":
            info = program.p4info_bytes()
            return start(lambda done: self.native.set_p4runtime_program(done, info, config, None, action), none_of)
        own = name or program.name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        description = program.bfrt_json().encode()
        profiles = [("pipe", b"", config)]
        return start(
            lambda done: self.native.set_bfrt_program(done, own, description, profiles, action), none_of
        )

    def packet_out(self, payload: bytes, metadata: Mapping[str, Number]) -> "Future[None]":
        def encoded(value: Number) -> bytes:
            plain = number(value)
            return plain.to_bytes((plain.bit_length() + 7) // 8, "big")

        fields = [(name, encoded(value)) for name, value in metadata.items()]
        return start(lambda done: self.native.packet_out(done, payload, fields), none_of)

    def digests(
        self, name: str, max_delay: float, max_list: int, capacity: int, wait: bool
    ) -> "Future[Events[DigestList]]":
        return start(
            lambda done: self.native.digests(done, name, max_delay, max_list, capacity, wait),
            lambda native: Events(native, digest_of),
        )

    def idle_entries(self, table: Optional[str], capacity: int, wait: bool) -> "Future[Events[IdleEntry]]":
        return start(
            lambda done: self.native.idle_entries(done, table, capacity, wait),
            lambda native: Events(native, idle_of),
        )

    def port_changes(self, capacity: int, wait: bool) -> "Future[Events[PortChange]]":
        return start(
            lambda done: self.native.port_changes(done, capacity, wait),
            lambda native: Events(native, port_of),
        )

    def primary(self) -> "Future[None]":
        return start(self.native.primary, none_of)

    def refresh(self) -> "Future[None]":
        return start(self.native.refresh, none_of)

    def close(self) -> "Future[None]":
        return start(self.native.close, none_of)


def connected(
    address: str,
    protocol: str,
    *,
    device_id: Optional[int],
    role: str,
    election_id: int,
    client_id: int,
    program: Optional[str],
    observer: bool,
    deadline: float,
    connect_timeout: float,
    reconnect: Optional[float],
    tls: Optional[Tls],
) -> "Future[Requests]":
    """Connects."""
    texts = None
    if tls is not None:
        identity = None
        if tls.certificate is not None and tls.key is not None:
            identity = (tls.certificate, tls.key)
        elif tls.certificate is not None or tls.key is not None:
            raise ValueError("a client's certificate and its key go together")
        texts = (tls.authorities, tls.domain, identity)
    return start(
        lambda done: _weir.connect(
            GATE,
            done,
            protocol,
            address,
            device_id=device_id,
            role=role,
            election_id=election_id,
            client_id=client_id,
            program=program,
            observer=observer,
            deadline=deadline,
            connect_timeout=connect_timeout,
            reconnect=reconnect,
            tls=texts,
        ),
        Requests,
    )


def updates_of(operation: str, entries: Sequence[Entry]) -> List[Update]:
    """The same operation on entries."""
    return [(operation, entry) for entry in entries]
