"""Differences made on purpose: what the table may say, what it covers, and that nothing else is passed over."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
import pytest

from pmagent.actors.core.actor import AnyActor
from pmagent.contracts.otherwise import (
    BadTable,
    DecisionEntry,
    DocumentEntry,
    FieldChange,
    Listed,
    Otherwise,
    read,
    release,
)
from pmagent.contracts.payload import Payload, types
from pmagent.events.event import Event
from pmagent.otherwise import shipped
from pmagent.replay.divergence import ReplayResult
from pmagent.replay.replayer import replay_log
from tests.support.cases import each
from tests.support.recorded import altered_log, inserted_log, stored_log
from tests.support.toys import Bench
from tests.support.wording import (
    DOUBT,
    REASON,
    Asked,
    Clearer,
    Filed,
    Judge,
    Judged,
    NoState,
    entry,
    filing,
    judged_by,
    table,
)

ROOT = Path(__file__).resolve().parents[2]
JUDGEMENTS = 10
"""So many follow from seven cases: three of them give two."""


@pytest.fixture(scope="module")
def bench() -> Bench:
    """A history of the release 0.1.0."""
    return judged_by(Judge(), "0.1.0")


def replayed(bench: Bench, judge: AnyActor, entries: Sequence[DecisionEntry], *, what_if: bool = False) -> ReplayResult:
    return replay_log(stored_log(bench.history), filing(judge), otherwise=Otherwise(entries), what_if=what_if)


# --- decisions ----------------------------------------------------------------------------------------------------


def test_a_listed_difference_is_counted_and_no_divergence(bench: Bench) -> None:
    result = replayed(bench, Clearer(), [entry(REASON, DOUBT)])
    assert result.equal
    assert result.divergences == []
    assert result.counts == []
    assert result.otherwise == [
        Listed(since="0.2", why="plainer words", count=JUDGEMENTS, actor="judge", type="wording.judged", kind="changed")
    ]
    line = result.otherwise[0].line()
    assert line.startswith("decided otherwise since 0.2: plainer words")
    assert str(JUDGEMENTS) in line
    assert "wording.judged" in line


def test_without_the_table_it_is_a_divergence(bench: Bench) -> None:
    assert replayed(bench, Clearer(), []).divergences[0].kind == "changed"
    assert replayed(bench, Judge(), [entry(REASON, DOUBT)]).otherwise == []


@each("version", ["0.2", "0.2.0", "0.2.0rc1", "0.2.0.dev3", "0.3.1", "1.0", "sim", "", "0"])
def test_the_same_difference_in_a_log_of_no_earlier_release_is_a_divergence(version: str) -> None:
    result = replayed(judged_by(Judge(), version), Clearer(), [entry(REASON, DOUBT)], what_if=True)
    assert not result.equal
    assert result.otherwise == []
    assert sum(one.count for one in result.counts) == JUDGEMENTS


@each("version", ["0.1", "0.1.0", "0.1.99", "0.1.0rc1", "0.0.7"])
def test_any_earlier_release_is_covered(version: str) -> None:
    assert replayed(judged_by(Judge(), version), Clearer(), [entry(REASON, DOUBT)]).equal


def test_a_log_that_several_releases_wrote_is_held_to_each_ones_own(bench: Bench) -> None:
    del bench
    mixed = judged_by(Judge(), "0.1.0", "0.2.0", "0.1.3")
    starts = [event.position for event in mixed.history if event.type == "daemon.started"]
    result = replayed(mixed, Clearer(), [entry(REASON, DOUBT)], what_if=True)
    assert result.otherwise[0].count == 2 * JUDGEMENTS
    places = [found.position for found in result.divergences]
    assert len(places) == JUDGEMENTS
    assert all(starts[1] < place < starts[2] for place in places)


def test_a_decision_before_any_start_is_of_no_known_release() -> None:
    early = Bench(filing(Judge()))
    early.fact(Asked(n=1))
    assert not replayed(early, Clearer(), [entry(REASON, DOUBT)]).equal


@each(
    "listed",
    [
        entry(REASON), entry(DOUBT), entry(REASON, DOUBT, actor="filer"), entry(REASON, DOUBT, type="wording.filed"),
        entry(REASON, msgspec.structs.replace(DOUBT, at="/doubts/1")),
        entry(REASON, msgspec.structs.replace(DOUBT, at="/doubts")),
        entry(REASON, msgspec.structs.replace(DOUBT, decided="nothing proves 5")),
        entry(REASON, msgspec.structs.replace(DOUBT, recorded="no proof of")),
        entry(REASON, msgspec.structs.replace(DOUBT, recorded=None)),
        entry(REASON, msgspec.structs.replace(DOUBT, decided=None)),
        entry(REASON, DOUBT, kind="extra"), entry(REASON, DOUBT, kind="missing"),
    ],
)  # fmt: skip
def test_a_difference_that_is_not_covered_as_a_whole_is_a_divergence(bench: Bench, listed: DecisionEntry) -> None:
    result = replayed(bench, Clearer(), [listed], what_if=True)
    assert result.counts
    assert result.counts[0].type == "wording.judged"


def test_entries_of_several_releases_cover_a_decision_together(bench: Bench) -> None:
    result = replayed(bench, Clearer(), [entry(DOUBT, since="0.3", why="doubts"), entry(REASON)])
    assert result.equal
    assert [(one.since, one.why, one.count) for one in result.otherwise] == [
        ("0.2", "plainer words", JUDGEMENTS), ("0.3", "doubts", JUDGEMENTS),
    ]  # fmt: skip
    later = judged_by(Judge(), "0.2.0")
    assert not replayed(later, Clearer(), [entry(DOUBT, since="0.3"), entry(REASON)]).equal


class Stricter(Judge):
    """Gives other scores, and other doubts in number."""

    def judged(self, n: int) -> Judged:
        """See Judge."""
        return msgspec.structs.replace(super().judged(n), score=2, doubts=["late"])


def test_values_that_are_no_texts_are_matched_as_json(bench: Bench) -> None:
    score = FieldChange(at="/score", recorded="3", decided="2")
    doubts = FieldChange(at="/doubts", recorded=r'\["no proof of \d+","late"\]', decided=r'\["late"\]')
    assert replayed(bench, Stricter(), [entry(score, doubts)]).equal
    longer = msgspec.structs.replace(doubts, decided=r'\["late", .*\]')
    assert not replayed(bench, Stricter(), [entry(score, longer)]).equal
    assert not replayed(bench, Stricter(), [entry(doubts)]).equal


class Talker(Judge):
    """Decides one thing more, at the end of each reaction."""

    def decide(self, state: NoState, event: Event) -> Iterable[Payload]:
        """See Judge."""
        yield from super().decide(state, event)
        yield Filed(n=event.data.n, mixed=0)


def test_a_decision_that_is_new_or_gone_is_listed_by_what_it_holds(bench: Bench) -> None:
    mixed = FieldChange(at="/mixed", decided="0")
    new = entry(mixed, kind="missing", type="wording.filed")
    result = replayed(bench, Talker(), [new])
    assert result.equal
    assert [(one.kind, one.count) for one in result.otherwise] == [("missing", 7)]
    assert not replayed(bench, Talker(), [msgspec.structs.replace(new, actor="filer")]).equal
    assert not replayed(
        bench, Talker(), [msgspec.structs.replace(new, fields=(FieldChange(at="/mixed", decided="1"),))]
    ).equal
    assert not replayed(
        bench, Talker(), [msgspec.structs.replace(new, fields=(mixed, FieldChange(at="/none", decided=".*")))]
    ).equal

    talked = judged_by(Talker(), "0.1.0")
    gone = entry(FieldChange(at="/mixed", recorded="0"), kind="extra", type="wording.filed")
    assert replayed(talked, Judge(), [gone]).otherwise[0].count == 7
    assert not replayed(talked, Judge(), [new]).equal


class Filing(Judge):
    """Files what it would have judged."""

    def decide(self, state: NoState, event: Event) -> Iterable[Payload]:
        """See Judge."""
        return [Filed(n=payload.n, mixed=0) for payload in super().decide(state, event) if isinstance(payload, Judged)]


def test_a_decision_of_another_type_is_one_that_is_gone_and_one_that_is_new(bench: Bench) -> None:
    gone = entry(FieldChange(at="/score", recorded="3"), kind="extra")
    new = entry(FieldChange(at="/mixed", decided="0"), kind="missing", type="wording.filed")
    assert replayed(bench, Filing(), [gone, new]).equal
    assert not replayed(bench, Filing(), [gone]).equal
    assert not replayed(bench, Filing(), [new]).equal


def test_a_decision_that_stands_there_twice_is_a_divergence(bench: Bench) -> None:
    last = max(event.position for event in bench.history if event.actor == "filer")
    log = inserted_log(stored_log(bench.history), last, lambda event: event)
    found = replay_log(log, filing(Judge())).divergences
    assert [(one.kind, one.position) for one in found] == [("extra", last + 1)]


@each("respelled", [
    lambda raw: raw.replace(b'"score":3', b'"score": 3'),
    lambda raw: raw.replace(b'"n":0,', b'"n":0,"n":0,'),
    lambda raw: b'{"score":3,' + raw[1:].replace(b',"score":3', b""),
    lambda raw: raw.replace(b"refused", rb"re\u0066used"),
])
def test_a_listed_difference_covers_no_other_spelling(bench: Bench, respelled: Callable[[bytes], bytes]) -> None:
    first = next(event for event in bench.history if event.type == "wording.judged")
    assert respelled(first.raw) != first.raw

    def change(event: Event) -> Event:
        return msgspec.structs.replace(event, raw=respelled(event.raw))

    log = altered_log(stored_log(bench.history), {first.position: change})
    for judge in (Judge(), Clearer()):
        found = replay_log(log, filing(judge), otherwise=table(), actor="judge").divergences
        assert [one.position for one in found] == [first.position]


@each("part", ["actor", "correlation"])
def test_a_listed_difference_covers_no_other_part_of_a_decision(bench: Bench, part: str) -> None:
    first = next(event for event in bench.history if event.type == "wording.judged")
    expected = msgspec.structs.replace(first, data=Judged(n=0, reason="", doubts=[]), raw=b'{"n":0}')
    assert table([entry(FieldChange(at="", recorded="(?s).*", decided="(?s).*"))]).decision("0.1", expected, first)
    other = msgspec.structs.replace(expected, **{part: "other"})
    assert table([entry(FieldChange(at="", recorded="(?s).*", decided="(?s).*"))]).decision("0.1", other, first) == ()


def test_a_field_that_a_type_gained_is_listed_as_absent_before(bench: Bench) -> None:
    """Of the recorded decision: an older release did not write it."""
    score = b',"score":3'
    first = next(event for event in bench.history if event.type == "wording.judged")
    log = altered_log(
        stored_log(bench.history[: first.position]),
        {first.position: lambda event: msgspec.structs.replace(event, raw=event.raw.replace(score, b""))},
    )
    gained = entry(FieldChange(at="/score", decided="3"))
    assert not replay_log(log, filing(Judge())).equal
    assert replay_log(log, filing(Judge()), otherwise=Otherwise([gained])).equal
    for other in (FieldChange(at="/score", decided="4"), FieldChange(at="/score", recorded="3", decided="3")):
        assert not replay_log(log, filing(Judge()), otherwise=Otherwise([entry(other)])).equal


# --- documents ----------------------------------------------------------------------------------------------------

OLD = b"# Report\nTook 12 s\n\nRefused: a\nRefused: b\nend\n"
NEW = b"# Report\nDuration: 12 s\n\nRefused: a\nRefused: b\nend\n"
TOOK = DocumentEntry(
    since="0.2", why="a report says how long", path="runs/*/report.md", recorded=r"^Took (?P<s>\d+) s$",
    decided=r"^Duration: (?P=s) s$",
)  # fmt: skip


def test_a_document_is_covered_when_all_of_it_is() -> None:
    listed = Otherwise([TOOK])
    assert listed.document("runs/x/report.md", OLD, NEW) == (TOOK,)
    for path in ("runs/x/y/report.md", "runs/report.md", "a/runs/x/report.md", "runs/x/report_md", "runs/x/report.mdx"):
        assert listed.document(path, OLD, NEW) == ()
        assert not listed.lists_document(path)
    for old, new in (
        (OLD, NEW + b"more\n"), (OLD + b"more\n", NEW), (OLD, NEW.replace(b"12", b"13")), (OLD, OLD), (NEW, NEW),
        (OLD.replace(b"12", b"x"), NEW), (OLD, NEW.replace(b"# R", b"# r")), (OLD, b""), (b"", NEW), (NEW, OLD),
        (OLD + b"\xff", NEW + b"\xff"), (None, NEW),
    ):  # fmt: skip
        assert listed.document("runs/x/report.md", old, new) == (), (old, new)


def test_several_passages_and_entries_cover_a_document_together() -> None:
    refused = msgspec.structs.replace(
        TOOK, recorded="^Refused: (?P<who>.*)$", decided="^(?P=who) was refused$", why="w"
    )
    added = msgspec.structs.replace(TOOK, recorded="^(?=end$)", decided=r"(?:.+ stands\n)*", why="x")
    new = NEW.replace(b"Refused: a\nRefused: b", b"a was refused\nb was refused")
    assert Otherwise([refused, TOOK]).document("runs/x/report.md", OLD, new) == (TOOK, refused)
    assert Otherwise([refused, TOOK]).document("runs/x/report.md", OLD, new.replace(b"b was", b"c was")) == ()
    more = new.replace(b"end", b"it stands\nand stands\nend")
    assert set(Otherwise([refused, TOOK, added]).document("runs/x/report.md", OLD, more)) == {refused, TOOK, added}
    assert Otherwise([refused, TOOK]).document("runs/x/report.md", OLD, more) == ()


def test_a_document_that_no_older_release_wrote_is_listed_without_what_was() -> None:
    graph = DocumentEntry(since="0.2", why="a run has a graph", path="runs/*/graph.svg", decided=r"(?s)<svg.*</svg>\n")
    listed = Otherwise([graph])
    assert listed.document("runs/x/graph.svg", None, b"<svg>\n</svg>\n") == (graph,)
    assert listed.document("runs/x/graph.svg", None, b"<html>") == ()
    assert listed.document("runs/x/graph.svg", b"<svg>\n</svg>\n", b"<svg></svg>\n") == ()


# --- the table ----------------------------------------------------------------------------------------------------

GOOD = """
[["0.2".decisions]]
why = "plainer words"
actor = "judge"
type = "wording.judged"
fields = [{ at = "/reason", recorded = 'refused: (?P<n>\\d+)', decided = 'case (?P=n) is refused' }]

