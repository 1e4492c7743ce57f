"""The arguments of the PLA's operations, as whoever asks gives them; strict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from pmagent.contracts.control import OperatorId
from pmagent.contracts.pla import ActionClass, Decision, PlaMode
from pmagent.contracts.pla_events import GOAL_CHARS_MAX, LOOKED_MS_MAX, NAME_CHARS_MAX
from pmagent.events.errors import PmagentError

OBSERVED_SECONDS: Final = 35.0
"""So long the first reading of the surfaces since a start is waited for; before it no mode is raised."""
FRAME_SECONDS: Final = 75.0
"""So long a frame may take, with reading what stands on it."""
ANSWER_SECONDS: Final = 60.0
WAY_SECONDS: Final = 15.0
DOCUMENT_CHARS_MAX = 65_536
"""A contract document's text; the border refuses what has more bytes."""

Asker = Literal["cli", "console", "api"]
"""The channel of a request. A document's decision has the channel ``document``, whoever hands it in."""

Name = Annotated[str, Meta(max_length=NAME_CHARS_MAX)]
Path = Annotated[str, Meta(max_length=4096)]
Reason = Annotated[str, Meta(max_length=500)]


class BadPla(PmagentError, exit_code=2):
    """The arguments make no request to the PLA; nothing was recorded."""


class _Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``operator``: who asks, over ``channel``. The operator's ``secret`` of the console proves that; of a session of
    the console ``by_secret`` says whether it was opened with it."""

    operator: OperatorId
    channel: Asker = "api"
    secret: Annotated[str, Meta(max_length=1024)] = ""
    by_secret: bool = False


class ModeArguments(_Arguments, frozen=True, kw_only=True):
    """Change the mode."""

    mode: PlaMode
    reason: Reason = ""
    action_class: ActionClass = "feature_work"


class ProposeArguments(_Arguments, frozen=True, kw_only=True):
    """Propose what ``goal`` states, or what ``model`` makes of it and a frame; or what ``document`` says, an
    action_proposal. ``model`` "": the settings' where the goal states nothing literally."""

    goal: Annotated[str, Meta(max_length=GOAL_CHARS_MAX)] = ""
    why: Annotated[str, Meta(max_length=2000)] = ""
    model: Name = ""
    frames: Path = ""
    look: bool = False
    document: Annotated[str, Meta(max_length=DOCUMENT_CHARS_MAX)] | None = None


class ObserveArguments(_Arguments, frozen=True, kw_only=True):
    """Look at the newest frame."""

    frames: Path = ""


class DecideArguments(_Arguments, frozen=True, kw_only=True):
    """Approve or reject; or do what ``document`` says, an action_decision. ``digest``: of the bytes that were shown;
    ``seen_mode``: the mode in which they were, ``looked_ms``: for how long."""

    proposal_id: Name = ""
    decision: Decision | None = None
    digest: Annotated[str, Meta(max_length=64)] = ""
    reason: Reason = ""
    acknowledged: bool = False
    seen_mode: PlaMode | Literal[""] = ""
    looked_ms: Annotated[int, Meta(ge=0, le=LOOKED_MS_MAX)] = 0
    document: Annotated[str, Meta(max_length=DOCUMENT_CHARS_MAX)] | None = None


class OutcomeArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Wait until the proposal is closed, ``seconds`` at most."""

    proposal_id: Name
    seconds: Annotated[float, Meta(ge=0, le=3600)] = 300.0


class OperatorArguments(_Arguments, frozen=True, kw_only=True):
    """Arm, disarm, end."""

    reason: Reason = ""


class StatusArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the PLA stands."""


class ListArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The newest proposals."""

    count: Annotated[int, Meta(ge=1, le=100)] = 20


class ShowArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One proposal, by its id or its beginning; "": the open one. ``reveal``: also what is masked, while it is held, to
    ``operator``, over ``channel``; that stands in the log."""

    proposal_id: Name = ""
    reveal: bool = False
    operator: Annotated[str, Meta(max_length=64)] = ""
    channel: Asker = "api"


A = TypeVar("A")


def readable(arguments: Mapping[str, Any]) -> None:
    """Look whether the texts among ``arguments`` can be written at all: bytes of a command line that were no UTF-8
    cannot. Raises BadPla."""
    for name, value in arguments.items():
        try:
            value.encode() if isinstance(value, str) else None
        except UnicodeEncodeError:
            what = f"{name} is no text in UTF-8"
            raise BadPla(what, "only printable ASCII, tab and newline can be typed") from None


def understood(arguments: dict[str, Any], shape: type[A]) -> A:
    """``arguments`` as ``shape``; the request's id is not among them. Raises BadPla."""
    readable(arguments)
    try:
        return msgspec.convert({name: value for name, value in arguments.items() if name != "request"}, shape)
    except msgspec.ValidationError as error:
        raise BadPla(f"this cannot be asked of the PLA: {error}", "pmagent help pla shows how it is asked") from error


def outcome_seconds(arguments: dict[str, Any]) -> float:
    """The seconds that were asked for. Raises BadPla."""
    return understood(arguments, OutcomeArguments).seconds + WAY_SECONDS


def frame_seconds(_: dict[str, Any]) -> float:
    """For a frame, after the surfaces."""
    return OBSERVED_SECONDS + FRAME_SECONDS + WAY_SECONDS


def model_seconds(arguments: dict[str, Any]) -> float:
    """Long: the model's limit is in the settings of the process that holds the log. Its end is noticed at once."""
    return frame_seconds(arguments) + 86_400.0


def observed_seconds(_: dict[str, Any]) -> float:
    """For an answer, after the surfaces."""
    return OBSERVED_SECONDS + ANSWER_SECONDS + WAY_SECONDS
