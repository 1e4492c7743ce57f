"""The action of a request in the log has to be the one that is to be approved."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from pmagent.contracts.payload import encode, type_of
from pmagent.contracts.pla import TypeText, digest
from pmagent.contracts.pla_events import PlaProposalRequested
from pmagent.events.event import Draft
from pmagent.pla.operations import _drafted
from pmagent.pla.requests import BadProposal, Made
from pmagent.service.host import Host
from tests.support.cases import each

TEXT, OTHER = TypeText(text="ls"), TypeText(text="rm")
ASKED = PlaProposalRequested(goal="type: ls", requested_by="ada", channel="cli", action=TEXT, digest=digest(TEXT))


class Masking:
    """In a host's place: what it drafts has these changes."""

    def __init__(self, **changes: Any) -> None:
        self._changes = changes

    def drafted(self, asked: PlaProposalRequested, request: str) -> Draft:
        """See Host."""
        data = msgspec.structs.replace(asked, **self._changes)
        if len(data.rationale) > 2000:
            raise msgspec.ValidationError("too long")
        return Draft(type_of(data), data, encode(data), request, "operator", request)


def drafted(**changes: Any) -> Draft:
    return _drafted(cast("Host", Masking(**changes)), Made(ASKED, None), "pla.propose-1")


@each("changes", [{}, {"goal": "***"}, {"rationale": "***"}])
def test_what_is_masked_beside_the_action_is_asked_for(changes: Any) -> None:
    assert drafted(**changes).data == msgspec.structs.replace(ASKED, **changes)


@each("changes", [{"action": OTHER}, {"action": None}, {"digest": digest(OTHER)}, {"digest": ""}])
def test_with_another_action_or_digest_in_the_log_nothing_is_asked_for(changes: Any) -> None:
    with pytest.raises(BadProposal, match="not what is to be approved"):
        drafted(**changes)


def test_what_does_not_fit_with_its_masks_is_told_so() -> None:
    with pytest.raises(BadProposal, match="with its secrets masked"):
        drafted(rationale="x" * 2001)
