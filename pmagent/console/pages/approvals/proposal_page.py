"""All that the page of one proposal shows: from the daemon as ``pmagent pla show`` has it, and from the log
(docs/design.md §18.3)."""

from __future__ import annotations

import re
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from pmagent.console.auth.entrance import Visitor
from pmagent.console.pages.approvals.decision import FIRST_CHARS
from pmagent.console.pages.approvals.history import Stories, Story
from pmagent.console.pages.approvals.presentation import (
    Notice,
    Progress,
    Similar,
    alike,
    content,
    progress,
    runs,
    stands,
    title,
)
from pmagent.console.pages.approvals.shown_state import ShownState, packed, shown_state
from pmagent.console.pages.context import PageContext
from pmagent.events.errors import NotFound
from pmagent.events.log import now
from pmagent.pla import reading
from pmagent.pla.consequences import Cost, Means, Reversal, cost, means, reversal
from pmagent.pla.risk import Risk, risk
from pmagent.pla.words import counted, hex_rows
from pmagent.service.wire import RemoteError

LISTED: Final = 100
"""So many proposals the warden remembers; older ones are in the log."""

_STORIES: Final[WeakKeyDictionary[PageContext, Stories]] = WeakKeyDictionary()
"""The proposals that were read from each console's log."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_WHOLE_ID: Final = re.compile(r"prop-[0-9a-f]{32}")


class ProposalPage(msgspec.Struct, frozen=True, kw_only=True):
    """``document``: the proposal, as the command line has it; ``text``: exactly what is done; ``rule``: why a person is
    asked at all; ``barred``: why this operator may not approve it ("": they may); ``seen``: what a form carries."""

    document: dict[str, Any]
    title: str
    runs: str
    progress: Progress | None
    text: str
    counted: str
    hexed: str
    notice: Notice | None
    risk: Risk
    reversal: Reversal
    cost: Cost
    means: Means
    rules: list[str]
    device: dict[str, Any] | None
    likes: list[Similar]
    story: Story
    barred: str
    seen: ShownState

    @property
    def is_open(self) -> bool:
        """Whether it waits for a decision."""
        return bool(self.document["stands"] == "open")

    @property
    def hidden(self) -> bool:
        """Whether what would be typed is masked here."""
        return bool(self.document["masked"]) and self.document.get("plain") is None

    def fields(self, nonce: str) -> list[tuple[str, str]]:
        """The hidden fields of a form that decides on it."""
        digest, mode = self.document["digest"], self.seen.mode
        fields = [("nonce", nonce), ("digest", digest), ("mode", mode), ("seen", packed(self.seen))]
        if self.document["masked"] and not self.hidden:
            fields.append(("revealed", "yes"))
        return fields

    @property
    def first(self) -> str:
        """The text to type for an approval, if its risk is high."""
        return str(self.document["digest"][:FIRST_CHARS])


async def gathered(context: PageContext, visitor: Visitor, proposal_id: str, *, reveal: bool = False) -> ProposalPage:
    """The card of the proposal with this id, or with the only one that begins so. Raises NotFound, CorruptLog,
    DaemonUnreachable, RemoteError."""
    stories = _STORIES.setdefault(context, Stories(context.layout))
    document = await _document(context, stories, visitor if reveal else None, proposal_id)
    pla = (await context.standing("pla.status")).document
    paused = bool((await context.standing("status")).document["paused"])
    others = (await context.ask("pla.list", count=LISTED)).document["proposals"]
    history = await context.read(stories.story, document["position"])
    text = content(document)
    return ProposalPage(
        document=document, title=title(document), runs=runs(text),
        progress=_progress(document, pla, history), text=text, counted=counted(text), hexed="\n".join(hex_rows(text)),
        notice=stands(document, history.code), risk=risk(document), reversal=reversal(document), cost=cost(document),
        means=means(pla, document["machine"], paused=paused), rules=rules(document), device=pla["device"],
        likes=alike(document, others), story=history, barred=barred(document, visitor),
        seen=shown_state(document, pla, paused=paused),
    )  # fmt: skip


def _progress(document: dict[str, Any], pla: dict[str, Any], history: Story) -> Progress | None:
    """How far it is typed, or was when it ended in the middle."""
    typing = pla.get("typing") or {}
    if document["stands"] == "executing" and typing.get("execution_id") == document["execution_id"]:
        return progress(document, typing["done"], typing["of"])
    return progress(document, history.done, history.of) if document["outcome"] == "aborted" else None


async def _document(
    context: PageContext, stories: Stories, visitor: Visitor | None, proposal_id: str
) -> dict[str, Any]:
    """The proposal as the daemon has it, with what is masked in plain for a ``visitor``; one that the
    warden has forgotten, by its whole id, as the log has it."""
    if not _NAME.fullmatch(proposal_id):
        raise NotFound("there is no proposal that is called so", "the list has the newest")
    try:
        shown = await context.ask("pla.show", visitor, proposal_id=proposal_id, reveal=visitor is not None)
    except RemoteError as error:
        if error.kind != reading.NoSuchProposal.__name__:
            raise
        if not _WHOLE_ID.fullmatch(proposal_id):
            raise NotFound(error.message, error.hint) from error
        view = await context.read(stories.found, proposal_id)
        return reading.proposal_document(view, now())
    return shown.document


def barred(document: dict[str, Any], visitor: Visitor) -> str:
    """Why this operator may not approve it, whatever they send: the daemon refuses the second, the guard the first."""
    if visitor.role != "approve":
        return "You may look, and decide nothing: your role is view."
    if document["requested_by"] == visitor.operator:
        return "You asked for it, so another operator has to approve it."
    return ""


def rules(document: dict[str, Any]) -> list[str]:
    """Which rules stop it until a person has decided."""
    found = ["Nothing is typed without an operator's approval: one operator, one proposal, exactly these bytes, once."]
    proofs = "; both prove who they are with their secrets (two_persons)" if document["two_persons"] else ""
    found.append(f"The requester does not approve it{proofs}.")
    if document["credential_warning"]:
        found.append("Text that looks like credentials waits 5 s, and must be acknowledged (policy: acknowledge).")
    return found
