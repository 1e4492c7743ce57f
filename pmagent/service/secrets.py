"""The secrets that this process knows: values of its environment that must not get into the log
(docs/design.md §2.7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, get_args

from msgspec import inspect

from pmagent.actors.areas import AREAS
from pmagent.actors.core.area import words_of
from pmagent.actors.registry import all_actors
from pmagent.contracts.jobs import JobState
from pmagent.contracts.payload import types
from pmagent.events.redact import secrets_in

CHOICE_CHARS_MAX: Final = 32
"""No text among which a payload's field chooses is longer."""


def known_secrets(environment: Mapping[str, str]) -> list[str]:
    """The secrets in ``environment``, but for those that stand in a word of our own: somebody's ``CACHE_KEY=kernel`` is
    not worth hiding, and to mask it in each event would leave nothing that an actor understands."""
    secrets = secrets_in(environment)
    words = [*_words()] if secrets else []
    if any(len(secret) <= CHOICE_CHARS_MAX for secret in secrets):
        words += choices(frozenset(types().values()))
    return [secret for secret in secrets if not any(secret in word for word in words)]


def _words() -> Iterator[str]:
    """The log's own vocabulary: kinds of events, names of actors, and the words of each area."""
    yield from types()
    yield from (actor.name for actor in all_actors())
    yield from get_args(JobState)
    for area in AREAS:
        yield from words_of(area)


@lru_cache(maxsize=2)
def choices(payloads: frozenset[type]) -> frozenset[str]:
    """The texts among which fields of these payloads choose (``Literal``). Takes some 30 ms for all of them."""
    found: set[str] = set()
    seen: set[int] = set()

    def look(part: object) -> None:
        if isinstance(part, inspect.LiteralType):
            found.update(value for value in part.values if isinstance(value, str))
        elif isinstance(part, tuple):
            for inner in part:
                look(inner)
        elif isinstance(part, (inspect.Type, inspect.Field)) and id(part) not in seen:
            seen.add(id(part))
            for name in part.__struct_fields__:
                look(getattr(part, name))

    look(inspect.multi_type_info(payloads))
    return frozenset(found)
