"""Fixtures for pytest: ``weir_switch`` makes switches in process.

.. code-block:: python

    def test_forwards(weir_switch):
        switch = weir_switch("router.p4", entries="router.entries")
        assert switch.send(1, packet) == [(2, expected)]

Programs are compiled once per session.
"""

from __future__ import annotations

import os
from typing import Callable, Dict, Iterator

import pytest

from . import Program, Switch, compile
from ._program import Path


@pytest.fixture(scope="session")
def weir_program() -> Iterator[Callable[[Path], Program]]:
    """Compiles a file, once per session."""
    programs: Dict[str, Program] = {}

    def program(path: Path) -> Program:
        name = os.path.abspath(os.fspath(path))
        if name not in programs:
            programs[name] = compile(path)
        return programs[name]

    yield program


@pytest.fixture
def weir_switch(weir_program: Callable[[Path], Program]) -> Callable[..., Switch]:
    """Makes a switch of a program's file; further arguments are those of :class:`weir.Switch`."""

    def switch(path: Path, **options: object) -> Switch:
        return Switch(weir_program(path), **options)  # type: ignore[arg-type]

    return switch
