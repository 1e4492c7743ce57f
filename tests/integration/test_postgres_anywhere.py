"""Every request from a machine that does not hold the log: the holder carries it out in the name of the operator whose
the asking role is; or that machine answers by itself; or it says why not, and where."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pmagent.edges import OPERATIONS
from pmagent.events.errors import PmagentError
from pmagent.events.postgres.schema import prepare
from pmagent.guests.policy import FILE
from pmagent.oa.kernel_view import read_view
from pmagent.oa.reasoning import build_envelope, run
from pmagent.service.answer import Answer
from pmagent.service.client import NotFromHere, new_request
from pmagent.service.operations import call
from tests.conftest import fresh_example
from tests.integration.test_audit_clone_remote import served
from tests.support.audited import Sources, sources
from tests.support.machines import Machine, says
from tests.support.postgres import READER, WRITER, one_server
from tests.support.repositories import Made
from tests.support.sandboxes import needs_sandbox

__all__ = ["sources"]

FAR, LOOKS = "laptop", "watcher"
NO, USAGE, UNREACHABLE, SECURITY = 1, 2, 5, 7
CONFIG = """
[checks]
mine = ["sh", "-c", "test -e marker"]
[guards]
ours = ["sh", "-c", "test -e marker"]
"""


class Two(NamedTuple):
    """The machine that holds the log; another one, where a daemon stands by, which ada uses; one where none does, whose
    role only reads, and is bert's; and one of somebody who may only look."""

    holder: Machine
    far: Machine
    reader: Machine
    watcher: Machine

    def ask(self, operation: str, *, at: Machine | None = None, **arguments: Any) -> Answer:
        """Ask for an operation on a machine (None: ada's), as a command does."""
        machine = at or self.far
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_STATE_HOME", machine.environ["XDG_STATE_HOME"])
            return call(machine.workspace, operation, {"request": new_request(operation), **arguments})


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    """They run for all tests of this module."""
    folder = tmp_path_factory.mktemp("machines")
    source = fresh_example(folder / "source")
    (source / "orchestra.config.yaml").write_text('version: "1.0"\nwhitelist_tools: [sh, echo]\n')
    (source / ".pmagent").mkdir(exist_ok=True)
    with (source / ".pmagent/config.toml").open("a") as file:
        file.write(CONFIG)
    Made(source).commit("As it was")
    with one_server() as server, ExitStack() as stack:
        server.sql(f"CREATE ROLE {FAR} LOGIN IN ROLE {WRITER}; CREATE ROLE {LOOKS} LOGIN")
        assert not prepare(server.address(role="postgres"), [FAR], [LOOKS], {FAR: "ada", READER: "bert"})
        address = server.new_log()
        first = Machine(folder / "a", source, str(address))
        (first.workspace / "marker").touch()
        says(stack.enter_context(first.up()), "ready;")
        second = Machine(folder / "b", source, str(server.address(address.log, FAR)))
        third = Machine(folder / "c", source, str(server.address(address.log, READER)))
        says(stack.enter_context(second.up("--standby")), "standing by")
        fourth = Machine(folder / "d", source, str(server.address(address.log, LOOKS)))
        yield Two(first, second, third, fourth)
        for command in (("log", "verify"), ("replay",), ("rebuild", "--check")):
            done = first.run(*command)
            assert done.code == 0, done.text + done.errors
        assert server.sql("SELECT count(*) FROM pm.request WHERE arguments <> ''") == "0", "what was asked is not kept"


@pytest.fixture
def two(pair: Two, monkeypatch: pytest.MonkeyPatch) -> Two:
    """This process is on ada's machine."""
    monkeypatch.setenv("XDG_STATE_HOME", pair.far.environ["XDG_STATE_HOME"])
    return pair



