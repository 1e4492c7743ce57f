"""Every type of event: importing this registers them all. A type that is not registered is read as unknown."""

from __future__ import annotations

from importlib import import_module

from pmagent.actors.areas import AREAS
from pmagent.contracts.blobs import NEEDLES, blobs_dropped, blobs_named
from pmagent.events.named_blobs import BlobCheck, NamedBlobs
from pmagent.events.storage import Blobs

_CORE = ("pmagent.contracts.control", "pmagent.contracts.daemon", "pmagent.contracts.effect")

for _module in (*_CORE, *(module for area in AREAS for module in area.contracts)):
    import_module(_module)


def blob_check(blobs: Blobs) -> BlobCheck:
    """A check of those of ``blobs`` that the events of this release's types, and of others, name."""
    return BlobCheck(blobs, NEEDLES, blobs_named, blobs_dropped)


def named_blobs() -> NamedBlobs:
    """How the blobs are found that lines name, of this release's types and of others."""
    return NamedBlobs(NEEDLES, blobs_named)
