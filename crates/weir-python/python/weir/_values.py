"""Values and matches, from the forms that people write."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

Number = Union[int, bool, str, bytes, ipaddress.IPv4Address, ipaddress.IPv6Address]
"""A number: also ``"10.0.0.1"``, ``"2001:db8::1"``, ``"00:11:22:33:44:55"``, ``"0x1f"``, or bytes
in network order."""


@dataclass(frozen=True)
class Lpm:
    """A prefix: the first ``length`` bits are equal."""

    value: int
    length: int


@dataclass(frozen=True)
class Ternary:
    """Equal where the mask has ones."""

    value: int
    mask: int


@dataclass(frozen=True)
class Range:
    """Between two numbers, both included."""

    low: int
    high: int


Match = Union[Number, Lpm, Ternary, Range, ipaddress.IPv4Network, ipaddress.IPv6Network, None]
"""What a key is compared to. Texts may also be ``"10.0.0.0/8"``, ``"0x10&&&0xf0"``, ``"80..443"``
and ``"*"``. ``None`` matches anything."""

Plain = Union[int, str, Lpm, Ternary, Range, None]
"""A match as entries are read."""

Value = Any
"""A value of a field: a number, a bool, a text, a list, or a dict by names of fields."""


def lpm(value: Number, length: int) -> Lpm:
    """A prefix, as of ``lpm("10.0.0.0", 8)``."""
    return Lpm(number(value), length)


def ternary(value: Number, mask: Number) -> Ternary:
    """A value under a mask."""
    return Ternary(number(value), number(mask))


def between(low: Number, high: Number) -> Range:
    """A range, both ends included."""
    return Range(number(low), number(high))


def number(value: Number) -> int:
    """A number from any form of it.

    :raises ValueError: it is none.
    """
    if isinstance(value, int):
        return int(value)
    if isinstance(value, (bytes, bytearray)):
        return int.from_bytes(value, "big")
    if isinstance(value, (ipaddress.IPv4Address, ipaddress.IPv6Address)):
        return int(value)
    if isinstance(value, str):
        found = _parse(value.strip())
        if found is not None:
            return found
        raise ValueError(f"`{value}` is no number such as 17, 0x11, 10.0.0.1, 2001:db8::1 or 00:11:22:33:44:55")
    raise TypeError(f"expected a number, found {type(value).__name__}")


def _parse(text: str) -> Optional[int]:
    try:
        return int(text, 0)
    except ValueError:
        pass
    if text.isdecimal():
        return int(text)
    for separator in (":", "-"):
        parts = text.split(separator)
        if len(parts) == 6 and all(1 <= len(part) <= 2 for part in parts):
            try:
                return int.from_bytes(bytes(int(part, 16) for part in parts), "big")
            except ValueError:
                return None
    try:
        return int(ipaddress.ip_address(text))
    except ValueError:
        return None


def match(value: Match) -> Plain:
    """A match from any form of it; texts that are no number stay as they are."""
    if value is None or isinstance(value, (Lpm, Ternary, Range)):
        return value
    if isinstance(value, (ipaddress.IPv4Network, ipaddress.IPv6Network)):
        return Lpm(int(value.network_address), value.prefixlen)
    if isinstance(value, str):
        text = value.strip()
        if text == "*":
            return None
        for separator in ("..", "->"):
            if separator in text:
                low, high = text.split(separator, 1)
                return between(low, high)
        if "&&&" in text:
            wanted, mask = text.split("&&&", 1)
            return ternary(wanted, mask)
        if "/" in text:
            wanted, length = text.split("/", 1)
            return Lpm(number(wanted), int(length))
    return number(value)


Lowered = Union[int, Tuple[str, int, int], None]


def lowered(value: Match) -> Lowered:
    """A match as the native part has it."""
    plain = match(value)
    if isinstance(plain, Lpm):
        return ("lpm", plain.value, plain.length)
    if isinstance(plain, Ternary):
        return ("ternary", plain.value, plain.mask)
    if isinstance(plain, Range):
        return ("range", plain.low, plain.high)
    if isinstance(plain, str):
        return number(plain)
    return plain


def raised(value: Any) -> Any:
    """A match of the native part as an object."""
    if isinstance(value, tuple):
        kind, first, second = value
        if kind == "lpm":
            return Lpm(first, second)
        return Ternary(first, second) if kind == "ternary" else Range(first, second)
    return value


def find(what: str, name: str, names: Sequence[str]) -> int:
    """The place of a name: the equal one, or the only one that ends with it behind a dot.

    :raises KeyError: there is none, or there are several.
    """
    wanted = name[1:] if name.startswith(".") else name
    if wanted in names:
        return names.index(wanted)
    found = [place for place, known in enumerate(names) if known.endswith("." + wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(names[place] for place in found)
        raise KeyError(f"`{name}` may be the {what} {several}; give more of the name")
    known = ", ".join(names) if names else "none"
    raise KeyError(f"there is no {what} `{name}`; there is {known}")


@dataclass
class Entry:
    """An entry of a table: keys, action and data, by their names."""

    key: Dict[str, Any] = field(default_factory=dict)
    """Matches by the names of keys. Keys that are left out match anything."""
    action: Optional[str] = None
    data: Dict[str, Value] = field(default_factory=dict)
    """Arguments of the action, and other data of the entry."""
    priority: int = 0
    """Among entries that match the same packet. In process and with P4Runtime the largest number
    wins, with BF Runtime the smallest."""
    table: str = ""
    is_default: bool = False
    is_const: bool = False
    handle: int = 0
    """Of an entry of a switch in process."""
    idle_timeout_ns: int = 0
    """Of an entry of a switch in process: time without a hit after which it counts as idle."""

    def __str__(self) -> str:
        keys = "default" if self.is_default else ", ".join(f"{n}={show(n, v)}" for n, v in self.key.items())
        data = ", ".join(f"{n}={show(n, v)}" for n, v in self.data.items())
        rank = f" [{self.priority}]" if self.priority else ""
        return f"{self.table}{rank} {keys} -> {self.action or ''}({data})"


def show(name: str, value: Any) -> str:
    """A value for people: addresses as such, by the name of the field."""
    if isinstance(value, Lpm):
        return f"{show(name, value.value)}/{value.length}"
    if isinstance(value, Ternary):
        return f"{value.value:#x}&&&{value.mask:#x}"
    if isinstance(value, Range):
        return f"{value.low}..{value.high}"
    if value is None:
        return "*"
    last = name.rsplit(".", 1)[-1].lower()
    if isinstance(value, int) and not isinstance(value, bool):
        if "mac" in last or last in ("src", "dst") and value > 0xFFFFFFFF:
            return ":".join(f"{byte:02x}" for byte in value.to_bytes(6, "big")) if value >> 48 == 0 else str(value)
        if ("addr" in last or "ip" in last.split("_") or "hop" in last) and value >> 32 == 0:
            return str(ipaddress.IPv4Address(value))
        if ("addr" in last or "hop" in last) and value >> 48 == 0:
            return ":".join(f"{byte:02x}" for byte in value.to_bytes(6, "big"))
    return str(value)


def names_of(items: Sequence[Mapping[str, Any]]) -> List[str]:
    """The names of described things."""
    return [item["name"] for item in items]