EACH: dict[str, tuple[dict[str, Any], str, str]] = {
    "pla.mode": ({"mode": "SUGGEST", "operator": "ada"}, "pla.mode_requested", "operator_id"),
    "pla.propose": ({"goal": "type: ls", "operator": "ada"}, "pla.proposal_requested", "requested_by"),
    "oa.permit": ({"action": "feature_work", "subject": "x", "holder": "ada"}, "oa.permit_requested", "holder"),
    "alerts.handover": ({"text": "look", "operator": "ada"}, "alert.handed_over", "operator_id"),
    "guests.note": ({"text": "look", "operator": "ada"}, "guest.noted", "by"),
    "boot.oa": ({}, "oa.boot_requested", ""),
    "oa.snapshot": ({}, "oa.snapshot_requested", ""),
    "oa.view": ({}, "", ""),
    "oa.permits": ({}, "", ""),
    "figures": ({}, "", ""),
    "guests.sessions": ({}, "", ""),
    "guests.policy": ({}, "", ""),
    "guests.policy_file": ({"layer": "project"}, "", ""),
    "orchestra.written": ({}, "", ""),
    "settings": ({}, "", ""),
    "status": ({}, "", ""),
    "pla.status": ({}, "", ""),
    "pla.list": ({}, "", ""),
    "pla.show": ({}, "", ""),
    "alerts.list": ({}, "", ""),
    "guests.approvals": ({}, "", ""),
    "guests.written": ({}, "", ""),
    "pla.end": ({"operator": "ada"}, "pla.end_requested", "operator_id"),
    "pla.disarm": ({"operator": "ada"}, "pla.disarm_requested", "operator_id"),
}
"""In this order: operation -> arguments, the request in the log, and the field that says who asks."""


def test_each_operation_is_done_from_another_machine_in_its_operators_name(two: Two) -> None:
    for operation, (arguments, fact, field) in EACH.items():
        answer = two.ask(operation, **arguments)
        assert answer.exit_code == 0, (operation, answer)
        assert (answer.document.get("daemon") == "elsewhere") == OPERATIONS[operation].here, operation
        if fact:
            recorded = two.far.facts(fact)[-1]["data"]
            assert not field or recorded[field] == "ada", operation


REFUSED = [
    ("pla.arm", {"operator": "ada"}, "sees the device"),
    ("guests.import", {"harness": "claude", "path": "/x"}, "copy the transcripts"),
    ("pla.observe", {"operator": "ada", "frames": "/x"}, "leave --frames out"),
    ("pla.propose", {"operator": "ada", "frames": "/x", "goal": "type: ls"}, "leave --frames out"),
    ("pla.show", {"operator": "ada", "reveal": True}, "reveal it on the holder's machine"),
    ("guests.wall", {"started": {"wall": "w"}}, "start the agent on the holder's machine"),
    ("pla.decide", {"operator": "ada", "secret": "s"}, "on the holder's machine"),
    ("pla.propose", {"operator": "ada", "goal": "type: password: hunter2-hunter2"}, "on the holder's machine"),
    ("guests.note", {"operator": "ada", "text": "the key is ghp_" + "a1B2" * 9}, "on the holder's machine"),
]


