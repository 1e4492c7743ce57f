"""Operations that are asked for on another machine, through the database of the log (docs/design.md §11.6).

The database says whose role has connected, and which operator that is: a request is that operator's, and approves
nothing for others. Only operations that say so (``Operation.far``) are carried out.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pmagent.edges import OPERATIONS
from pmagent.events.errors import PmagentError
from pmagent.events.storage import Asked
from pmagent.service.client import SECRETS, THERE, NotFromHere, require_readable
from pmagent.service.wire import UNDECODABLE, BadMessage

_UNNAMED: Final = (
    "orchestra.run", "orchestra.cancel", "orchestra.applied", "audit.run", "audit.cancel", "guests.wall",
)  # fmt: skip
"""Operations that commands ask for as nobody in particular: over the database they are somebody's."""


class NotTheirs(PmagentError, exit_code=7):
    """A request over the database is in somebody else's name."""


def permitted(asked: Asked) -> dict[str, Any]:
    """The arguments of a request that may be carried out. Raises NotFromHere, NotTheirs, BadMessage."""
    known = OPERATIONS.get(asked.operation)
    if known is None or not known.far:
        there = known.there if known is not None else ""
        raise NotFromHere(f"{asked.operation[:64]} cannot be asked through the database", there or THERE)
    require_readable(asked.arguments)
    try:
        arguments = msgspec.json.decode(asked.arguments, type=dict[str, Any])
    except UNDECODABLE:
        raise BadMessage("this is not a request", "one JSON object of arguments") from None
    if arguments.get("request") != asked.id or any(arguments.get(one) for one in SECRETS):
        raise BadMessage("the request has another id, or holds a secret", "pmagent of this release asks well")
    if asked.operation in _UNNAMED:
        arguments.setdefault("operator", asked.operator)
    for one in known.own:
        if arguments.get(one):
            raise NotFromHere(f"{asked.operation} with {one} cannot be asked through the database", known.there)
    for field in ("operator", "operator_id", "holder"):
        if arguments.get(field, asked.operator) != asked.operator:
            what = f"role {asked.role} asks as {asked.operator}, and this request is in another name"
            how = f"--operator {asked.operator}, or the setting pla.operator; sign in as {asked.operator}"
            if field == "holder":
                how = f"--holder {asked.operator}: a permit is its asker's own"
            raise NotTheirs(what, how)
    return arguments
