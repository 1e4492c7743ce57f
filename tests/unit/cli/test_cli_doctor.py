"""``pmagent doctor``: each thing that is wrong is named, with what to do; only failures fail."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pmagent.actors.sandbox.bubblewrap import NEEDED
from pmagent.cli import checks
from pmagent.cli.checks import Check, all_checks
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.commands import pmagent
from tests.support.logged import flip, note, segments, write_log
from tests.support.logs import locked
from tests.support.sandboxes import needs_sandbox


@pytest.fixture
def healthy(workspace: Path) -> Path:
    """The example workspace, after a snapshot."""
    assert pmagent(workspace, "oa", "snapshot").code == 0
    return workspace


def looked(workspace: Path, name: str, environ: dict[str, str] | None = None) -> Check:
    """One check's finding."""
    return next(check for check in all_checks(str(workspace), environ or {}) if check.name == name)


def test_a_healthy_workspace_passes_and_nothing_is_written(healthy: Path) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in healthy.rglob("*"))
    done = pmagent(healthy, "doctor", "--format", "json")
    assert done.code == 0, done.text
    assert done.document["ok"] is True
    assert {setting["key"] for setting in done.document["settings"]} >= {"workspace", "kernel.phase"}
    assert sorted((path, path.stat().st_mtime_ns) for path in healthy.rglob("*")) == before


def test_every_finding_that_is_not_ok_has_a_remedy(tmp_path: Path) -> None:
    found = all_checks(str(tmp_path), {"PMAGENT_NONSENSE": "1"})
    assert {check.name for check in found if check.state != "ok"} >= {"workspace", "surfaces", "variables", "log"}
    assert not [check for check in found if check.state != "ok" and not check.remedy]


def test_the_screen_says_for_each_whether_it_is_well(tmp_path: Path) -> None:
    (tmp_path / ".pmagent").mkdir(mode=0o700)
    done = pmagent(tmp_path, "doctor")
    assert done.code == 1
    assert "✗ fail  surfaces" in done.text
    assert "! warn  log" in done.text
    assert "→ pmagent init" in done.text


def test_settings_are_shown_on_request(healthy: Path) -> None:
    assert "console.port" not in pmagent(healthy, "doctor").text
    assert "console.port" in pmagent(healthy, "doctor", "--settings").text


def test_a_setting_that_is_not_understood_fails_and_the_rest_is_looked_at(healthy: Path) -> None:
    (healthy / ".pmagent" / "config.toml").write_text("[kernel]\nphse = 1\n")
    found = looked(healthy, "settings")
    assert (found.state, found.remedy) == ("fail", "did you mean kernel.phase?")
    assert looked(healthy, "log").state == "ok"


@each("environ, state, said", [
    ({}, "ok", "by rules"),
    ({"PMAGENT_REASONING_ENGINE": "langchain"}, "warn", "names no model"),
    ({"PMAGENT_REASONING_ENGINE": "langchain", "PMAGENT_REASONING_MODEL": "openai:x"}, "warn", "OPENAI_API_KEY"),
    (
        {
            "PMAGENT_REASONING_ENGINE": "langchain", "PMAGENT_REASONING_MODEL": "openai:x",
            "OPENAI_API_KEY": "not-a-real-one",
        },
        "ok", "asks openai:x",
    ),
])
def test_an_engine_of_the_settings_that_cannot_be_asked_is_a_warning(
    healthy: Path, environ: dict[str, str], state: str, said: str
) -> None:
    check = looked(healthy, "reasoning", environ)
    assert check.state == state
    assert said in check.text
    assert bool(check.remedy) == (state != "ok")
    assert "not-a-real-one" not in check.text


def test_a_corrupt_log_fails_with_its_place(healthy: Path) -> None:
    flip(segments(healthy)[0], 400)
    found = looked(healthy, "log")
    assert found.state == "fail"
    assert "byte " in found.text
    assert "pmagent log export --until" in found.remedy


def test_a_large_log_is_checked_whole_and_takes_a_while_says_it(healthy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "TOLD_BYTES", 10)
    told: list[str] = []
    (found,) = (check for check in checks.all_checks(str(healthy), {}, told.append) if check.name == "log")
    assert (found.state, len(told)) == ("ok", 1)
    flip(segments(healthy)[0], 400)
    assert looked(healthy, "log").state == "fail"


