"""What a packet met, as a tree."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple


@dataclass(frozen=True)
class Place:
    """A place in the source."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass
class Node:
    """One step of a packet."""

    kind: str
    """``packet``, ``block``, ``state``, ``extract``, ``table``, ``action``, ``branch``, ``set``,
    ``fate``, … as in ``weir trace --json``."""
    details: Dict[str, Any]
    """What the kind has: of a table its name, keys, whether it hit, the entry and the action."""
    place: Optional[Place]
    children: List["Node"] = field(default_factory=list)

    def walk(self) -> Iterator["Node"]:
        """This step and all within it, in order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def __getitem__(self, name: str) -> Any:
        return self.details[name]


def _node(item: Dict[str, Any]) -> Node:
    children = [_node(child) for child in item.pop("children", [])]
    place = item.pop("place", None)
    found = None if place is None else Place(place["file"], place["line"], place["column"])
    return Node(item.pop("kind"), item, found, children)


class Trace:
    """What one packet met, and what left because of it."""

    def __init__(self, sent: Sequence[Tuple[int, bytes]], tree: str, text: str) -> None:
        self.sent: List[Tuple[int, bytes]] = list(sent)
        """Packets that left: ports and bytes."""
        self.nodes: List[Node] = [_node(item) for item in json.loads(tree)]
        """The packet, and the packets that were made of it."""
        self.text = text
        """The trace as ``weir trace`` prints it."""

    def walk(self) -> Iterator[Node]:
        """All steps, in order."""
        for node in self.nodes:
            yield from node.walk()

    @property
    def tables(self) -> List[Node]:
        """The tables that were applied."""
        return [node for node in self.walk() if node.kind == "table"]

    @property
    def fates(self) -> List[Node]:
        """Where the packets ended."""
        return [node for node in self.walk() if node.kind == "fate"]

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"
