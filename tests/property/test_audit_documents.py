"""The documents of audits have their shapes, whatever happens, and are the same however the log was folded."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.contracts.audit import AuditReport
from pmagent.contracts.audit_events import (
    AuditCancelRequested,
    AuditCloneRequested,
    AuditConcluded,
    AuditPdfRequested,
    AuditPicturesRequested,
    AuditRequested,
    AuditSourceFailed,
)
from pmagent.contracts.effect import EffectFailed, EffectInterrupted
from pmagent.contracts.model import ModelCallRequested
from pmagent.events.event import Event
from pmagent.projections.audits.audits import Audits
from pmagent.projections.core.documents import Documents
from pmagent.projections.core.markdown import HIDDEN
from tests.support.audit_documents import copied, folded, shown
from tests.support.audits import Court, dimension, rubric, said
from tests.support.effort import examples
from tests.support.hostile import CORPUS
from tests.support.run_folders import PLAIN, every, parsed, schema, sums

TEXTS = st.sampled_from(["plain", "# x\n[y](https://evil.example) <b>", *(text[:200] for text in CORPUS.values())])
MARKUP = ["State", "# x", "[y](https://evil.example)", "<b>x", "**5/5** | a | b", "1. `x", "漢字"]
ALLOWED = PLAIN | {"blockquote_open", "blockquote_close", "hr", "ordered_list_open", "ordered_list_close"}
Act = Callable[[Court], None]
EFFECTS: tuple[type[msgspec.Struct], ...] = (
    AuditCloneRequested,
    AuditPdfRequested,
    AuditPicturesRequested,
    ModelCallRequested,
)


def name(number: int) -> str:
    return f"7d3f5a10-6f0c-4d0e-8c11-{number:012}"


@st.composite
def requests(draw: st.DrawFn) -> Act:
    """An audit is asked for, by an id and with an output that may be taken."""
    number, output, text = draw(st.integers(0, 3)), draw(st.integers(0, 1)), draw(st.sampled_from(MARKUP))
    more: dict[str, Any] = {"engine": "langchain", "model": "toy"} if draw(st.booleans()) else {}
    document = rubric(dimension("state", name=text), dimension("diagram", "pdf_images", goals=["images.present"]))
    url = f"https://example.org/{text[:20].encode().hex()}.git"
    return lambda court: _asked(court, document, name(number), f"audit/{output}", url, more)


def _asked(court: Court, document: dict[str, Any], audit_id: str, output: str, url: str, more: dict[str, Any]) -> None:
    court.ask(document, audit_id, output=output, repo_url=url, **more)


@st.composite
def steps(draw: st.DrawFn) -> Act:
    """The next effect has its outcome; a judge says something."""
    count, text, score = draw(st.sampled_from([1, 3, 40])), draw(TEXTS), draw(st.integers(1, 5))

    def act(court: Court) -> None:
        court.model = lambda event, asked: said(event, asked, score, argument="x" + text)
        for _ in range(count):
            if not court.step():
                court.wake()

    return act


@st.composite
def failures(draw: st.DrawFn) -> Act:
    """An effect fails."""
    kind, number, text = draw(st.sampled_from(EFFECTS)), draw(st.integers(0, 2)), draw(TEXTS)

    def act(court: Court) -> None:
        for event in (court.open(kind) or [one for some in EFFECTS for one in court.open(some)])[:1]:
            ends: list[msgspec.Struct] = [
                EffectFailed(request=event.position, error="OSError", place="x:1"),
                EffectInterrupted(request=event.position, reason="crash"),
            ]
            if not isinstance(event.data, ModelCallRequested):
                ends.append(AuditSourceFailed(request=event.position, code="network", text="x" + text, mend="m"))
            court.end(event, ends[number % len(ends)])

    return act


def _cancelled(court: Court) -> None:
    court.tell(AuditCancelRequested(audit_id=name(0), reason="enough <b>`"))


OTHERS: list[Act] = [_cancelled, lambda court: court.observe("BLOCKED"), lambda court: court.observe("NORMAL")]
ACTS = st.lists(
    st.one_of(requests(), steps(), steps(), steps(), failures(), st.sampled_from(OTHERS)), min_size=4, max_size=12
)


def history(acts: list[Act], first: Act) -> list[Event]:
    court = Court()
    for act in [first, *acts]:
        act(court)
    return court.history


@given(ACTS, requests())
@settings(max_examples=examples(30), deadline=None)
def test_documents_have_their_shapes_whatever_happens(acts: list[Act], first: Act) -> None:
    events = history(acts, first)
    reports = 0
    for path, content in shown(folded(events)).items():
        text = content.decode()
        assert text.endswith("\n")
        assert not HIDDEN.search(text.replace("\n", ""))
        if path.startswith("jobs/"):
            schema("job/job_status")(json.loads(text))
        elif path.endswith(".json"):
            AuditReport.model_validate(json.loads(text)["report"])
        else:
            reports += 1
            assert {token.type for token in every(parsed(text))} <= ALLOWED
    assert bool(reports) == any(isinstance(event.data, AuditConcluded) for event in events)


@given(ACTS, requests(), st.integers(1, 2), st.integers(1, 30))
@settings(max_examples=examples(30), deadline=None)
def test_documents_are_the_same_however_the_log_was_folded(acts: list[Act], first: Act, kept: int, piece: int) -> None:
    """At once, or in pieces with starts from the snapshot cache in between; at the end, or given out before."""
    events = history(acts, first)
    whole = folded([], projection=Audits(kept))
    given_out: dict[str, Any] = {}
    pieces = folded([], projection=Audits(kept))
    on_disk: dict[str, Any] = {}
    for event in events:
        folded([event], whole)
        given_out.update({path: part.content() for path, part in whole.take_retired().items()})
    given_out.update(whole.render())
    for start in range(0, len(events), piece):
        some = events[start : start + piece]
        pieces.fold(some, sums(some))
        on_disk.update(pieces.take_changed())
        pieces.settle()
        if start % 2:
            pieces = copied(pieces, Audits(kept))
    on_disk.update(pieces.render())
    assert on_disk == given_out
    last = {  # of each output, the audit that concluded last has the report
        f"{events[event.data.request - 1].data.output}.json": event.position
        for event in events
        if isinstance(event.data, AuditConcluded)
    }
    assert last == {
        path: json.loads(raw)["provenance"]["position"] for path, raw in on_disk.items() if path.startswith("audit/")
        and path.endswith(".json")
    }  # fmt: skip


@given(ACTS, requests())
@settings(max_examples=examples(30), deadline=None)
def test_a_job_never_goes_back(acts: list[Act], first: Act) -> None:
    """For each request its status and its progress only go on; and what has ended stays as it is."""
    order = ["queued", "running", "complete", "failed"]
    documents = Documents([Audits()])
    last: dict[str, tuple[int, float]] = {}
    for event in history(acts, first):
        documents.fold([event], sums([event]))
        jobs = {path: json.loads(raw) for path, raw in shown(documents).items() if path.startswith("jobs/")}
        for path, told in jobs.items():
            now = (order.index(told["status"]), told["progress"])
            before = last.get(path, (0, 0.0))
            if isinstance(event.data, AuditRequested) and before[0] >= 2:
                before = (0, 0.0)  # asked for anew
            assert now[0] >= before[0]
            assert now[1] >= before[1]
            last[path] = now
