"""Words and options that other tools have taught."""

from __future__ import annotations

import json
from pathlib import Path

from pmagent import __version__
from tests.support.cases import each
from tests.support.commands import invoke


@each("words", [("--format", "json"), ("-o", "json"), ("--json",), ("-ojson",), ("--format=json",)])
def test_json_is_asked_for_in_several_ways(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert json.loads(invoke("--workspace", str(tmp_path), "status", *words).out)["workspace"] == str(tmp_path)
    refused = invoke("--workspace", str(tmp_path), "log", "verify", *words)
    assert json.loads(refused.out)["error"]["message"], "errors go to whoever listens, too"


def test_a_variable_chooses_the_format_where_no_option_does(tmp_path: Path) -> None:
    def status(format: str, *words: str) -> bytes:
        return invoke("--workspace", str(tmp_path), "status", *words, environ={"PMAGENT_FORMAT": format}).out

    assert json.loads(status("json"))["workspace"] == str(tmp_path)
    assert status("json", "--format", "text") == status("text") == status("") != status("json")
    wrong = invoke("status", environ={"PMAGENT_FORMAT": "yaml"})
    assert (wrong.code, b"PMAGENT_FORMAT" in wrong.err, b"'yaml'" in wrong.err) == (2, True, True)


def test_a_value_that_reads_like_the_option_is_a_value(workspace: Path) -> None:
    shown = invoke("--workspace", str(workspace), "oa", "decision", "--format", "text", "--", "--json")
    assert not shown.out.startswith(b"{")
    searched = invoke("--workspace", str(workspace), "log", "tail", "-n", "all", "--grep=x", "--exclude", "--json")
    assert searched.code == 0
    assert not searched.out.startswith(b"{")


def test_names_of_other_tools_are_understood(tmp_path: Path) -> None:
    def said(*words: str) -> tuple[int, bytes]:
        ran = invoke("--workspace", str(tmp_path), *words)
        return ran.code, ran.out + ran.err

    runs = said("runs")
    assert all(said(name) == runs for name in ("ps", "ls", "list"))
    assert said("log", "grep", "x") == said("log", "tail", "--grep", "x")
    assert said("version") == (0, f"pmagent {__version__}\n".encode())
