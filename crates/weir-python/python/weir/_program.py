"""Programs: compiling, and what they have."""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _weir
from ._errors import CompileError, Diagnostic
from ._values import find

Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Field:
    """A parameter of an action, or a field of a header."""

    name: str
    width: Optional[int]
    """In bits; ``None``: it is no number."""


@dataclass(frozen=True)
class Key:
    """A key of a table."""

    name: str
    width: Optional[int]
    """In bits; ``None``: it is no number."""
    kind: str
    """``exact``, ``lpm``, ``ternary``, ``range`` or ``optional``."""


@dataclass(frozen=True)
class Action:
    """An action of a table."""

    name: str
    parameters: Tuple[Field, ...]
    default_only: bool = False
    table_only: bool = False


@dataclass(frozen=True)
class TableInfo:
    """A table of a program."""

    name: str
    keys: Tuple[Key, ...]
    actions: Tuple[Action, ...]
    size: Optional[int]
    is_const: bool
    """Its entries are const."""
    const_default: bool
    direct: Tuple[str, ...]
    """Direct counters, meters and registers."""
    implementation: Optional[str]
    """The action profile or selector that has its actions."""
    idle_timeout: bool
    file: Optional[str]
    line: int

    def key(self, name: str) -> int:
        """The place of a key, by its name or a unique ending of it."""
        return find("key", name, [key.name for key in self.keys])

    def action(self, name: str) -> int:
        """The place of an action, by its name or a unique ending of it."""
        return find("action", name, [action.name for action in self.actions])


def _fields(items: Sequence[Mapping[str, Any]]) -> Tuple[Field, ...]:
    return tuple(Field(item["name"], item["width"]) for item in items)


def _table(item: Mapping[str, Any]) -> TableInfo:
    actions = (
        Action(a["name"], _fields(a["parameters"]), a["default_only"], a["table_only"]) for a in item["actions"]
    )
    keys = (Key(k["name"], k["width"], k["kind"]) for k in item["keys"])
    return TableInfo(
        item["name"],
        tuple(keys),
        tuple(actions),
        item["size"],
        item["is_const"],
        item["const_default"],
        tuple(item["direct"]),
        item["implementation"],
        item["idle_timeout"],
        item["file"],
        item["line"],
    )


