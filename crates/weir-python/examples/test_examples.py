"""Every example runs, and says what it should."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import weir
import weir.ptf

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE.parents[2] / "p4" / "programs"


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, str(HERE / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_route() -> None:
    lines = run("route.py").splitlines()
    assert lines[:2] == ["without a route: []", "with a route: port 2, TTL 63"]
    assert any("10.9.0.0/16 -> RouterIngress.route(next_hop=10.0.2.254, port=2)" in line for line in lines)


def test_learn() -> None:
    assert run("learn.py").splitlines() == [
        "from port 1 to [2, 3, 4]; learned 1",
        "from port 2 to [1]; learned 1",
        "from port 1 to [2]; learned 0",
    ]


def test_why() -> None:
    text = run("why.py")
    assert "parser-error at" in text and "ipv4_router.p4:" in text and "so it was dropped" in text


def test_rate() -> None:
    assert "packets/s" in run("rate.py", "2000", "3")


def test_controller(tmp_path: Path) -> None:
    assert run("controller.py") == "usage: controller.py ADDRESS\n"
    binary = os.environ.get("WEIR_BINARY", "")
    if not os.path.isfile(binary):
        pytest.skip("WEIR_BINARY names no weir")
    address = f"unix:{tmp_path}/switch.sock"
    program = PROGRAMS / "l2_switch" / "l2_switch.p4"
    command = [binary, "run", str(program), "-i", "1@null", "--p4runtime", address]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as switch:
        try:
            for _ in range(600):
                if os.path.exists(address[5:]):
                    break
                time.sleep(0.05)
            assert run("controller.py", address) == "1000 written, 0 failed, 1000 read\n"
        finally:
            switch.kill()


def ptf(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs PTF with a switch in process."""
    router = PROGRAMS / "ipv4_router"
    platform = f"program={router / 'ipv4_router.p4'};entries={router / 'ipv4_router.entries'};ports=1-4"
    command = ["ptf", "--test-dir", str(HERE / "ptf_tests"), "--allow-user", "--log-file", str(folder / "ptf.log")]
    command += ["--platform", "weir_switch", "--platform-dir", weir.ptf.platform_dir()]
    command += ["--platform-args", platform, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder)


def test_ptf_tests_run_without_interfaces(tmp_path: Path) -> None:
    done = ptf(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ran 2 tests" in done.stderr + done.stdout


def test_mistakes_in_platform_arguments_are_named(tmp_path: Path) -> None:
    done = ptf(tmp_path, "--platform-args", "entries=x")
    assert done.returncode != 0 and "program=FILE is missing" in done.stdout + done.stderr
