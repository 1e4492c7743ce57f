"""Whether what harnesses go by has changed since it was read last; pure (docs/guests.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from pmagent.contracts.guest_calls import Change, Definition
from pmagent.contracts.guests import GuestDefinitionsChanged, GuestDefinitionsRead


class Known(msgspec.Struct, frozen=True):
    """A definition as it was read last."""

    digest: str
    text: str = ""


Definitions = dict[str, Known]
"""By kind, name and path, in one text."""


class Read(msgspec.Struct, frozen=True):
    """A harness's definitions as they were read last, and the time ``before`` (None: they never were)."""

    now: Definitions
    before: Definitions | None = None


def read(definitions: Iterable[Definition], last: Read | None) -> Read:
    """With the definitions as they are now."""
    now = {f"{one.kind}\n{one.name}\n{one.path}": Known(one.digest, one.text) for one in definitions}
    return Read(now, last.now if last is not None else None)


def changed(fact: GuestDefinitionsRead, found: Read) -> Iterator[GuestDefinitionsChanged]:
    """The difference to what was read before."""
    changes = list(differences(found))
    if changes:
        widens = any(one.widens for one in changes)
        yield GuestDefinitionsChanged(session=fact.session, harness=fact.harness, changes=changes, widens=widens)


def differences(found: Read) -> Iterator[Change]:
    """The differences from what was read before; none where nothing was."""
    before, after = found.before, found.now
    if before is None:
        return
    for key, one in after.items():
        old = before.get(key)
        if old is None or old.digest != one.digest:
            kind, name, path = key.split("\n")
            how = "added" if old is None else "changed"
            yield _change(kind, name, path, how, one.text, widens=kind != "rules")
    for key, one in before.items():
        if key not in after:
            kind, name, path = key.split("\n")
            yield _change(kind, name, path, "removed", one.text, widens=kind == "hook")


def _change(kind: str, name: str, path: str, how: str, text: str, *, widens: bool) -> Change:
    given = {"kind": kind, "name": name, "path": path, "how": how, "widens": widens, "text": text}
    return msgspec.convert(given, Change)
