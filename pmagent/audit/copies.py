"""A report outside of the workspace: copies of the audit's documents, which stay where they are."""

from __future__ import annotations

from pathlib import Path

from events.atomic import write_atomic
from events.errors import PmagentError
from pmagent.audit.places import ENDINGS


class CopyFailed(PmagentError):
    """The report could not be copied; it lies in the workspace all the same."""

    exit_code = 1


def write_copies(workspace: Path, output: str, copy: Path) -> list[Path]:
    """Copy the report at ``output`` (in the workspace, without its ending) to ``copy`` (absolute, without its ending),
    each file at once or not at all; the copies' paths. Raises CopyFailed."""
    made = []
    for ending in ENDINGS:
        source, target = workspace / f"{output}{ending}", copy.with_name(f"{copy.name}{ending}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(target, source.read_bytes())
        except OSError as error:
            raise CopyFailed(
                f"the report could not be copied to {target}: {error.strerror}", f"it lies at {workspace / output}.md"
            ) from error
        made.append(target)
    return made
