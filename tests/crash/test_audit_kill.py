"""A host is killed with SIGKILL while it audits: no process and no clone outlives it, the audit is taken up by the next
start, and what was answered is not asked again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from pmagent.contracts.audit_events import AuditConcluded
from pmagent.contracts.model import ModelCallRequested, ModelReplied
from pmagent.events.event import Event
from pmagent.replay.areas.invariants_audits import check_audits
from pmagent.replay.areas.invariants_models import check_models
from pmagent.workspace.layout import Layout
from tests.support import warm
from tests.support.audited import Sources, sources
from tests.support.bench import Bench, Question, sitting
from tests.support.commands import pmagent
from tests.support.effort import some
from tests.support.forked import KILLED, forks
from tests.support.logged import proven_history

__all__ = ["sources"]

pytestmark = pytest.mark.slow

COLLECTED = ("audit.clone_requested:1", "audit.surveyed:1", "audit.concluded:1")
JUDGED = ("model.replied:2", "audit.opinion_given:7", "audit.criterion_ruled:2")
"""Events on which a host kills itself as soon as they are durable."""

Host = Callable[[int, str, str], tuple[int, int]]


@pytest.fixture(scope="module", autouse=True)
def preloaded() -> None:
    """Hosts find imported what takes a second each time."""
    warm.preload(*warm.OPENAI, "pmagent.actors.audit.progress")


@contextmanager
def hosts(workspace: Path, sources: Sources, environ: Mapping[str, str] | None = None) -> Iterator[Host]:
    """Runs one host at a time: audit, its model, when it is killed -> its exit code, and how many processes it left."""
    given = [workspace, sources.repository, sources.report, sources.rubric]
    with forks("kill_audit", *given, environ=environ) as ask:

        def run(number: int, model: str, kill: str) -> tuple[int, int]:
            code, left = map(int, ask(audit_id(number), model, kill))
            return code, left

        yield run


def audit_id(number: int) -> str:
    """The n-th audit's id."""
    return f"00000000-0000-4000-8000-{number:012x}"


def test_an_audit_whose_host_is_killed_while_it_collects_goes_on(workspace: Path, sources: Sources) -> None:
    moments = some(COLLECTED, 1)
    with hosts(workspace, sources) as host:
        for number, moment in enumerate(moments):
            assert host(number, "-", moment)[0] == KILLED, f"{moment}: it did not come"
            assert host(number, "-", "never")[0] == 0, f"{moment}: the next start failed"
    check(workspace, len(moments))


def test_an_audit_whose_hosts_are_killed_in_the_middle_of_reading_comes_to_its_end(
    workspace: Path, sources: Sources
) -> None:
    random = Random(11)
    left = 0
    with hosts(workspace, sources) as host:
        for _ in range(4):
            code, processes = host(0, "-", f"{random.random() * 0.3:.3f}")
            left += processes
            if code == 0:
                break  # it came to its end before
            assert code == KILLED
        assert host(0, "-", "never")[0] == 0
    assert left, "nothing was at work when the hosts were killed"
    check(workspace, 1)


def test_an_audit_whose_host_is_killed_while_models_judge_asks_nothing_twice_that_was_answered(
    workspace: Path, sources: Sources
) -> None:
    scores = {Question("Prosecutor", "state", 1): 1, Question("Defense", "state", 1): 5}  # there is a second round
    bench = Bench(scores=scores)
    moments = some(JUDGED, 2)
    with sitting(bench) as environ, hosts(workspace, sources, environ) as host:
        for number, moment in enumerate(moments):
            assert host(number, "openai:gpt-x", moment)[0] == KILLED, f"{moment}: it did not come"
            assert host(number, "openai:gpt-x", "never")[0] == 0, f"{moment}: the next start failed"
    recorded = check(workspace, len(moments))
    for number in range(len(moments)):
        own = [event.data for event in recorded if event.correlation == audit_id(number)]
        replies = Counter(data.ask for data in own if isinstance(data, ModelReplied))
        assert len(replies) == sum(replies.values()) == 9, "six opinions, and three of a second round"
        last = {data.ask: data.attempt for data in own if isinstance(data, ModelCallRequested)}
        assert last.keys() == replies.keys(), "every question was answered"
    calls = sum(1 for event in recorded if isinstance(event.data, ModelCallRequested))
    assert sum(bench.asked.values()) <= calls, "nobody asks but by the log"
    whole = [pages(workspace, number) for number in range(len(moments))]
    assert whole == [whole[0]] * len(whole), "wherever it was killed, the report is the same"


def pages(workspace: Path, number: int) -> str:
    """An audit's report, without what names this very audit."""
    text = (workspace / "audit" / f"{audit_id(number)}.md").read_text()
    return text.partition("## Provenance")[0].replace(audit_id(number), "AUDIT")


def check(workspace: Path, audits: int) -> list[Event]:
    """The log is whole, replays, and holds so many reports; the documents are those of the log; no clone is left. Its
    events."""
    recorded = proven_history(workspace)
    check_audits(recorded)
    check_models(recorded)
    concluded = [event.data.audit_id for event in recorded if isinstance(event.data, AuditConcluded)]
    assert concluded == [audit_id(number) for number in range(audits)]
    rebuilt = pmagent(workspace, "rebuild", "--check")
    assert rebuilt.code == 0, rebuilt.text + rebuilt.errors
    clones = Layout(workspace).folder / "audits"
    assert not clones.exists() or not list(clones.iterdir())
    return recorded
