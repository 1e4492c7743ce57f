"""Where an audit's report goes: a path of the workspace, which is a document of the log; and a copy, where the report
is wanted elsewhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from pmagent.audit.source import BadAudit, slug
from pmagent.places import check_ground, check_names, inside, relative
from projections.runs.places import FORBIDDEN as NO_RUNS

DEFAULT_FOLDER: Final = "audit"
FORBIDDEN: Final = NO_RUNS | {"runs"}
"""Folders of the workspace in which no audit leaves anything."""
ENDINGS: Final = (".md", ".json")
_HEADING: Final = b"# Audit Report"
"""So a report begins; what begins otherwise is not ours to write over."""
_FLAG: Final = "--output"


class Output(NamedTuple):
    """``path``: the report's, relative to the workspace, without its ending. ``copy``: absolute, without its ending,
    where it is to lie besides; None: nowhere."""

    path: str
    copy: Path | None


def output_of(wanted: str | None, repo_url: str, workspace: Path, folder: Path) -> Output:
    """Where the report goes that was wanted at ``wanted``: a file, when that ends in .md, else a folder, in which it is
    named after the repository; relative to ``folder``. None: the workspace's own place. Raises BadAudit, Misplaced."""
    own = f"{DEFAULT_FOLDER}/report_{slug(repo_url)}"
    if wanted is None:
        return Output(_checked(own, workspace), None)
    if not wanted or "\0" in wanted:
        raise BadAudit(f"{_FLAG} names no place", "give a folder, or a file that ends in .md")
    check_names(_FLAG, wanted)
    whole = os.path.abspath(folder / os.path.expanduser(wanted))
    if wanted.endswith(".md"):
        if os.path.isdir(whole):
            raise BadAudit(f"{_FLAG} is {wanted}, which is a folder", "name a file in it, or another folder")
        whole = whole.removesuffix(".md")
    else:
        if os.path.lexists(whole) and not os.path.isdir(whole):
            raise BadAudit(f"{_FLAG} is {wanted}, which is a file", "give a folder, or a file that ends in .md")
        whole = f"{whole}/report_{slug(repo_url)}"
    below = relative(whole, workspace)
    if below is not None:
        return Output(_checked(below, workspace), None)
    _check_ours(whole)
    return Output(_checked(own, workspace), Path(whole))


def check_output(path: str, workspace: Path) -> None:
    """Look whether a report may be left at ``path``, whoever asked for it. Raises BadAudit, Misplaced."""
    if os.path.isabs(path) or os.path.normpath(path) != path or path in (".", ".."):
        raise BadAudit(f"the report's path {path[:100]!r} is none below the workspace, written plainly", "correct it")
    _checked(path, workspace)


def _checked(path: str, workspace: Path) -> str:
    inside(_FLAG, path, workspace, FORBIDDEN)
    for ending in ENDINGS:
        check_names(_FLAG, f"{path}{ending}")
        check_ground(_FLAG, workspace, f"{path}{ending}", FORBIDDEN, _FLAG)
    _check_ours(str(workspace / path))
    return path


def _check_ours(whole: str) -> None:
    """What stands there already is a report, or nothing. Raises BadAudit."""
    markdown, document = (f"{whole}{ending}" for ending in ENDINGS)
    foreign = next((path for path in (markdown, document) if os.path.lexists(path) and not os.path.isfile(path)), None)
    if foreign is None and os.path.lexists(markdown) and not _begins(markdown):
        foreign = markdown
    if foreign is None and os.path.lexists(document) and not os.path.lexists(markdown):
        foreign = document
    if foreign is not None:
        raise BadAudit(f"{foreign} is there, and is no report of an audit", f"move it away, or give another {_FLAG}")


def _begins(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_HEADING)) == _HEADING
    except OSError as error:
        raise BadAudit(f"{path} is there, and cannot be read: {error.strerror}", f"give another {_FLAG}") from error
