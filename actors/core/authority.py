"""Authority over outward effects: whose permits count, and the events that end them. Gate and ledger get it with an
engine (docs/design.md §5).

The actor that grants permits bears its ``authority``. Engines whose actors bear none let nothing outward start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from msgspec import UnsetType


class Grant(Protocol):
    """The payload of a permit: the event's position is its name."""

    @property
    def action(self) -> str: ...  # noqa: D102 - as of gate.Permit
    @property
    def subject(self) -> str: ...  # noqa: D102
    @property
    def holder(self) -> str: ...  # noqa: D102
    @property
    def uses(self) -> int: ...  # noqa: D102
    @property
    def expires_at(self) -> str: ...  # noqa: D102


class Revocation(Protocol):
    """The payload that takes a permit back."""

    @property
    def permit(self) -> int | UnsetType:
        """The permit's position; UNSET: of none."""


class Never(msgspec.Struct, frozen=True):
    """The payload of no event."""

    action: str = ""
    subject: str = ""
    holder: str = ""
    uses: int = 0
    expires_at: str = ""


class Authority(NamedTuple):
    """``grantor`` is the actor whose ``grant`` is a permit until one of the ``revocations`` is decided; ``watcher`` the
    one whose ``ruling`` says which actions are allowed. ``terminates``: a ruling and an action -> whether it ends
    effects of that action. While the watcher is halted the rules are unknown, so nothing outward goes on."""

    grantor: str
    watcher: str
    grant: type[Grant]
    revocations: tuple[type[Revocation], ...]
    ruling: type[msgspec.Struct]
    terminates: Callable[[Any, str], bool]


NOBODY: Final = Authority("", "", Never, (), Never, lambda *_: True)
"""Nobody grants, so everything outward is refused."""


class Grantor(Protocol):
    """An actor that grants permits."""

    @property
    def name(self) -> str:
        """The actor's name."""

    @property
    def authority(self) -> Authority:
        """The types of its permits, and the events that end them; ``grantor`` is its own name."""


def authority_of(actors: Iterable[Any]) -> Authority:
    """The one that an actor bears; NOBODY where none does. Raises ValueError when several do, or one bears another's:
    who may let things start must never be in doubt."""
    grantors: list[Grantor] = [actor for actor in actors if hasattr(actor, "authority")]
    borne = [(actor.name, actor.authority) for actor in grantors]
    if not borne:
        return NOBODY
    (name, authority), *others = borne
    if others or name != authority.grantor:
        raise ValueError("one actor grants permits, in its own name")
    return authority
