"""An audit as its page shows it: the report's facts, and beside each opinion the evidence that it cites."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

import msgspec

from pmagent.actors.audit.justice.dissent import NAMES
from pmagent.actors.audit.justice.scores import shown
from pmagent.contracts.audit_events import BesideItem, EvidenceItem, JudgeName, OpinionItem, RuleItem
from pmagent.events.log import now
from pmagent.jobs.history import Cancelling, Jobs
from pmagent.jobs.story import AuditStory
from pmagent.projections.audits.evidence import excerpt
from pmagent.projections.audits.report import CHANGED, blocks
from pmagent.projections.views.audits import JUDGES, SOURCES, Audit, Source, Standing
from pmagent.when import took

ITEMS_MAX: Final = 300
"""Of audits with more pieces of evidence a page shows those that are cited; a criterion by itself has all its own."""
REJECTED_MAX: Final = 50


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of evidence. ``anchor`` is its place in the page ("": it is not in it), ``cited`` who rests on it;
    ``more`` lines of its content are left out."""

    key: str
    anchor: str
    found: bool
    goal: str
    location: str
    rationale: str
    confidence: str
    lines: list[str]
    more: int
    cited: list[str]


class Cite(msgspec.Struct, frozen=True):
    """A citation of an opinion. ``piece`` None: it is no evidence of this criterion."""

    key: str
    piece: Piece | None


class Opinion(msgspec.Struct, frozen=True):
    """A judge's opinion. ``aside``: it did not count."""

    judge: str
    score: int
    argument: str
    cites: list[Cite]
    aside: bool


class Rule(msgspec.Struct, frozen=True):
    """A rule that had something to say; ``changed``: the score, from ``before`` to ``after`` ("": there was none)."""

    rule: str
    words: str
    before: str
    after: str
    text: str
    changed: bool


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A criterion of the rubric, as far as it has come: ``standing``. ``scores`` by judge of the round that counts;
    ``changes``: which rules changed the score, from what to what; ``left_out``: so many pieces are not in the page."""

    standing: Standing
    anchor: str
    scores: list[str]
    changes: str
    rounds: list[tuple[str, list[Opinion]]]
    pieces: list[Piece]
    left_out: int
    rules: list[Rule]


class Document(msgspec.Struct, frozen=True):
    """The report as a file."""

    name: str
    address: str
    size: int
    sha256: str


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """All that an audit's page shows beside its view. ``beside``: how others score; ``readings``: each source by name,
    and how long reading it took; ``only``: the one criterion that was asked for."""

    audit: Audit
    took: str
    summary: list[tuple[str, list[str]]]
    plan: list[tuple[str, list[str]]]
    readings: list[tuple[str, Source, str]]
    parts: list[Part]
    judges: list[str]
    only: str
    rejected: list[str]
    rejected_more: int
    beside: list[BesideItem]
    documents: list[Document]
    cancelled: Cancelling | None


def audit_page(story: AuditStory, jobs: Jobs, only: str = "") -> AuditPage:
    """The page; ``only``: of the criteria this one, with all of its evidence. Raises CorruptLog."""
    audit = story.view
    until = audit.until(now())
    items = sum(map(len, audit.evidence.values()))
    chosen = [one for one in audit.standings if only in ("", one.criterion.id)]
    concluded = audit.concluded
    return AuditPage(
        audit=audit,
        took=took(audit.at, until),
        summary=blocks(concluded.executive_summary) if concluded is not None else [],
        plan=blocks(concluded.remediation_plan) if concluded is not None else [],
        readings=[
            (name, one, took(one.started, one.ended or until)) for name in SOURCES for one in [audit.sources[name]]
        ],
        parts=[_part(audit, one, whole=bool(only) or items <= ITEMS_MAX) for one in chosen],
        judges=[NAMES[judge] for judge in JUDGES],
        only=only,
        rejected=[
            f"{NAMES[one.judge]} on {one.criterion_id}, answer {one.attempt}: {one.objection}"
            for one in audit.rejected[-REJECTED_MAX:]
        ],
        rejected_more=max(len(audit.rejected) - REJECTED_MAX, 0),
        beside=list(concluded.beside or ()) if concluded is not None else [],
        documents=_documents(story, jobs),
        cancelled=jobs.cancelling(audit.stopped_by),
    )


def file_name(audit: Audit, ending: str) -> str:
    """The report's file name."""
    return audit.path.rpartition("/")[2] + ending


