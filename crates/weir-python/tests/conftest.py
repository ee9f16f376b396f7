"""Programs and targets of the tests."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import BinaryIO, Callable, Iterator, List, Tuple

import pytest

import weir

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE.parents[2] / "p4" / "programs"
ROUTER = PROGRAMS / "ipv4_router" / "ipv4_router.p4"
ROUTES = PROGRAMS / "ipv4_router" / "ipv4_router.entries"

ETHERNET = bytes.fromhex("0200000000020200000000010800") + bytes(46)


@pytest.fixture(scope="session")
def features() -> weir.Program:
    """The program with everything that the tests need."""
    return weir.compile(HERE / "features.p4")


@pytest.fixture
def switch(features: weir.Program) -> weir.Switch:
    """A switch of that program."""
    return weir.Switch(features, cpu_port=510)


@pytest.fixture(scope="session")
def router() -> weir.Program:
    """The program of a router."""
    return weir.compile(ROUTER)


def weir_binary() -> str:
    """The command line, built beside the package."""
    found = os.environ.get("WEIR_BINARY", "")
    if not os.path.isfile(found):
        if os.environ.get("CI"):
            pytest.fail("WEIR_BINARY names no file: cargo test --workspace builds it")
        pytest.skip("WEIR_BINARY names no weir")
    return found


Target = Callable[..., str]


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    """Starts `weir run` with a program; gives the address of its server."""
    started: List[Tuple["subprocess.Popen[bytes]", BinaryIO]] = []

    def start(program: Path, protocol: str, *arguments: str) -> str:
        address = f"unix:{tmp_path}/{protocol}-{len(started)}.sock"
        command = [weir_binary(), "run", str(program), "-i", "1@null", f"--{protocol}", address, *arguments]
        log = open(tmp_path / f"log-{len(started)}", "w+b")
        started.append((subprocess.Popen(command, stdout=log, stderr=log), log))
        process = started[-1][0]
        for _ in range(600):
            if os.path.exists(address[5:]):
                return address
            if process.poll() is not None:
                break
            time.sleep(0.05)
        log.seek(0)
        raise AssertionError(f"weir run does not serve: {log.read().decode()}")

    yield start
    for process, log in started:
        process.kill()
        process.wait()
        log.close()
