"""The brain's decisions on a model's reply; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pmagent.actors.pla.brain.answers import Decision, proposed, refused, unfit
from pmagent.actors.pla.brain.model_goal import retry
from pmagent.actors.pla.brain.model_reply import Misfit, read_proposal
from pmagent.actors.pla.brain.objections import undeclared
from pmagent.actors.pla.brain.question import question
from pmagent.actors.pla.brain.state import Pending, replace
from pmagent.actors.pla.credentials.findings import findings, masked
from pmagent.contracts.model import ModelReplied
from pmagent.contracts.pla import RATIONALE_CHARS_MAX, TypeText
from pmagent.events.event import Event
from pmagent.events.secret_forms import MASK

TRIES: Final = 3
"""So many replies are read at most."""

_SPEAKS: Final = "the model's reason speaks of credentials, and is not shown whole"
_STATE_IT: Final = "state the action: type: TEXT, keys: ctrl+c, move: 10 -5 or click: left"


def on_reply(pending: Pending, event: Event, reply: ModelReplied) -> Iterator[Decision]:
    """One action, another try, or no proposal."""
    try:
        proposal = read_proposal(reply, pending.asked.layout)
    except Misfit as misfit:
        if pending.tries + 1 < TRIES:
            more = [*pending.more, *retry(reply, misfit.text)]
            yield question(replace(pending, more=more), pictured=pending.pictured)
        else:
            text = f"the model's reply is no proposal, {TRIES} times: {misfit.text}"
            yield from unfit(pending, "model", text, _STATE_IT, misfit.kind)
        return
    action, rationale = proposal.action, proposal.rationale
    if action is None:
        yield refused(pending, "model", f"the model proposes nothing: {rationale}", _STATE_IT)
        return
    if (why := undeclared(pending.asked, action)) is not None:
        yield refused(pending, why.code, why.reason, why.mend)
        return
    found = findings(action.text) if isinstance(action, TypeText) else []
    if found or MASK in rationale:
        found = found or ["masked"]
        reason = f"the model proposes what looks as if it held credentials ({', '.join(found)})"
        yield refused(pending, "credential", reason, "no model gets to type any; " + _STATE_IT)
        return
    yield proposed(pending, event, action, _shown(rationale), found)


def _shown(rationale: str) -> str:
    """The model's reason without what it may have read off the screen."""
    shown = masked(rationale, lambda text: text)
    return shown if shown == rationale else f"{_SPEAKS}: {shown}"[:RATIONALE_CHARS_MAX]