@pytest.mark.parametrize(("name", "mode"), [("", 0o777), ("log", 0o770), ("log/HEAD", 0o666), ("run", 0o750)])
def test_what_others_may_write_or_look_into_fails(healthy: Path, name: str, mode: int) -> None:
    (Layout(healthy).home / name).chmod(mode)
    found = looked(healthy, "permissions")
    assert found.state == "fail"
    assert f"{mode:04o}" in found.text


def test_a_link_in_the_place_of_the_log_fails(healthy: Path, tmp_path: Path) -> None:
    Layout(healthy).log.rename(tmp_path / "elsewhere")
    Layout(healthy).log.symlink_to(tmp_path / "elsewhere")
    assert "symbolic link" in looked(healthy, "permissions").text


def test_a_holder_without_a_socket_fails(healthy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pmagent.service.client.CONNECT_SECONDS", 0.05)
    with locked(healthy, "pid 1, somebody"):
        found = looked(healthy, "daemon")
    assert found.state == "fail"
    assert "somebody" in found.text


def test_little_room_and_a_wrong_clock_are_found(healthy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "SPACE_FAIL", 1 << 62)
    assert looked(healthy, "disk").state == "fail"
    monkeypatch.setattr(checks, "CLOCK_EARLIEST", datetime(2999, 1, 1, tzinfo=UTC))
    assert looked(healthy, "clock").state == "fail"


def test_a_configuration_of_runs_is_looked_at_before_a_run_is(healthy: Path) -> None:
    assert (looked(healthy, "runs").state, "the specification's" in looked(healthy, "runs").text) == ("ok", True)
    config = healthy / "orchestra.config.yaml"
    config.write_text('version: "1.0"\nwhitelist_tools: [cat, no-such-tool]\n')
    assert (looked(healthy, "programs").state, looked(healthy, "runs").state) == ("warn", "ok")
    assert ": no-such-tool" in looked(healthy, "programs").text
    config.write_text('version: "1.0"\nwhitelist_tool: [cat]\n')
    found = looked(healthy, "runs")
    assert (found.state, found.remedy) == ("fail", "did you mean whitelist_tools?")
    assert "orchestra.config.yaml" in found.text
    config.write_text('version: "1.0"\npaths: {report: ./report.md}\n')
    assert "overwrite" in looked(healthy, "runs").text


def test_events_of_the_future_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.one_writer.now", lambda: "2999-01-01T00:00:00.000000Z")
    write_log(tmp_path, [note(1)])
    found = looked(tmp_path, "log time")
    assert found.state == "warn"
    assert "ahead of this machine's clock" in found.text


def test_a_program_that_is_missing_is_a_warning(healthy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _, **__: None)
    assert looked(healthy, "git").state == "warn"
    assert pmagent(healthy, "doctor").code == 0


@needs_sandbox
def test_the_sandbox_is_tried_and_what_it_cannot_enforce_is_told(healthy: Path) -> None:
    found = looked(healthy, "sandbox")
    assert found.state == "ok"
    assert "bwrap works" in found.text
    assert "no cgroup" in found.text


@needs_sandbox
@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("echo --bind --ro-bind", "too old or no bubblewrap"),
        (f'[ "$1" != --help ] || {{ echo "{" ".join(NEEDED)}"; exit; }}; echo "no namespaces for you" >&2; exit 1',
         "could not be built: no namespaces for you"),
    ],
)  # fmt: skip
def test_a_sandbox_that_cannot_be_made_is_a_warning_with_the_reason(
    healthy: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, text: str
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "bin" / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    found = looked(healthy, "sandbox")
    assert (found.state, bool(found.remedy)) == ("warn", True)
    assert text in found.text


def test_without_bubblewrap_the_rest_of_pmagent_is_well(healthy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(healthy))
    found = looked(healthy, "sandbox")
    assert (found.state, found.remedy) == ("warn", "apt-get install bubblewrap (0.8 or newer)")
    assert pmagent(healthy, "doctor").code == 0


@pytest.fixture
def enterable() -> Iterator[Path]:
    """A folder that other users of this machine may enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("name", ["runs", "jobs", "sessions", "audit"])
def test_documents_that_other_users_may_look_into_are_a_warning(enterable: Path, name: str) -> None:
    (enterable / name).mkdir(mode=0o700)
    assert looked(enterable, "privacy").state == "ok"
    for mode in (0o755, 0o750, 0o701):
        (enterable / name).chmod(mode)
        found = looked(enterable, "privacy")
        assert (found.state, f"chmod -R go-rwx {enterable / name}" in found.remedy) == ("warn", True)
    enterable.chmod(0o700)
    assert looked(enterable, "privacy").state == "ok", "nobody else can enter"
