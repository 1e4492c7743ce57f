"""The auditor's contact with the world: clones and surveys a repository, reads a PDF and its images
(docs/design.md §15.4, §15.5)."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.pdf.pictures import read_pictures
from pmagent.actors.audit.sources.pdf.reading import read_pdf
from pmagent.actors.audit.sources.repository.survey import survey_repository
from pmagent.actors.core.actor import Io, Performers
from pmagent.actors.sandbox.reader.stopping import stoppable
from pmagent.contracts.audit_events import (
    AuditCloneRequested,
    AuditPdfRead,
    AuditPdfRequested,
    AuditPicturesRead,
    AuditPicturesRequested,
    AuditSourceFailed,
    AuditSurveyed,
)
from pmagent.events.event import Event
from pmagent.events.tree import remove_folder

FOLDER: Final = ".pmagent/audits"
"""Where clones lie while they are surveyed; what a killed process left there goes at the next start."""

T = TypeVar("T")


async def clone(event: Event, io: Io) -> AuditSurveyed | AuditSourceFailed:
    """Performer of audit.clone_requested: the clone is there only as long as it is surveyed."""
    asked: AuditCloneRequested = event.data
    folder = str(io.workspace / FOLDER / str(event.position))

    def work(stop: threading.Event) -> AuditSurveyed:
        remove(folder)  # a performance that was given up may have left some of it
        Path(folder).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.mkdir(folder, mode=0o700)
        try:
            survey = survey_repository(asked.repo_url, asked.limits, folder, stop, asked.function_bytes or 0)
        finally:
            remove(folder)
        return AuditSurveyed(request=event.position, survey=survey)

    return await _performed(event, work)


async def read(event: Event, _: Io) -> AuditPdfRead | AuditSourceFailed:
    """Performer of audit.pdf_requested."""
    asked: AuditPdfRequested = event.data

    def work(stop: threading.Event) -> AuditPdfRead:
        reading = read_pdf(asked.pdf_path, asked.questions, asked.limits, stop)
        return AuditPdfRead(request=event.position, reading=reading)

    return await _performed(event, work)


async def picture(event: Event, io: Io) -> AuditPicturesRead | AuditSourceFailed:
    """Performer of audit.pictures_requested: every image is in the blob store before the fact that names it."""
    asked: AuditPicturesRequested = event.data
    images: dict[str, bytes] = {}

    def work(stop: threading.Event) -> AuditPicturesRead:
        reading, found = read_pictures(asked.pdf_path, asked.limits, stop)
        images.update(found)
        return AuditPicturesRead(request=event.position, reading=reading)

    outcome = await _performed(event, work)
    if isinstance(outcome, AuditPicturesRead):
        return await _stored(outcome, images, io)
    return outcome


PERFORMERS: Final[Performers] = {
    AuditCloneRequested: clone,
    AuditPdfRequested: read,
    AuditPicturesRequested: picture,
}


async def _stored(outcome: AuditPicturesRead, images: Mapping[str, bytes], io: Io) -> AuditPicturesRead:
    """The outcome, its images named as the blob store names them."""
    names = {sha256: await io.store_blob(content) for sha256, content in images.items()}
    pictures = [
        msgspec.structs.replace(one, sha256=names.get(one.sha256, one.sha256)) for one in outcome.reading.pictures
    ]
    reading = msgspec.structs.replace(outcome.reading, pictures=pictures)
    return AuditPicturesRead(request=outcome.request, reading=reading)


async def _performed(event: Event, work: Callable[[threading.Event], T]) -> T | AuditSourceFailed:
    """The work, done in a thread; who stops waiting stops it, and waits until its processes are gone."""

    def guarded(stop: threading.Event) -> T | AuditSourceFailed:
        try:
            return work(stop)
        except SourceFailed as failed:
            return AuditSourceFailed(
                request=event.position, code=failed.code, text=failed.message[:1000], mend=failed.hint[:1000]
            )

    return await stoppable(guarded)


def remove(folder: str) -> None:
    """Remove a clone, read-only files and folders and all; nothing happens where there is none. Raises OSError."""

    def writable(remove_it: Callable[[str], object], path: str, _: object) -> None:
        os.chmod(os.path.dirname(path), 0o700)
        if not os.path.islink(path):
            os.chmod(path, 0o700)
        remove_it(path)

    if not os.path.isdir(folder):
        return
    try:
        if sys.version_info >= (3, 12):
            shutil.rmtree(folder, onexc=writable)
        else:
            shutil.rmtree(folder, onerror=writable)
    except RecursionError:  # a stranger's repository may be as deep as a path is long
        remove_folder(folder)
