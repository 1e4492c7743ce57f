"""The secrets that this process knows: values of its environment that must not get into the log (DESIGN §2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

from actors.kernel.surfaces import NAMES, PATHS
from actors.oa.policy import ACTIONS
from actors.registry import all_actors
from contracts.kernel import Mode, SurfaceStatus
from contracts.payload import types
from contracts.reasoning import PROGRAM_IDS, TOOL_IDS, ReasoningStatus
from contracts.reasoning_events import EngineName
from events.redact import secrets_in


def known_secrets(environment: Mapping[str, str]) -> list[str]:
    """The secrets in ``environment``, but for those that stand in a word of our own: somebody's ``CACHE_KEY=kernel`` is
    not worth hiding, and to mask it in each event would leave nothing that an actor understands."""
    words = list(_words())
    return [secret for secret in secrets_in(environment) if not any(secret in word for word in words)]


def _words() -> Iterator[str]:
    """The log's own vocabulary: kinds of events, names of actors, surfaces, tools and programs, modes and the like."""
    yield from types()
    yield from (actor.name for actor in all_actors())
    yield from (*NAMES, *PATHS.values(), *TOOL_IDS, *PROGRAM_IDS, *ACTIONS)
    for literal in (Mode, SurfaceStatus, ReasoningStatus, EngineName):
        yield from get_args(literal)
