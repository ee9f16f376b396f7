"""Compiling, and what programs have."""

from __future__ import annotations

import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

import weir


def test_tables_and_actions_are_described(features: weir.Program) -> None:
    assert features.architecture == "v1model"
    assert sorted(table.name for table in features.tables) == ["I.rules", "I.wide"]
    rules = features.table("rules")
    assert [(key.name, key.width, key.kind) for key in rules.keys] == [
        ("hdr.ethernet.dst_addr", 48, "ternary"),
        ("hdr.ethernet.ether_type", 16, "range"),
        ("std.ingress_port", 9, "optional"),
    ]
    assert [action.name for action in rules.actions][:2] == ["I.to", "I.drop"]
    assert rules.direct == ("I.rule_hits",)
    assert rules.idle_timeout and rules.line > 1
    assert "I.punt" in [action.name for action in features.actions]
    assert features.externs["I.seen"] == "counter"
    assert [field.name for field in features.packet_in or ()] == ["ingress_port", "reason"]


def test_a_rejected_program_has_diagnostics() -> None:
    text = "#include <core.p4>\nheader h_t { bit<8> a; }\nconst bit<8> x = y;\n"
    with pytest.raises(weir.CompileError) as caught:
        weir.compile_text(text, name="wrong.p4")
    first = caught.value.errors[0]
    assert (first.severity, first.file, first.line) == ("error", "wrong.p4", 3)
    assert first.column == text.splitlines()[2].index("y") + 1
    assert first.code in first.text and "y" in first.message
    assert "wrong.p4" in str(caught.value)


def test_a_file_without_main_is_no_program(tmp_path: Path) -> None:
    file = tmp_path / "types.p4"
    file.write_text("#include <core.p4>\n")
    with pytest.raises(weir.CompileError, match="main"):
        weir.compile(file)


def test_includes_and_macros_are_found(tmp_path: Path) -> None:
    (tmp_path / "features.h").write_text((Path(__file__).parent / "features.p4").read_text())
    text = "#ifdef WANTED\n#include \"features.h\"\n#endif\n"
    assert weir.compile_text(text, include=[tmp_path], define=["WANTED"]).tables
    assert weir.compile_text(text, include=[tmp_path], define={"WANTED": None}).tables
    with pytest.raises(weir.CompileError):
        weir.compile_text(text, include=[tmp_path])


def test_a_missing_file_is_an_os_error() -> None:
    with pytest.raises(OSError, match="none.p4"):
        weir.compile("none.p4")
    with pytest.raises(ValueError, match="architecture"):
        weir.compile_text("", architecture="none")


def test_descriptions_are_those_of_weir_build(features: weir.Program, tmp_path: Path) -> None:
    assert 'name: "I.rules"' in features.p4info()
    assert b"I.rules" in features.p4info_bytes()
    assert "I.rules" in features.bfrt_json()
    saved = tmp_path / "features.weir"
    saved.write_text(features.ir())
    loaded = weir.load(saved)
    assert [table.name for table in loaded.tables] == [table.name for table in features.tables]
    with pytest.raises(ValueError, match="features"):
        saved.write_text("nonsense")
        weir.load(saved)


def test_notebooks_show_the_pipeline_and_the_tables(features: weir.Program) -> None:
    picture = xml.fromstring(features._repr_svg_())
    assert picture.tag.endswith("svg") and "rules" in features.svg()
    assert "<td><b>I.rules</b></td>" in features._repr_html_()
    assert "digraph" in features.dot()
    switch = weir.Switch(features)
    switch.table("rules").insert({"dst_addr": "00:00:00:00:00:01"}, "to", {"port": 3}, priority=1)
    assert "I.to" in switch._repr_html_() and "default" in switch._repr_html_()
    assert "0 hits" in switch._repr_svg_()
