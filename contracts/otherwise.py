"""Differences that a release made on purpose, read from a table (docs/releases.md).

A decision that today's code makes in other words than an older release recorded, or a document that it writes in other
words, is no divergence when the table lists it under a release later than the one that wrote the log. Everything else
is. Each entry gives patterns for what was recorded and for what is decided now, and covers a difference only if both
match; nothing is covered where the writing release is not known.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from pmagent.contracts.payload import Unknown, encode
from pmagent.events.errors import PmagentError
from pmagent.events.event import Event

_RELEASE: Final = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?!\d)")
_GROUP: Final = re.compile(r"\(\?P=(\w+)\)")
_ABSENT: Final = object()

Version = tuple[int, int, int]


class BadTable(PmagentError, exit_code=70):
    """The table of listed differences is not what it must be."""


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A value before and after: regular expressions for the whole of each. Without ``recorded`` there was none, without
    ``decided`` there is none now. ``(?P=name)`` in ``decided`` is what the group ``name`` of ``recorded`` matched."""

    recorded: str | None = None
    decided: str | None = None

    def covers(self, recorded: str | None, decided: str | None) -> bool:
        """Whether one value became the other by this change; None: there is no value."""
        groups: Mapping[str, str] = {}
        if self.recorded is None or recorded is None:
            if self.recorded is not recorded:
                return False
        elif found := re.fullmatch(self.recorded, recorded):
            groups = found.groupdict("")
        else:
            return False
        if self.decided is None or decided is None:
            return self.decided is decided
        return re.fullmatch(_filled(self.decided, groups), decided) is not None