class Program:
    """A program that was compiled or loaded. In a notebook it shows its pipeline and tables."""

    def __init__(self, native: "_weir.Program", warnings: Sequence[Diagnostic] = ()) -> None:
        self._native = native
        self.warnings: List[Diagnostic] = list(warnings)
        """Findings of the compiler that do not reject the program."""
        found: Dict[str, Any] = json.loads(native.describe())
        self.tables: List[TableInfo] = [_table(item) for item in found["tables"]]
        """Its tables."""
        self.externs: Dict[str, str] = {item["name"]: item["type"] for item in found["externs"]}
        """Instances of externs: the type of each by its name."""
        self.packet_in: Optional[Tuple[Field, ...]] = _fields(found["packet_in"]) if found["packet_in"] else None
        """Fields of the header of packets for the controller; ``None``: there is no such header."""
        self.packet_out: Optional[Tuple[Field, ...]] = _fields(found["packet_out"]) if found["packet_out"] else None
        """Fields of the header of packets from the controller."""
        self.port_bits: int = found["port_bits"]
        """Width of a port's number."""

    @property
    def name(self) -> str:
        """The file."""
        return self._native.name

    @property
    def architecture(self) -> str:
        """``v1model``, ``psa``, ``tna`` or ``t2na``."""
        return self._native.architecture

    @property
    def actions(self) -> List[Action]:
        """All actions of tables, each once."""
        found = {action.name: action for table in self.tables for action in table.actions}
        return list(found.values())

    def table(self, name: str) -> TableInfo:
        """A table by its name or a unique ending of it.

        :raises KeyError: there is none, or there are several.
        """
        return self.tables[find("table", name, [table.name for table in self.tables])]

    def p4info(self) -> str:
        """P4Info as protobuf text, as ``weir build`` writes it."""
        return self._native.p4info()

    def p4info_bytes(self) -> bytes:
        """P4Info as a serialised protobuf message."""
        return self._native.p4info_bytes()

    def bfrt_json(self) -> str:
        """The description that BF Runtime has of the program."""
        return self._native.bfrt_json()

    def ir(self) -> str:
        """The intermediate representation as text. Saved as ``.weir``, weir loads it as a program."""
        return self._native.ir()

    def svg(self, title: Optional[str] = None, notes: Optional[Mapping[str, str]] = None) -> str:
        """The pipeline as SVG. ``notes`` are lines for the boxes of tables, by their full names."""
        return self._native.svg(title or self.name, list((notes or {}).items()), [])

    def dot(self) -> str:
        """The pipeline for Graphviz."""
        return self._native.dot()

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        rows = []
        for table in self.tables:
            keys = "<br>".join(html.escape(f"{k.name}: {k.kind}, {k.width} bits") for k in table.keys)
            actions = "<br>".join(
                html.escape(f"{a.name}({', '.join(p.name for p in a.parameters)})") for a in table.actions
            )
            rows.append(
                f"<tr><td><b>{html.escape(table.name)}</b></td><td>{keys}</td><td>{actions}</td>"
                f"<td>{table.size or ''}</td></tr>"
            )
        head = "<tr><th>table</th><th>keys</th><th>actions</th><th>size</th></tr>"
        return f"<div>{self.svg()}</div><table>{head}{''.join(rows)}</table>"

    def __repr__(self) -> str:
        return f"<weir.Program {self.name}: {self.architecture}, {len(self.tables)} tables>"


Defines = Union[Sequence[str], Mapping[str, Optional[str]]]


def _defines(define: Defines) -> List[Tuple[str, Optional[str]]]:
    if isinstance(define, Mapping):
        return list(define.items())
    parts = (text.partition("=") for text in define)
    return [(name, value if equal else None) for name, equal, value in parts]


def _compile(
    name: str, text: Optional[bytes], include: Sequence[Path], define: Defines, architecture: Optional[str]
) -> Program:
    folders = [os.fspath(folder) for folder in include]
    native, found, dropped = _weir.compile(name, text, folders, _defines(define), architecture)
    diagnostics = []
    for item, shown in found:
        d = json.loads(item)
        diagnostics.append(
            Diagnostic(
                d["severity"], d["code"], d["message"], d["file"], d["line"], d["column"], d["help"], d["source"], shown
            )
        )
    if native is None:
        raise CompileError(diagnostics)
    return Program(native, diagnostics)


def compile(
    path: Path, *, include: Sequence[Path] = (), define: Defines = (), architecture: Optional[str] = None
) -> Program:
    """Compiles a P4_16 file.

    ``include`` are folders that ``#include`` searches, ``define`` macros: ``["A", "B=1"]`` or a
    mapping. The architecture is normally that of the file that the program includes.

    :raises CompileError: the program is rejected; it has the diagnostics.
    :raises OSError: the file cannot be read.
    """
    return _compile(os.fspath(path), None, include, define, architecture)


def compile_text(
    text: str,
    *,
    name: str = "program.p4",
    include: Sequence[Path] = (),
    define: Defines = (),
    architecture: Optional[str] = None,
) -> Program:
    """Compiles a text, as :func:`compile` does a file. ``name`` is for diagnostics."""
    return _compile(name, text.encode(), include, define, architecture)


def load(path: Path) -> Program:
    """Loads a program that ``weir build`` (``.weir``) or ``weir bmv2 p4c`` (``.json``) has saved.

    :raises ValueError: it is no such program.
    :raises OSError: the file cannot be read.
    """
    return Program(_weir.load(os.fspath(path)))