def report_of(story: AuditStory, jobs: Jobs) -> Mapping[str, bytes]:
    """The report's documents by their endings. Raises CorruptLog."""
    return story.report(jobs.storage.log_id())


# --- parts ---------------------------------------------------------------------------------------------------------


def _documents(story: AuditStory, jobs: Jobs) -> list[Document]:
    audit = story.view
    return [
        Document(
            file_name(audit, ending), f"/audits/{audit.id}/report{ending}", len(content),
            sha256(content).hexdigest(),
        )
        for ending, content in report_of(story, jobs).items()
    ]  # fmt: skip


def _part(audit: Audit, standing: Standing, *, whole: bool) -> Part:
    criterion, ruling = standing.criterion, standing.ruling
    given = [one for one in audit.opinions if one.opinion.criterion_id == criterion.id]
    items = audit.evidence.get(criterion.id, [])
    cited: dict[str, list[str]] = {}
    for one in given:
        for key in dict.fromkeys(one.opinion.cited_evidence):
            cited.setdefault(key, []).append(NAMES[one.opinion.judge] + (" (second round)" if one.round > 1 else ""))
    number = audit.criteria.index(criterion) + 1
    keyed = {f"{criterion.id}#{place}": item for place, item in enumerate(items, 1)}
    pieces = {
        key: _piece(key, f"e{number}-{place}" if whole or key in cited else "", item, cited.get(key, []))
        for place, (key, item) in enumerate(keyed.items(), 1)
    }
    last = standing.round
    aside = set(ruling.set_aside) if ruling is not None else set()
    rounds: list[tuple[str, list[Opinion]]] = []
    for number_ in range(last, 0, -1):
        opinions = [one.opinion for one in given if one.round == number_]
        without = aside if number_ == last else set[JudgeName]()
        rounds.append((_round(number_, last), [_opinion(one, pieces, without) for one in opinions]))
    shown_pieces = [piece for piece in pieces.values() if piece.anchor]
    rules = [_rule(one) for one in ruling.rules] if ruling is not None else []
    return Part(
        standing=standing, anchor=f"c{number}", scores=[_score_of(judge, standing.scores, aside) for judge in JUDGES],
        changes=", ".join(f"{one.words}: {one.before} → {one.after or 'none'}" for one in rules if one.changed),
        rounds=rounds, pieces=shown_pieces, left_out=len(pieces) - len(shown_pieces), rules=rules,
    )  # fmt: skip


def _round(number: int, last: int) -> str:
    return "Opinions" if last == 1 else "Second round, which counts" if number == last else "First round"


def _score_of(judge: JudgeName, scores: dict[JudgeName, int], aside: set[JudgeName]) -> str:
    if judge not in scores:
        return ""
    return f"{scores[judge]} (set aside)" if judge in aside else str(scores[judge])


def _piece(key: str, anchor: str, item: EvidenceItem, cited: list[str]) -> Piece:
    lines, more = excerpt(item.content or "")
    return Piece(
        key=key, anchor=anchor, found=item.found, goal=item.goal, location=item.location, rationale=item.rationale,
        confidence=shown(item.confidence), lines=lines, more=more, cited=cited,
    )  # fmt: skip


def _opinion(one: OpinionItem, pieces: Mapping[str, Piece], aside: set[JudgeName]) -> Opinion:
    cites = [Cite(key, pieces.get(key)) for key in dict.fromkeys(one.cited_evidence)]
    return Opinion(NAMES[one.judge], one.score, one.argument, cites, one.judge in aside)


def _rule(one: RuleItem) -> Rule:
    before, after = ("" if score is None else shown(score) for score in (one.before, one.after))
    changed = one.before is not None and one.before != one.after
    return Rule(one.rule, CHANGED.get(one.rule, one.rule.replace("_", " ")), before, after, one.text, changed)
