"""An audit that is asked for on another machine than the one that holds the log: its report goes along, as content, and
lies at the holder then (docs/machines.md)."""

from __future__ import annotations

from base64 import b64decode, b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.repository.address import address
from pmagent.audit.source import BadAudit
from pmagent.events.atomic import write_atomic
from pmagent.workspace.layout import Layout

PDF_BYTES_MAX: Final = 16 << 20
"""A report that goes along has so many bytes at most."""
PDF: Final = "pdf"
FOLDER: Final = "reports"
"""Below the workspace's data: the reports that were sent, each under its SHA-256."""


def carried(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the report's content in place of its path. Blocking. Raises BadAudit."""
    _require_address(arguments)
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


def received(layout: Layout, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments that ``carried`` has made, with the path at which the report lies now. Blocking. Raises
    BadAudit."""
    _require_address(arguments)
    sent = arguments.get(PDF)
    try:
        content = b64decode(sent, validate=True) if isinstance(sent, str) else b""
    except ValueError:
        content = b""
    if not 0 < len(content) <= PDF_BYTES_MAX:
        raise BadAudit("the report was not sent with the request", "pmagent audit of this release does that")
    path = layout.home / FOLDER / f"{sha256(content).hexdigest()}.pdf"
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomic(path, content, 0o600)
    except OSError as error:
        what = f"the holder cannot keep the report: {error.strerror}"
        raise BadAudit(what, f"look at {path.parent} there") from error
    return {**{name: value for name, value in arguments.items() if name != PDF}, "pdf_path": str(path)}


def _require_address(arguments: dict[str, Any]) -> None:
    try:
        found = address(str(arguments.get("repo_url")))
    except SourceFailed as failed:
        raise BadAudit(failed.message, failed.hint) from failed
    if found.protocol == "file":
        what = "the repository is named by a path of this machine, and another one holds the log"
        raise BadAudit(what, "give the address from which it can be cloned, or audit it on the holder's machine")
