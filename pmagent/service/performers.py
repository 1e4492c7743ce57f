"""Performers that are made for a host, of what it is given."""

from __future__ import annotations

from pmagent.actors.core.actor import Performers
from pmagent.actors.model.effects import model_performers
from pmagent.actors.orchestra.running.effects import performers as run_performers
from pmagent.actors.pla.effects import pla_performers
from pmagent.edge import Given


def models(given: Given) -> Performers:
    """Calls of the host's models."""
    return model_performers(given.models)


def attempts(_: Given) -> Performers:
    """Attempts of tasks; the host's own, for they know what they left."""
    return run_performers()


def device(given: Given) -> Performers:
    """Conversations over the host's line."""
    return pla_performers(given.line, given.plain)
