"""An audit that is asked for on another machine than the one that holds the log: its report goes along, as content, and
lies at the holder then (docs/machines.md)."""

from __future__ import annotations

from base64 import b64decode, b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.repository.address import address
from pmagent.audit.source import BadAudit
from pmagent.events.tree import Tree
from pmagent.workspace.layout import Layout

PDF_BYTES_MAX: Final = 16 << 20
"""A report that goes along has so many bytes at most."""
PDF: Final = "pdf"
FOLDER: Final = "reports"
"""Below the workspace's data: the reports that were sent, each under its SHA-256."""


class Received(NamedTuple):
    """The arguments with the path at which the report lies now; ``new``: it has not lain there before."""

    arguments: dict[str, Any]
    new: bool


def carried(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the report's content in place of its path. Blocking. Raises BadAudit."""
    _require_address(arguments)
    if arguments.get("resumes"):  # its report is named by the holder's path, where another file may lie here
        what = "the report of an audit that is taken up again lies on another machine, which holds the log"
        raise BadAudit(what, "pmagent audit --resume there; or ask for a new audit")
    path = Path(str(arguments["pdf_path"]))
    try:
        with path.open("rb") as file:
            content = file.read(PDF_BYTES_MAX + 1)
    except OSError as error:
        raise BadAudit(f"{path} cannot be read: {error.strerror}", "give the report's PDF") from error
    if len(content) > PDF_BYTES_MAX:
        what = f"{path} is longer than the {PDF_BYTES_MAX >> 20} MiB that go to another machine"
        raise BadAudit(what, "audit it on the machine that holds the log")
    rest = {name: value for name, value in arguments.items() if name != "pdf_path"}
    return {**rest, PDF: b64encode(content).decode()}


def received(layout: Layout, arguments: dict[str, Any]) -> Received:
    """Keep the report of the arguments that ``carried`` has made. Blocking. Raises BadAudit."""
    _require_address(arguments)
    sent = arguments.get(PDF)
    try:
        content = b64decode(sent, validate=True) if isinstance(sent, str) else b""
    except ValueError:
        content = b""
    if not 0 < len(content) <= PDF_BYTES_MAX:
        raise BadAudit("the report was not sent with the request", "pmagent audit of this release does that")
    path = f"{FOLDER}/{sha256(content).hexdigest()}.pdf"
    try:
        data = Tree(layout.home)
        new = not data.exists(path, own=2)
        data.replace(path, [content], own=2)  # a link there is moved aside, wherever it leads
    except OSError as error:
        what = f"the holder cannot keep the report: {error.strerror}"
        raise BadAudit(what, f"look at {layout.home / FOLDER} there") from error
    rest = {name: value for name, value in arguments.items() if name != PDF}
    return Received({**rest, "pdf_path": str(layout.home / path)}, new)


def dropped(layout: Layout, kept: Received) -> None:
    """Remove the report of a request that was refused, if it came with that. Blocking. Raises OSError."""
    if kept.new:
        Tree(layout.home).remove(f"{FOLDER}/{Path(kept.arguments['pdf_path']).name}", own=2)


def _require_address(arguments: dict[str, Any]) -> None:
    try:
        found = address(str(arguments.get("repo_url")))
    except SourceFailed as failed:
        raise BadAudit(failed.message, failed.hint) from failed
    if found.protocol == "file":
        what = "the repository is named by a path of this machine, and another one holds the log"
        raise BadAudit(what, "give the address from which it can be cloned, or audit it on the holder's machine")
