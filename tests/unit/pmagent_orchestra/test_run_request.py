"""From flags and files to a request: what is wrong is said before anything is recorded, once, with its exit code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.orchestra.planning.config import BadConfig
from pmagent.contracts.orchestra import Program
from pmagent.contracts.orchestra_config import OrchestraConfig, PathSettings, SecuritySettings
from pmagent.events.errors import PmagentError
from pmagent.jobs.kinds import Source
from pmagent.orchestra.paths import check_paths, normalized
from pmagent.orchestra.request import DEFAULTS, BadRun, RunOptions, as_request, checked, warnings_of
from pmagent.projections.runs.paths import run_paths
from tests.support.cases import each
from tests.support.orchestra import RUN

PLAN = Source("plan.yaml", b"- {task_id: a, intent: x, tools: [echo]}")


def config(**paths: str) -> OrchestraConfig:
    """The defaults, with other paths."""
    return OrchestraConfig(version="1.0", paths=PathSettings(**paths))


def asked(workspace: Path, **fields: Any) -> Any:
    """The request for these options."""
    return as_request(RunOptions(**({"intent": "do it", "plan": PLAN} | fields)), workspace, RUN)


def refused(workspace: Path, **fields: Any) -> PmagentError:
    """The error for these options."""
    with pytest.raises(PmagentError) as caught:
        asked(workspace, **fields)
    return caught.value


def test_without_a_configuration_the_specifications_values_hold(tmp_path: Path) -> None:
    made = asked(tmp_path)
    assert made.config == DEFAULTS
    assert (made.run_id, made.intent, made.source, made.action) == (RUN, "do it", "plan.yaml", "feature_work")


def test_the_workspaces_configuration_holds_and_flags_win_over_it(tmp_path: Path) -> None:
    text = 'version: "1.0"\nretries: {max: 5}\nconcurrency: {max_workers: 7}\n'
    (tmp_path / "orchestra.config.yaml").write_text(text)
    made = asked(tmp_path, retries=1, out="./elsewhere")
    assert (made.config.retries.max, made.config.concurrency.max_workers) == (1, 7)
    assert made.config.paths.report == "./elsewhere/{run_id}/report.md"


def test_a_named_configuration_holds_instead_of_the_workspaces(tmp_path: Path) -> None:
    (tmp_path / "orchestra.config.yaml").write_text("this is none")
    named = Source("other.yaml", b'version: "1.0"\nretries: {max: 3}\n')
    assert asked(tmp_path, config=named).config.retries.max == 3


def test_what_keeps_the_place_of_a_configuration_while_a_task_runs_is_none(tmp_path: Path) -> None:
    (tmp_path / "orchestra.config.yaml").mkdir()
    assert asked(tmp_path).config == DEFAULTS


@pytest.mark.parametrize("kind", ["text", "folder", "dangling"])
def test_a_configuration_that_is_there_but_says_nothing_good_is_not_passed_over(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "orchestra.config.yaml"
    if kind == "text":
        path.write_text("retries: {max: 1}")
    elif kind == "folder":
        (path / "something").mkdir(parents=True)
    else:
        path.symlink_to("nowhere")
    error = refused(tmp_path)
    assert error.exit_code == 2
    assert "orchestra.config.yaml" in error.message


@each(
    "fields, code, reason",
    [
        ({"intent": " \n"}, 2, "intent is"),
        ({"intent": "x" * 20_000}, 2, "intent is"),
        ({"intent": "a\0b"}, 2, "NUL"),
        ({"intent": "\udcff"}, 2, "INTENT is not text"),
        ({"out": "\udcff"}, 2, "--out is not text"),
        ({"replan": 11}, 2, "--replan is 11"),
        ({"concurrency": 0}, 2, "--concurrency is 0"),
        ({"retries": 11}, 2, "--retries is 11"),
        ({"out": "{run_id}"}, 2, "--out holds {run_id}"),
        ({"out": "../outside"}, 2, "--out is ../outside, which is outside of the workspace"),
        ({"out": ".pmagent/runs"}, 2, "--out is .pmagent/runs, where nothing may be left"),
        ({"plan": Source("p", b"[")}, 2, "p"),
        ({"plan": Source("p", b"[]")}, 2, "p: "),
        ({"plan": Source("p", b"- {task_id: a, intent: x, tools: [echo], depends_on: [a]}")}, 2, "waits for itself"),
        ({"plan": Source("p", b"- {task_id: a, intent: x, tools: [rm]}")}, 7, "not in whitelist_tools: rm (a)"),
        ({"plan": Source("p", b"- {task_id: a, intent: x, tools: [echo], constraints: {sandbox: {net: allow}}}")}, 7,
         "allow_network is false"),
        ({"plan": Source("p", b"- {task_id: a, intent: x, tools: [echo], constraints: {max_retries: 9}}")}, 2,
         "max_retries is more than"),
    ],
)
def test_what_is_wrong_is_said_with_its_code(tmp_path: Path, fields: dict[str, Any], code: int, reason: str) -> None:
    error = refused(tmp_path, **fields)
    assert (error.exit_code, reason in error.message) == (code, True), error.message
    assert error.hint, "it is said what helps"
    assert not list(tmp_path.iterdir()), "nothing was made"


@each("paths, reason", [
    ({"report": "./runs/latest.md"}, "overwrite the last one's"),
    ({"report": "./runs/{run_id}/../latest.md"}, "overwrite the last one's"),
    ({"logs": "/etc/{run_id}.jsonl"}, "outside of the workspace"),
    ({"runs": "a/../../b"}, "outside of the workspace"),
    ({"runs": "./share/runs"}, "where nothing may be left"),
    ({"runs": "deep/.git/hooks"}, "where nothing may be left"),
    ({"runs": "./x/../.pmagent"}, "where nothing may be left"),
    ({"logs": "./runs/{run_id}/report.md"}, "each other's way"),
    ({"logs": "./runs/{run_id}/report.md/log"}, "each other's way"),
    ({"logs": "./runs/{run_id}/plan.json"}, "each other's way"),
    ({"report": "./runs/{run_id}/artifacts/report.md"}, "each other's way"),
    ({"artifacts": "./runs/{run_id}"}, "each other's way"),
    ({"report": "./{run_id}/{run_id}.md"}, "each other's way"),
    ({"runs": "./" + "x" * 300}, "too long"),
    ({"runs": "./" + "x/" * 511}, "too long"),
])
def test_a_run_keeps_to_paths_of_its_own(tmp_path: Path, paths: dict[str, str], reason: str) -> None:
    with pytest.raises(BadConfig) as caught:
        check_paths(normalized(config(**paths), tmp_path), tmp_path, RUN)
    assert reason in caught.value.message


def test_an_absolute_path_in_the_workspace_becomes_a_relative_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for root in (tmp_path / "real", tmp_path / "link"):
        made = normalized(config(runs=str(root / "out"), report=f"{root}/out/{{run_id}}/r.md"), tmp_path / "link")
        assert (made.paths.runs, made.paths.report) == ("./out", "./out/{run_id}/r.md")
        assert not run_paths(made.paths, RUN).moved


def test_what_lies_in_the_way_is_found_before_anything_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    assert "runs is no folder" in refused(tmp_path).message
    (tmp_path / "runs").unlink()
    (tmp_path / "outside").mkdir()
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "runs").symlink_to(tmp_path / "outside")
    assert "leads out of the workspace" in refused(tmp_path / "inside").message
    (tmp_path / "jobs").write_text("a file")
    assert "jobs is no folder" in refused(tmp_path).message


def test_a_link_within_the_workspace_is_as_good_as_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "share").mkdir()
    (tmp_path / "disk").mkdir()
    (tmp_path / "runs").symlink_to("disk")
    assert asked(tmp_path).config.paths.runs == "./runs"
    (tmp_path / "runs").unlink()
    (tmp_path / "runs").symlink_to("share")
    assert "where nothing may be left" in refused(tmp_path).message


def test_a_folder_that_may_not_be_written_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").mkdir()
    closed = tmp_path / "runs"
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != closed)  # root may write everywhere
    assert "runs may not be written" in refused(tmp_path).message
    closed = tmp_path
    assert "the workspace may not be written" in refused(tmp_path).message


WORDS = st.sampled_from([*"ab./", "/", "{run_id}", "..", ".git", "share", "jobs", "~"])
PARTS = st.lists(WORDS, min_size=1, max_size=12)


@given(text=PARTS.map("".join))
def test_whatever_a_path_says_a_run_stays_in_the_workspace_and_away_from_what_rules_it(text: str) -> None:
    workspace = Path("/somewhere/workspace")
    try:
        made = normalized(config(logs=text), workspace)
    except BadConfig:
        return
    found = run_paths(made.paths, RUN)
    assert not found.moved
    inside = os.path.relpath(os.path.normpath(workspace / found.log), workspace)
    assert inside.split("/")[0] not in ("..", ".git", "share", "jobs", ".pmagent")
    assert RUN in inside
    assert normalized(made, workspace) == made


def test_the_request_of_another_process_is_checked_as_well(tmp_path: Path) -> None:
    made = asked(tmp_path)
    taken = checked(msgspec.structs.replace(made, programs=[Program(name="ls", path="/x", real="/x")]), tmp_path)
    assert msgspec.structs.replace(taken, programs=[]) == msgspec.structs.replace(made, form=2)
    assert "/x" not in {program.path for program in taken.programs}
    elsewhere = msgspec.structs.replace(made, config=config(runs="/etc"))
    with pytest.raises(BadConfig):
        checked(elsewhere, tmp_path)
    assert issubclass(BadRun, PmagentError)


def test_unmasked_logs_are_not_to_be_had_and_that_is_said() -> None:
    assert warnings_of(DEFAULTS) == []
    (warning,) = warnings_of(OrchestraConfig(version="1.0", security=SecuritySettings(redact_secrets=False)))
    assert "redact_secrets" in warning
