"""An audit as its documents show it: folded from its events, immutable, and small for the snapshot cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from pmagent.contracts.audit_events import (
    AuditConcluded,
    AuditCriterionRuled,
    AuditOpinionRejected,
    AuditRequested,
    EvidenceItem,
    JudgeName,
    OpinionItem,
)
from pmagent.projections.views.jobs import JobView

Doing = Literal["asked", "collecting", "judging", "ruling", "over"]
SourceName = Literal["repository", "report", "images"]
SOURCES: Final[tuple[SourceName, ...]] = ("repository", "report", "images")
JUDGES: Final[tuple[JudgeName, ...]] = ("Prosecutor", "Defense", "TechLead")
BASE: Final = "median"
"""The rule that makes the score which others change."""


class Source(msgspec.Struct, frozen=True):
    """A source that a detective reads. ``text``: the gist of it, or why it could not be read; ``started`` and
    ``ended``: log times ("": not yet)."""

    state: Literal["waiting", "running", "done", "failed"] = "waiting"
    text: str = ""
    started: str = ""
    ended: str = ""


class Used(msgspec.Struct, frozen=True, array_like=True):
    """The use of models: calls that replied and that failed; tokens of the replies, and their price in US dollars."""

    replied: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

class Wait(msgspec.Struct, frozen=True):
    """The provider is waited for ``since`` a log time; ``until`` the next call ("": not known yet); ``code`` of the
    last that failed."""

    code: str
    since: str
    until: str = ""


class Criterion(msgspec.Struct, frozen=True, array_like=True):
    """A dimension of the rubric, by its id and its name; ``target`` is what is examined for it."""

    id: str
    name: str
    target: str


class Given(msgspec.Struct, frozen=True, array_like=True):
    """An opinion that was given, and in which round."""

    round: int
    opinion: OpinionItem


class Standing(NamedTuple):
    """How far a criterion is. ``evidence``: how much there is (-1: none yet), ``found`` how much of it is of things
    that are there; ``scores`` by judge, of the last ``round`` (0: none yet)."""

    criterion: Criterion
    evidence: int
    found: int
    round: int
    scores: dict[JudgeName, int]
    ruling: AuditCriterionRuled | None

    @property
    def state(self) -> str:
        """In one word: waiting, evidence, judging, ruled, or not judged."""
        if self.ruling is not None:
            return "ruled" if self.ruling.final_score is not None else "not judged"
        if self.scores:
            return "judging"
        return "evidence" if self.evidence >= 0 else "waiting"

    @property
    def final_score(self) -> int | None:
        """The chief justice's; None: there is none, or none yet."""
        return self.ruling.final_score if self.ruling is not None else None

    @property
    def reason(self) -> str:
        """Why it was not judged."""
        return self.ruling.reason if self.ruling is not None else ""

    @property
    def rules(self) -> list[str]:
        """The rules that changed the score."""
        return changing(self.ruling) if self.ruling is not None else []


def changing(ruling: AuditCriterionRuled) -> list[str]:
    """The rules that changed the score of a ruling."""
    return [one.rule for one in ruling.rules if one.before not in (None, one.after) and one.rule != BASE]


def used_text(used: Mapping[str, Any]) -> str:
    """Calls, tokens and price (``Audit.used_fields``) for people; "" for none."""
    if not used.get("calls"):
        return ""
    failed = f" ({used['failed_calls']} failed)" if used["failed_calls"] else ""
    cost = "price not set" if used["cost_usd"] is None else f"${used['cost_usd']:.4f}"
    return f"{used['calls']} calls{failed}, {used['input_tokens']:,} tokens in, {used['output_tokens']:,} out, {cost}"


class Audit(JobView, frozen=True, kw_only=True):
    """An audit; ``asked`` is without its rubric. ``commit`` and ``report_sha256`` say what was audited ("": not read
    yet). ``sources`` by name; ``requests``: position of a request to read one -> its name. ``rejected``: replies of
    models that were no opinions; ``used``: what models cost; ``wait``: for a provider, on screens only. ``superseded``:
    another audit has concluded later with the same path, and the report there is that one's."""

    asked: AuditRequested
    path: str
    rubric_name: str
    rubric_version: str
    criteria: list[Criterion]
    doing: Doing = "asked"
    commit: str = ""
    report_sha256: str = ""
    sources: dict[SourceName, Source] = msgspec.field(default_factory=lambda: {name: Source() for name in SOURCES})
    requests: dict[int, SourceName] = {}
    evidence: dict[str, list[EvidenceItem]] = {}
    opinions: list[Given] = []
    rejected: list[AuditOpinionRejected] = []
    rulings: dict[str, AuditCriterionRuled] = {}
    concluded: AuditConcluded | None = None
    superseded: bool = False
    used: Used = Used()
    wait: Wait | None = None

    @property
    def used_text(self) -> str:
        """Calls and cost of its models, for people; "" where no model was called."""
        return used_text(self.used_fields)

    @property
    def used_fields(self) -> dict[str, Any]:
        """The same for programs; ``cost_usd`` None: the price is not known."""
        used = self.used
        return {
            "calls": used.replied + used.failed, "failed_calls": used.failed, "input_tokens": used.input_tokens,
            "output_tokens": used.output_tokens,
            "cost_usd": used.cost_usd if self.asked.price is not None else None,
        }  # fmt: skip

    @property
    def wait_text(self) -> str:
        """For what is waited, and until when; "" where nothing is."""
        if self.wait is None:
            return ""
        until = f", next call at {self.wait.until[11:19]} UTC" if self.wait.until else ""
        patience = self.asked.model_limits.patience_minutes or 0
        budget = f", for at most {patience:g} minutes" if patience else ""
        code, since = self.wait.code.replace("_", " "), self.wait.since[11:19]
        return f"the provider answers “{code}” since {since} UTC{until}{budget}"

    @property
    def unanswered(self) -> list[str]:
        """The criteria on which a judge's model gave no opinion."""
        return [name for name, one in self.rulings.items() if one.unanswered]

    @property
    def word(self) -> str:
        """See JobView; nobody need know that nothing has been collected yet."""
        return "collecting" if self.doing == "asked" else super().word

    @property
    def weight(self) -> int:
        """Its pieces of evidence, and opinions."""
        return sum(len(found) for found in self.evidence.values()) + len(self.opinions)

    @property
    def engine(self) -> str:
        """The judges' engine, as reports name it."""
        return "rules" if self.asked.engine == "rules" else f"{self.asked.engine} ({self.asked.model})"

    @property
    def score(self) -> float | None:
        """The report's; None where there is no report."""
        return self.concluded.overall_score if self.concluded is not None else None

    @property
    def failure(self) -> str:
        """Why it failed, as a word for programs; "" where it has not, or never began."""
        return self.code if self.end != "refused" else ""

    @property
    def standings(self) -> list[Standing]:
        """How far each criterion is, in the rubric's order."""
        return [self._standing(one) for one in self.criteria]

    def _standing(self, criterion: Criterion) -> Standing:
        items = self.evidence.get(criterion.id)
        given = [one for one in self.opinions if one.opinion.criterion_id == criterion.id]
        last = max((one.round for one in given), default=0)
        return Standing(
            criterion, -1 if items is None else len(items), sum(one.found for one in items or ()), last,
            {one.opinion.judge: one.opinion.score for one in given if one.round == last},
            self.rulings.get(criterion.id),
        )
