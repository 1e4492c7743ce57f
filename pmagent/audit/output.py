"""Where an audit's report goes: a path of the workspace, which is a document of the log; and a copy, where the report
is wanted elsewhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from pmagent.audit.source import BadAudit, slug
from pmagent.projections.audits.paths import DOCUMENT, FORBIDDEN, MARKDOWN, usable
from pmagent.workspace.paths import check_names, check_writable, inside, relative

DEFAULT_FOLDER: Final = "audit"
ENDINGS: Final = (MARKDOWN, DOCUMENT)
SINGLE: Final = {
    ".html": b"<title>Audit Report", ".sarif": b'"pmagent"', ".junit.xml": b'<testsuites name="pmagent audit"',
    ".summary.md": b"# Audit Report", DOCUMENT: b'"executive_summary"',
}  # fmt: skip
"""Endings of files that are made beside the documents, and by what each is known as ours, near its beginning."""
_HEAD_BYTES: Final = 65_536
_HEADING: Final = b"# Audit Report"
"""So a report begins; what begins otherwise is not ours to write over."""
_FLAG: Final = "--output"


class Output(NamedTuple):
    """``path``: the report's, relative to the workspace, without its ending. ``copy``: absolute, without its ending,
    where it is to lie besides; None: nowhere. ``file``: absolute, a file of one format besides; None: none."""

    path: str
    copy: Path | None
    file: Path | None = None


def output_of(wanted: str | None, repo_url: str, workspace: Path, folder: Path, audit_id: str) -> Output:
    """Where the report goes that was wanted at ``wanted``: a file, when that ends in .md or as in ``SINGLE``, else a
    folder, in which it is named after the repository; relative to ``folder``. None: the workspace's own place. Raises
    BadAudit, BadPath."""
    own = default_path(repo_url)
    if wanted is None:
        return Output(_checked(own, workspace, audit_id), None)
    ending = ending_of(wanted)
    if ending:
        return Output(_checked(own, workspace, audit_id), None, _single(wanted, ending, workspace, folder))
    whole = target_of(wanted, repo_url, folder)
    below = relative(whole, workspace)
    if below is not None:
        return Output(_checked(below, workspace, audit_id), None)
    check_ours(whole)
    return Output(_checked(own, workspace, audit_id), Path(whole))


def ending_of(wanted: str) -> str:
    """The ending of ``SINGLE`` with which this ends; "": none."""
    return next((ending for ending in SINGLE if wanted.endswith(ending)), "")


def _single(wanted: str, ending: str, workspace: Path, folder: Path) -> Path:
    """The absolute path of a file of one format. Raises BadAudit, BadPath."""
    whole = Path(_named(wanted, ending, folder))
    below = relative(str(whole), workspace)
    if below is not None:
        inside(_FLAG, below, workspace, FORBIDDEN)
        check_writable(_FLAG, workspace, below, FORBIDDEN, _FLAG)
    if os.path.lexists(whole) and not _holds(whole, SINGLE[ending]):
        raise BadAudit(f"{whole} is there, and is no report of an audit", f"move it away, or give another {_FLAG}")
    return whole


def _holds(path: Path, mark: bytes) -> bool:
    """Whether the file has this within its first bytes. Raises BadAudit."""
    try:
        with open(path, "rb") as file:
            return path.is_file() and mark in file.read(_HEAD_BYTES)
    except OSError as error:
        raise BadAudit(f"{path} is there, and cannot be read: {error.strerror}", f"give another {_FLAG}") from error


def default_path(repo_url: str) -> str:
    """Where a report goes that nobody wants elsewhere, without its ending."""
    return f"{DEFAULT_FOLDER}/report_{slug(repo_url)}"


def target_of(wanted: str, repo_url: str, folder: Path) -> str:
    """The absolute path, without its ending, of a report that is wanted at ``wanted``; see ``output_of``. Raises
    BadAudit, BadPath."""
    if wanted.endswith(MARKDOWN):
        return _named(wanted, MARKDOWN, folder).removesuffix(MARKDOWN)
    if not wanted or "\0" in wanted:
        raise BadAudit(f"{_FLAG} names no place", "give a folder, or a file that ends in .md")
    check_names(_FLAG, wanted)
    whole = os.path.abspath(folder / os.path.expanduser(wanted))
    if os.path.lexists(whole) and not os.path.isdir(whole):
        raise BadAudit(f"{_FLAG} is {wanted}, which is a file", "give a folder, or a file that ends in .md")
    return f"{whole}/report_{slug(repo_url)}"


def _named(wanted: str, ending: str, folder: Path) -> str:
    """The absolute path of a file that is wanted at ``wanted``, which ends in ``ending``. Raises BadAudit, BadPath."""
    if "\0" in wanted:
        raise BadAudit(f"{_FLAG} names no place", f"give a file that ends in {ending}")
    check_names(_FLAG, wanted)
    whole = os.path.abspath(folder / os.path.expanduser(wanted))
    if os.path.basename(whole) == ending:
        raise BadAudit(f"{_FLAG} is {wanted}, a file without a name", f"give it one before {ending}")
    if os.path.isdir(whole):
        raise BadAudit(f"{_FLAG} is {wanted}, which is a folder", "name a file in it, or another folder")
    return whole


def check_output(path: str, workspace: Path, audit_id: str) -> None:
    """Look whether a report may be left at ``path``, whoever asked for it. Raises BadAudit, BadPath."""
    if os.path.isabs(path) or os.path.normpath(path) != path or path in (".", ".."):
        raise BadAudit(f"the report's path {path[:100]!r} is none below the workspace, written plainly", "correct it")
    _checked(path, workspace, audit_id)


def _checked(path: str, workspace: Path, audit_id: str) -> str:
    inside(_FLAG, path, workspace, FORBIDDEN)
    for ending in ENDINGS:
        check_names(_FLAG, f"{path}{ending}")
        check_writable(_FLAG, workspace, f"{path}{ending}", FORBIDDEN, _FLAG)
    if not usable(path, audit_id):
        raise BadAudit(
            f"{_FLAG} leads to {path}, which bears the id of a run, or lies below what ends as a report does",
            "name another place, e.g. audit/mine.md",
        )
    check_ours(str(workspace / path))
    return path


def check_ours(whole: str) -> None:
    """Look whether what stands at ``whole`` (absolute, without its ending) is a report, or nothing. Raises BadAudit."""
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