@pytest.mark.parametrize(("operation", "arguments", "mend"), REFUSED)
def test_what_is_not_done_from_another_machine_says_where_and_leaves_it(
    two: Two, operation: str, arguments: dict[str, Any], mend: str
) -> None:
    with pytest.raises(NotFromHere) as raised:
        two.ask(operation, **arguments)
    assert mend in raised.value.hint


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("pla.mode", {"mode": "SUGGEST", "operator": "eve"}),
        ("oa.permit", {"action": "feature_work", "subject": "x", "holder": "eve"}),
        ("oa.permit_release", {"permit": 1, "holder": "coordinator"}),
        ("orchestra.apply", {"run_id": "x", "task": "", "digest": "x", "operator": "eve", "channel": "cli"}),
        ("guests.policy_edit", {"layer": "project", "text": "", "sha256": "0" * 64, "operator": "eve"}),
    ],
)
def test_nobody_asks_in_another_name(two: Two, operation: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(PmagentError, match="in another name") as raised:
        two.ask(operation, **arguments)
    assert raised.value.exit_code == SECURITY


def test_who_only_reads_asks_as_their_operator_and_without_a_standby(pair: Two) -> None:
    reader = pair.reader
    assert reader.run("pla", "mode", "SUGGEST", "--operator", "bert").code == 0
    proposed = reader.run("pla", "propose", "type: ls", "--operator", "bert", "--format", "json")
    assert proposed.code == 0, proposed.errors
    name, digest = proposed.document["proposal_id"], proposed.document["digest"]
    approve = ("pla", "approve", name, "--digest", digest, "--format", "json", "--operator")
    assert reader.run(*approve, "ada").code == SECURITY
    assert reader.run("pla", "mode", "EXECUTE", "--operator", "ada").code == SECURITY
    approved = pair.far.run(*approve, "ada")
    assert (approved.code, approved.document["outcome"]["outcome"]) == (0, "recorded"), approved.errors
    (decided,) = (one["data"] for one in reader.facts("pla.decision_requested") if one["data"]["proposal_id"] == name)
    assert decided["operator_id"] == "ada"
    told = reader.run("notify", "test")
    assert (told.code, "no channel" in told.errors + told.text) == (NO, True), told.errors
    for command in (("pla", "list"), ("alerts",), ("approvals",), ("guests",)):
        assert reader.run(*command).code == 0, command


def test_who_may_only_look_reads_the_log_and_asks_for_nothing(pair: Two) -> None:
    for looked in (("status",), ("pla", "status"), ("alerts",), ("approvals",), ("runs",), ("log", "tail")):
        assert pair.watcher.run(*looked).code == 0, looked
    before = pair.watcher.status()["log"]["position"]
    for command in (
        ("pause",), ("pla", "mode", "SUGGEST"), ("pla", "propose", "type: ls"), ("oa", "snapshot"), ("oa", "context"),
        ("kernel", "refresh"), ("notify", "test"), ("guests",),
    ):  # fmt: skip
        refused = pair.watcher.run(*command)
        assert (refused.code, "no operator's here" in refused.errors) == (USAGE, True), refused
    assert pair.watcher.status()["log"]["position"] == before


def test_the_context_is_the_holders_and_reasoning_goes_by_its_surfaces(two: Two) -> None:
    bootstrap = two.far.workspace / "share/PM_BOOTSTRAP_STATE.json"
    kept = bootstrap.read_text()
    bootstrap.unlink()
    given = two.far.workspace / "given.json"
    given.write_text('{"active_goal": "look"}')
    done = two.far.run("oa", "context", "--set", "given.json")
    assert done.code == 0, done.errors
    path = Path("share/oa/CONTEXT.json")
    assert "look" in (two.holder.workspace / path).read_text()
    assert "look" not in (two.far.workspace / path).read_text()
    shown = two.far.run("oa", "context", "--format", "json")
    assert shown.document["context"]["active_goal"] == "look"
    assert read_view(two.far.workspace).kernel["mode"] == "NORMAL", "that surface is there, where the log is held"
    concluded = run(build_envelope("SafeOPSDecision", "Add a page", workspace=two.far.workspace),
                    workspace=two.far.workspace)  # fmt: skip
    assert concluded.decision["allowed_action"] in ("PROCEED", "WARN")
    bootstrap.write_text(kept)


@needs_sandbox
def test_checks_run_where_the_log_is_held_and_its_surfaces_are_refreshed(two: Two) -> None:
    surface = Path("share/REALITY_GREEN_SUMMARY.json")
    before = (two.far.workspace / surface).read_bytes()
    done = two.far.run("kernel", "refresh", "--format", "json")
    assert done.code == 0, done.errors
    assert [(one["name"], one["passed"]) for one in done.document["checks"]] == [("mine", True)]
    assert str(surface) in done.document["written"]
    assert "mine" in (two.holder.workspace / surface).read_text()
    assert (two.far.workspace / surface).read_bytes() == before
    guard = two.far.run("oa", "guard", "--name", "ours", "--format", "json")
    assert (guard.code, guard.document["ok"]) == (0, True), guard.errors


def test_documents_are_written_on_this_machine_as_the_log_says(two: Two) -> None:
    assert two.ask("oa.snapshot").exit_code == 0
    state = two.far.workspace / "share/orchestrator_assistant/STATE.json"
    assert not state.exists()
    done = two.far.run("rebuild", "--format", "json")
    assert done.code == 0, done.errors
    assert state.exists()


def test_the_sessions_of_agents_are_the_holders(two: Two) -> None:
    started = {
        "wall": "wall-1", "harness": "script", "mode": "enforce", "operator_id": "ada", "program": "sh", "hosts": [],
        "writes": ["/x"], "reads": [], "login": False,
    }  # fmt: skip
    ended = {
        "wall": "wall-1", "exit_code": 0, "signal": None, "exceeded": "", "contacts": [], "contacts_dropped": 0,
        "planted": [],
    }  # fmt: skip
    two.ask("guests.wall", at=two.holder, started=started)
    listed = two.far.run("guests", "--format", "json")
    assert [one["session"] for one in listed.document["sessions"]] == ["wall-1"], listed.errors
    with pytest.raises(PmagentError, match="bert has started no wall"):
        two.ask("guests.wall", at=two.reader, ended=ended, harness="script")
    recorded = two.ask("guests.wall", ended=ended, harness="script")
    assert recorded.exit_code == 0, "a wall stands on a host that was the holder"
    one = two.far.run("guests", "wall-1", "--format", "json")
    assert one.document.get("reason") == "exit", one.text
    assert "wall-1" in two.far.run("guests", "wall").text
    assert two.far.run("guests", "nosuch").code == NO


def test_the_projects_policy_is_edited_from_another_machine_and_the_users_is_not(two: Two) -> None:
    file = two.ask("guests.policy_file", layer="project").document
    text = "version: 1\n# ada's\n"
    edit: dict[str, Any] = {
        "text": text, "before": file["sha256"], "sha256": sha256(text.encode()).hexdigest(), "operator": "ada",
        "channel": "cli",
    }  # fmt: skip
    answer = two.ask("guests.policy_edit", layer="project", **edit)
    assert answer.exit_code == 0, answer
    assert (two.holder.workspace / FILE).read_text() == text
    assert not (two.far.workspace / FILE).exists()
    with pytest.raises(PmagentError, match="every workspace of the holder"):
        two.ask("guests.policy_file", layer="user")
    with pytest.raises(PmagentError, match="every workspace of the holder"):
        two.ask("guests.policy_edit", layer="user", **edit)


@needs_sandbox
def test_the_files_of_a_run_are_applied_to_a_clone_that_stands_where_the_holders_does(two: Two) -> None:
    plan = two.far.workspace / "plan.yaml"
    plan.write_text(
        "- {task_id: t, intent: write, tools: [sh], inputs: {args: [-c, 'echo new > $ARTIFACTS/new.txt']}}"
    )
    ran = two.far.run("run", "Write", "--plan", "plan.yaml", "--format", "json")
    assert ran.code == 0, ran.errors
    name = ran.document["run_id"]
    shown = two.far.run("apply", name[:12], "--format", "json")
    assert shown.code == NO, shown.errors
    applied = two.far.run("apply", name[:12], "--digest", shown.document["digest"], "--operator", "ada")
    assert applied.code == 0, applied.errors
    assert (two.far.workspace / "new.txt").read_text() == "new\n"
    assert not (two.holder.workspace / "new.txt").exists()
    (ended,) = two.far.facts("run.apply_ended")
    assert ended["data"]["commit"]
    with pytest.raises(PmagentError, match="approves nothing"):
        two.ask("orchestra.applied", at=two.reader, run_id=name, approval=ended["data"]["approval"], commit="0" * 40,
                reason="")  # fmt: skip


@needs_sandbox
def test_an_audit_takes_its_report_along(two: Two, sources: Sources, tmp_path: Path) -> None:
    bare = Made(tmp_path / "hub/team/depcheck.git", bare=True)
    Made(sources.repository).git("push", "--quiet", str(bare.path), "HEAD:main")
    bare.git("update-server-info")
    audit = ("audit", str(sources.report), "--rubric", str(sources.rubric), "--format", "json")
    with served(tmp_path / "hub") as url:
        done = two.far.run(audit[0], f"{url}/team/depcheck.git", *audit[1:], "--output", str(tmp_path / "r.json"))
    assert done.code == 0, done.errors
    assert json.loads((tmp_path / "r.json").read_text())["report"]["audit_id"] == done.document["audit_id"]
    (asked,) = two.far.facts("audit.requested")
    assert asked["data"]["operator_id"] == "ada"
    sent = Path(asked["data"]["pdf_path"])
    assert sent.is_relative_to(two.holder.workspace)
    assert sent.read_bytes() == sources.report.read_bytes()
    local = two.far.run(audit[0], str(sources.repository), *audit[1:])
    assert (local.code, "cloned" in local.errors) == (USAGE, True), local.errors


def test_the_report_of_a_refused_audit_is_not_kept(two: Two) -> None:
    folder = two.holder.workspace / ".pmagent/data/reports"
    before = set(folder.glob("*"))
    refused = {"repo_url": "https://localhost/team/x.git", "pdf": "JVBERi0x", "audit_id": "x"}
    with pytest.raises(PmagentError, match="no audit that can be asked for"):
        two.ask("audit.run", at=two.reader, **refused)
    assert folder.exists()
    assert set(folder.glob("*")) == before


def test_the_end_of_a_commit_names_an_event(two: Two) -> None:
    with pytest.raises(PmagentError, match="no request to apply"):
        two.ask("orchestra.applied", run_id="x", approval=0, commit="0" * 40, reason="")