[["0.2".documents]]
why = "a report says how long"
path = "runs/*/report.md"
recorded = 'Took (?P<s>\\d+) s'
decided = 'Duration: (?P=s) s'
"""


def test_a_table_is_read() -> None:
    decision, document = read(GOOD.encode(), "t", "0.2.0.dev1").entries
    assert decision == entry(REASON)
    assert (document.since, document.why) == ("0.2", "a report says how long")


@each("old, new, named", [
    ("actor =", "actr =", "actr"),
    ("fields = [{ at", "fields = [{ colour = 'red', at", "colour"),
    ("path =", "file =", "file"),
    ('"0.2".decisions', '"0.2".verdicts', "verdicts"),
    ('"0.2".decisions', '"0.3".decisions', "0.3"),
    ('"0.2".decisions', '"0.2rc1".decisions', "0.2rc1"),
    ('"0.2".decisions', '"next".decisions', "next"),
    ('"0.2".decisions', '"2".decisions', "'2'"),
    ('type = "wording.judged"\n', "", "type"),
    ("fields = [{", "kind = 'other'\nfields = [{", "other"),
    ("fields = [{", "kind = 'missing'\nfields = [{", "/reason"),
    ("fields = [{", "kind = 'extra'\nfields = [{", "/reason"),
    ("fields = [{", "since = '0.1'\nfields = [{", "since"),
    ("(?P<n>", "(?P<n", "pattern"),
    ("case (?P=n)", "case (?P=m)", "pattern"),
    ("Took (?P<s>", "Took (?P<t>", "pattern"),
    ('at = "/reason"', 'at = "reason"', "reason"),
    ("decided = 'Duration: (?P=s) s'", "", "decided"),
    ('why = "plainer words"', 'why = " "', "why"),
    ('why = "plainer words"', 'why = "a\\nb"', "why"),
    (", recorded = 'refused: (?P<n>\\d+)', decided = 'case (?P=n) is refused'", "", "/reason"),
    ("fields = [{", "fields = []\n# [{", "fields"),
    ('actor = "judge"', "actor = 7", "actor"),
    ("[[", "[", "t:"),
])  # fmt: skip
def test_a_table_with_anything_wrong_is_an_error_that_names_it(old: str, new: str, named: str) -> None:
    assert old in GOOD
    with pytest.raises(BadTable) as bad:
        read(GOOD.replace(old, new, 1).encode(), "t", "0.2.0")
    assert named in bad.value.message
    assert bad.value.message.startswith("t")
    assert bad.value.hint
    assert bad.value.exit_code == 70


@each("content", [b"\xff", b"= =", b"[" * 5000, b'a = 1\n"0.1" = 3\n'])
def test_content_that_is_no_table_is_an_error(content: bytes) -> None:
    with pytest.raises(BadTable):
        read(content, "t", "0.2.0")


def test_a_release_that_is_not_out_yet_is_unknown() -> None:
    for running in ("0.1.0", "0.1.9", "what"):
        with pytest.raises(BadTable):
            read(GOOD.encode(), "t", running)
    assert read(GOOD.encode(), "t", "1.0").entries


def test_releases_are_compared_as_numbers() -> None:
    assert release("0.10") == (0, 10, 0)
    assert release("0.10.2") == release("0.10.2.post1") == (0, 10, 2)
    assert (release("0.9.11") or ()) < (release("0.10") or ())
    assert release("") is release("1") is release("v1.0") is None


def test_the_examples_that_show_how_to_list_a_difference_are_tables() -> None:
    page = (ROOT / "docs" / "releases.md").read_text("utf-8")
    (shown,) = re.findall(r"^```toml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    remarks = (ROOT / "pmagent" / "data" / "otherwise.toml").read_text("utf-8")
    for example in (shown, "\n".join(re.findall(r"^# (\[\[.*|\w+ = .*)$", remarks, re.MULTILINE))):
        decision, document = read(example.encode(), "t", "0.2.0").entries
        assert isinstance(decision, DecisionEntry)
        assert decision.fields[0].covers("work is forbidden", "action work is forbidden")
        assert not decision.fields[0].covers("work is forbidden", "action play is forbidden")
        written = Otherwise([document]).document("runs/1/report.md", b"a\nTook 3 s\n", b"a\nDuration: 3 s\n")
        assert written == (document,)


def test_the_table_that_ships_names_types_that_there_are() -> None:
    for listed in shipped().entries:
        assert listed.since
        assert not isinstance(listed, DecisionEntry) or listed.type in types()