class FieldChange(Change, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A change of a decision's payload at the JSON pointer ``at``, in which ``*`` stands for any one key or index. A
    text is matched as it is, any other value as compact JSON with sorted keys."""

    at: str


class DecisionEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Decisions of ``type`` by ``actor`` that differ in the way of ``kind`` (``pmagent.replay.divergence``).

    ``changed``: every value that differs is covered by one of ``fields``. ``missing`` (decided now, not recorded) and
    ``extra`` (recorded, not decided now): every one of ``fields`` holds wherever it points to, and points to something.
    """

    why: str
    actor: str
    type: str
    kind: Literal["changed", "missing", "extra"] = "changed"
    fields: tuple[FieldChange, ...]
    since: str = ""


class DocumentEntry(Change, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Documents whose path matches ``path`` (``*``: anything but a slash). Each passage of the old text that matches
    ``recorded`` is followed in the new one by what ``decided`` matches from there on; all else is the same. Without
    ``recorded`` the older release wrote no such document. ``^`` and ``$`` match at lines."""

    why: str
    path: str
    since: str = ""


Entry = DecisionEntry | DocumentEntry


class _Release(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    decisions: tuple[DecisionEntry, ...] = ()
    documents: tuple[DocumentEntry, ...] = ()


class Listed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How often an entry of the table covered a difference: of decisions (``actor``, ``type``, ``kind``) or of
    documents (``path``)."""

    since: str
    why: str
    count: int
    actor: str = ""
    type: str = ""
    kind: str = ""
    path: str = ""

    def line(self) -> str:
        """It in one line, for people."""
        what = f"{self.type} by {self.actor}" if self.type else self.path
        return f"decided otherwise since {self.since}: {self.why} ({self.count:,} of {what})"


class Otherwise:
    """The table. An empty one covers nothing."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries = tuple(entries)

    def decision(self, version: str, expected: Event | None, recorded: Event | None) -> tuple[Entry, ...]:
        """The entries that cover the difference between a decision as a pmagent of ``version`` recorded it and as it is
        decided now; None: it was not recorded, or is not decided. () when it is not covered as a whole."""
        if expected is None or recorded is None:
            return self._one_sided(version, expected, recorded)
        if (expected.id, expected.actor, expected.correlation) != (recorded.id, recorded.actor, recorded.correlation):
            return ()
        if expected.type != recorded.type:  # one decision is not made any more, and another one is
            gone, new = self._one_sided(version, None, recorded), self._one_sided(version, expected, None)
            return (*gone, *new) if gone and new else ()
        entries = self._decisions(version, recorded, "changed")
        fields = [(field, entry) for entry in entries for field in entry.fields]
        if not fields or not _spelled(recorded):
            return ()
        used: dict[Entry, None] = {}
        was, now = msgspec.json.decode(recorded.raw), msgspec.json.decode(expected.raw)
        return tuple(used) if _compared((), was, now, fields, used) else ()

    def document(self, path: str, recorded: bytes | None, decided: bytes) -> tuple[Entry, ...]:
        """The entries that cover all differences between a document on disk (None: it is not there) and what it is
        now, whatever release wrote it. () when it is not covered as a whole."""
        entries = [entry for entry in self._documents() if _path(entry.path).fullmatch(path)]
        try:
            new = decided.decode()
            old = None if recorded is None else recorded.decode()
        except UnicodeDecodeError:
            return ()
        if old is not None:
            return _rewritten(old, new, [entry for entry in entries if entry.recorded is not None])
        return next(((entry,) for entry in entries if entry.recorded is None and entry.covers(None, new)), ())

    def lists_document(self, path: str) -> bool:
        """Whether any entry is about this document."""
        return any(_path(entry.path).fullmatch(path) for entry in self._documents())

    def _decisions(self, version: str, event: Event, kind: str) -> Iterator[DecisionEntry]:
        wanted = event.actor, event.type, kind
        for entry in self.entries:
            if isinstance(entry, DecisionEntry) and wanted == (entry.actor, entry.type, entry.kind):
                yield from (entry,) if later(entry, version) else ()

    def _documents(self) -> Iterator[DocumentEntry]:
        return (entry for entry in self.entries if isinstance(entry, DocumentEntry))

    def _one_sided(self, version: str, expected: Event | None, recorded: Event | None) -> tuple[Entry, ...]:
        event = expected or recorded
        if event is None:
            return ()
        gone = recorded is not None
        for entry in self._decisions(version, event, "extra" if gone else "missing"):
            data = msgspec.json.decode(event.raw)
            found = ((field, value) for field in entry.fields for value in _values(data, field.at))
            if _spelled(event) and all(
                field.covers(value, None) if gone else field.covers(None, value) for field, value in found
            ):
                return (entry,)
        return ()


NOTHING: Final = Otherwise()
"""The table without an entry."""


def read(content: bytes, name: str, running: str) -> Otherwise:
    """The table that the TOML file ``name`` holds, of a pmagent of version ``running``: a table for each release, with
    its arrays ``decisions`` and ``documents``. Raises BadTable."""
    try:
        releases = msgspec.convert(tomllib.loads(content.decode()), dict[str, _Release])
    except (ValueError, RecursionError) as error:  # msgspec's and tomllib's are ValueErrors, too
        raise _bad(f"{name}: {error}") from error
    now, entries = release(running), list[Entry]()
    for since, listed in releases.items():
        version = release(since) if _RELEASE.fullmatch(since) else None
        if version is None or now is None or version > now:
            raise _bad(f"{name}: {since!r} is no release up to {running}, which this is")
        for place, entry in _placed(since, listed):
            if entry.since:
                raise _bad(f"{name}, {place}: since is the release's own name, not a key")
            _check(f"{name}, {place}", entry)
            entries.append(msgspec.structs.replace(entry, since=since))
    return Otherwise(entries)


def release(version: str) -> Version | None:
    """The release that a version belongs to: 0.2 is 0.2.0, and so is 0.2.0rc1. None: it names no release."""
    found = _RELEASE.match(version)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def later(entry: Entry, version: str) -> bool:
    """Whether an entry's release is later than the one of this version; False where that is not known."""
    since, wrote = release(entry.since), release(version)
    return since is not None and wrote is not None and since > wrote


def counted(counts: Mapping[Entry, int]) -> list[Listed]:
    """The differences that entries covered, in the order of releases."""
    found = []
    for entry, count in sorted(counts.items(), key=lambda pair: (release(pair[0].since) or (0, 0, 0), pair[0].why)):
        if isinstance(entry, DecisionEntry):
            kinds = {"actor": entry.actor, "type": entry.type, "kind": entry.kind}
        else:
            kinds = {"path": entry.path}
        found.append(Listed(since=entry.since, why=entry.why, count=count, **kinds))
    return found


# --- reading the table --------------------------------------------------------------------------------------------


def _bad(what: str) -> BadTable:
    return BadTable(what, "docs/releases.md says how a difference is listed")


def _placed(since: str, listed: _Release) -> Iterator[tuple[str, Entry]]:
    for n, decision in enumerate(listed.decisions, 1):
        yield f'decision {n} of "{since}"', decision
    for n, document in enumerate(listed.documents, 1):
        yield f'document {n} of "{since}"', document


def _check(place: str, entry: Entry) -> None:
    """Raises BadTable."""
    if not entry.why.strip() or not entry.why.isprintable():
        raise _bad(f"{place}: why is one line of English")
    if isinstance(entry, DocumentEntry):
        if entry.decided is None:
            raise _bad(f"{place}: decided lacks; a document that is not written any more needs no entry")
        _check_patterns(place, entry)
        return
    if not entry.fields:
        raise _bad(f"{place}: without fields it would cover every {entry.type} by {entry.actor}")
    lacking = {"changed": "", "missing": "recorded", "extra": "decided"}[entry.kind]
    for field in entry.fields:
        if field.at and not field.at.startswith("/"):
            raise _bad(f"{place}: {field.at!r} is no JSON pointer")
        if field.recorded is field.decided is None or (lacking and getattr(field, lacking) is not None):
            needed = {"changed": "recorded, decided or both", "missing": "decided alone", "extra": "recorded alone"}
            raise _bad(f"{place}: {field.at or 'the payload'} needs {needed[entry.kind]}")
        _check_patterns(place, field)


def _check_patterns(place: str, change: Change) -> None:
    try:
        groups = re.compile(change.recorded or "").groupindex
        pattern = change.decided or ""
        re.compile(_filled(pattern, dict.fromkeys(groups, "")))
    except (re.error, RecursionError, OverflowError) as error:
        raise _bad(f"{place}: a pattern cannot be read: {error}") from error


def _filled(pattern: str, groups: Mapping[str, str]) -> str:
    """``pattern`` with ``(?P=name)`` replaced by what that group of another pattern matched."""
    return _GROUP.sub(lambda found: re.escape(groups[found[1]]) if found[1] in groups else found[0], pattern)


def _path(pattern: str) -> re.Pattern[str]:
    return re.compile("[^/]*".join(map(re.escape, pattern.split("*"))))


# --- comparing ----------------------------------------------------------------------------------------------------


def _spelled(event: Event) -> bool:
    """Whether a payload has its type's shape and spelling: no blank and no order of keys is ever listed. Fields that
    the type gained later may lack."""
    if isinstance(event.data, Unknown | None):
        return False
    full, present = msgspec.json.decode(encode(event.data)), msgspec.json.decode(event.raw)
    return msgspec.json.encode(_without_new(full, present)) == event.raw


def _without_new(full: Any, present: Any) -> Any:
    if isinstance(full, dict) and isinstance(present, dict):
        return {key: _without_new(value, present[key]) for key, value in full.items() if key in present}
    if isinstance(full, list) and isinstance(present, list) and len(full) == len(present):
        return [_without_new(one, other) for one, other in zip(full, present, strict=True)]
    return full


def _compared(
    place: tuple[str, ...], old: Any, new: Any, fields: list[tuple[FieldChange, DecisionEntry]], used: dict[Entry, None]
) -> bool:
    """Whether each difference between two values at ``place`` is covered; notes in ``used`` by what."""
    if old is not _ABSENT and new is not _ABSENT and _json(old) == _json(new):
        return True
    for field, entry in fields:
        if _matches(field.at, place) and field.covers(_text(old), _text(new)):
            used[entry] = None
            return True
    if isinstance(old, dict) and isinstance(new, dict):
        keys = dict.fromkeys((*old, *new))
        pairs = [(key, old.get(key, _ABSENT), new.get(key, _ABSENT)) for key in keys]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(str(at), one, other) for at, (one, other) in enumerate(zip(old, new, strict=True))]
    else:
        return False
    return all(_compared((*place, key), one, other, fields, used) for key, one, other in pairs)


def _matches(pointer: str, place: tuple[str, ...]) -> bool:
    steps = _steps(pointer)
    return len(steps) == len(place) and all(step in ("*", key) for step, key in zip(steps, place, strict=True))


def _steps(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _values(data: Any, pointer: str) -> list[str | None]:
    """The texts of all values that the pointer points to; [None] where there is none."""
    found = [data]
    for step in _steps(pointer):
        inner: list[Any] = []
        for value in found:
            items = dict(zip(map(str, range(len(value))), value, strict=True)) if isinstance(value, list) else value
            if isinstance(items, dict):
                inner += items.values() if step == "*" else [items[step]] if step in items else []
        found = inner
    return [_text(value) for value in found] or [None]


def _text(value: Any) -> str | None:
    if value is _ABSENT:
        return None
    return value if isinstance(value, str) else _json(value).decode()


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _rewritten(old: str, new: str, entries: list[DocumentEntry]) -> tuple[Entry, ...]:
    """The entries by which ``old`` became ``new``: passage for passage, everything between them the same."""
    passages = [(found, entry) for entry in entries for found in re.finditer(entry.recorded or "", old, re.MULTILINE)]
    used: dict[Entry, None] = {}
    at_old = at_new = 0
    for found, entry in sorted(passages, key=lambda passage: passage[0].span()):
        if found.start() < at_old:
            continue  # an earlier passage holds it
        between = old[at_old : found.start()]
        if not new.startswith(between, at_new):
            return ()
        pattern = re.compile(_filled(entry.decided or "", found.groupdict("")), re.MULTILINE)
        after = pattern.match(new, at_new + len(between))
        if after is None:
            return ()
        at_old, at_new = found.end(), after.end()
        used[entry] = None
    return tuple(used) if old[at_old:] == new[at_new:] else ()
