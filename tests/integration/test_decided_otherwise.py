"""Commands, guard and page on logs and documents of an older release: listed differences are counted, others found."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pmagent import __version__
from pmagent.actors.oa.actor import Oa
from pmagent.actors.oa.state import OaActorState
from pmagent.actors.registry import all_actors
from pmagent.console.pages.reading import checking_child
from pmagent.contracts.oa import OaSnapshotTaken
from pmagent.contracts.otherwise import DecisionEntry, DocumentEntry, Entry, FieldChange, Otherwise, read
from pmagent.contracts.payload import Correlated, Payload
from pmagent.events.event import Event
from pmagent.oa import tools
from pmagent.workspace.layout import Layout
from tests.support.commands import Ran, pmagent

STATE = "share/orchestrator_assistant/STATE.json"
GLOOM = DecisionEntry(
    since="99.1", why="no snapshot ever succeeds", actor="oa", type="oa.snapshot_taken",
    fields=(FieldChange(at="/success", recorded="true", decided="false"),),
)  # fmt: skip
BRANCH = DocumentEntry(
    since="99.1", why="branches have their names", path="share/*/STATE.json", recorded='"twig"', decided='"main"'
)


class Pessimist(Oa):
    """Today's OA says that no snapshot ever succeeds."""

    def decide(self, state: OaActorState, event: Event) -> Iterable[Payload | Correlated]:
        """See the class."""
        for payload in super().decide(state, event):
            changed = isinstance(payload, OaSnapshotTaken)
            yield msgspec.structs.replace(payload, success=False) if changed else payload


@pytest.fixture
def recorded(workspace: Path) -> Path:
    """The example workspace with two snapshots in its log."""
    for _ in range(2):
        assert pmagent(workspace, "oa", "snapshot").code == 0
    return workspace


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have a table of these entries ship."""

    def planted(*entries: Entry) -> None:
        for place in ("pmagent.otherwise", "pmagent.service.comparing", "pmagent.console.pages.reading.checking_child"):
            monkeypatch.setattr(f"{place}.shipped", lambda: Otherwise(entries))

    return planted


def replayed(monkeypatch: pytest.MonkeyPatch, workspace: Path, *options: str) -> Ran:
    """A replay with the pessimist."""
    kernel, today = all_actors()[0], Pessimist()
    with monkeypatch.context() as patch:
        patch.setattr("pmagent.actors.registry.all_actors", lambda _: [kernel, today])
        return pmagent(workspace, "replay", *options)


def test_replay_counts_what_is_listed_and_exits_0(recorded: Path, plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert replayed(monkeypatch, recorded).code == 3
    plant(GLOOM)
    for options in ([], ["--what-if"], ["--actor", "oa"]):
        done = replayed(monkeypatch, recorded, *options)
        assert done.code == 0
        assert done.text.startswith("✓ equal")
        (line,) = (line for line in done.lines if "decided otherwise since" in line)
        assert "since 99.1: no snapshot ever succeeds" in line
        assert "2 of oa.snapshot_taken by oa" in line
    document = replayed(monkeypatch, recorded, "--format", "json").document
    assert document["equal"] is True
    assert document["divergences"] == []
    assert document["otherwise"] == [
        {"since": "99.1", "why": GLOOM.why, "count": 2, "actor": "oa", "type": "oa.snapshot_taken", "kind": "changed"}
    ]
    assert pmagent(recorded, "replay", "--format", "json").document["otherwise"] == []


def test_replay_ends_with_3_where_the_log_is_of_that_release_or_the_difference_is_another(
    recorded: Path, plant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for entry in (
        msgspec.structs.replace(GLOOM, since=__version__),
        msgspec.structs.replace(GLOOM, fields=(FieldChange(at="/path", recorded=".*", decided=".*"),)),
    ):
        plant(entry)
        done = replayed(monkeypatch, recorded)
        assert done.code == 3
        assert "oa.snapshot_taken" in done.text
        assert "since" not in done.text
        assert replayed(monkeypatch, recorded, "--format", "json").document["otherwise"] == []


def test_documents_of_an_older_release_are_counted_where_they_are_listed(recorded: Path, plant: Any) -> None:
    right = (recorded / STATE).read_bytes()
    (recorded / STATE).write_bytes(right.replace(b'"main"', b'"twig"'))
    assert pmagent(recorded, "rebuild", "--check").code == 1
    plant(BRANCH)
    done = pmagent(recorded, "rebuild", "--check")
    assert done.code == 0
    assert done.text.startswith("✓ equal")
    assert "decided otherwise since 99.1: branches have their names (1 of share/*/STATE.json)" in done.text
    document = pmagent(recorded, "rebuild", "--check", "--format", "json").document
    assert (document["ok"], document["differences"]) == (True, [])
    assert document["otherwise"] == [{"since": "99.1", "why": BRANCH.why, "count": 1, "path": BRANCH.path}]
    assert pmagent(recorded, "rebuild").code == 0
    assert (recorded / STATE).read_bytes() == right
    assert "decided otherwise" not in pmagent(recorded, "rebuild", "--check").text


def test_documents_that_differ_beyond_what_is_listed_are_differences(recorded: Path, plant: Any) -> None:
    right = (recorded / STATE).read_bytes()
    plant(BRANCH)
    for wrong in (right.replace(b'"main"', b'"evil"'), right.replace(b'"main"', b'"twig"') + b" "):
        (recorded / STATE).write_bytes(wrong)
        assert pmagent(recorded, "rebuild", "--check").code == 1
    (recorded / STATE).unlink()
    assert pmagent(recorded, "rebuild", "--check").code == 1
    plant(msgspec.structs.replace(BRANCH, since=__version__))
    (recorded / STATE).write_bytes(right.replace(b'"main"', b'"twig"'))
    assert pmagent(recorded, "rebuild", "--check").code == 1


def test_a_later_release_that_went_live_is_held_to_its_own_words(
    recorded: Path, plant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("pmagent.service.host.__version__", "99.1.0")
        assert pmagent(recorded, "oa", "snapshot").code == 0
    plant(GLOOM, BRANCH)
    assert replayed(monkeypatch, recorded).code == 3
    document = replayed(monkeypatch, recorded, "--what-if", "--format", "json").document
    assert [one["count"] for one in document["otherwise"]] == [2]
    assert [one["count"] for one in document["counts"]] == [1]
    state = recorded / STATE
    state.write_bytes(state.read_bytes().replace(b'"main"', b'"twig"'))
    assert pmagent(recorded, "rebuild", "--check").code == 1


def test_a_table_that_is_unreadable_ends_a_replay_as_our_bug(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pmagent.otherwise.__version__", "0")
    monkeypatch.setattr("pmagent.otherwise.read", lambda raw, *given: read(raw + b'["0.1"]\n', *given))
    done = pmagent(recorded, "replay")
    assert done.code == 70
    assert "otherwise.toml" in done.errors


def test_guard_and_page_take_listed_documents_for_right(recorded: Path, plant: Any) -> None:
    state = recorded / STATE
    state.write_bytes(state.read_bytes().replace(b'"main"', b'"twig"'))
    assert not tools.run_guard("projections", recorded, "STRICT")["ok"]
    assert not checking_child._documents(Layout(recorded))["ok"]
    plant(BRANCH)
    answer = tools.run_guard("projections", recorded, "STRICT")
    assert answer["ok"]
    assert "since 99.1" in answer["details"]["otherwise"][0]
    found = checking_child._documents(Layout(recorded))
    assert (found["ok"], found["count"]) == (True, 0)
    assert "since 99.1" in found["otherwise"][0]
