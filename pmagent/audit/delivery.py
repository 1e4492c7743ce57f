"""The report's files outside of the log: those of an audit without one, and further ones beside the audit's documents,
made of the log like them. Markdown and JSON, each at once or not at all (docs/design.md §15.10)."""

from __future__ import annotations

from pathlib import Path

from pmagent.audit.formats import FORMATS
from pmagent.audit.output import check_ours, default_path, ending_of, target_of
from pmagent.audit.source import BadAudit, source_of
from pmagent.contracts.audit import AuditReport
from pmagent.events.atomic import write_atomic
from pmagent.events.errors import PmagentError
from pmagent.projections.audits.audits import report_files
from pmagent.projections.audits.paths import DOCUMENT, MARKDOWN
from pmagent.projections.audits.rebuilt import report_of
from pmagent.projections.audits.report import report_json, report_markdown
from pmagent.projections.views.audits import Audit


def place_of(output_path: str, repo_url: str, here: Path) -> str:
    """Where the report goes, absolute and without its ending: at ``output_path`` (a file that ends in .md, else a
    folder; relative to ``here``), or, where that is "", at ``audit/report_<name>``. Raises BadAudit, BadPath."""
    if ending_of(output_path):
        raise BadAudit(f"{output_path} is no .md file and no folder", "pmagent.audit.formats makes the other formats")
    url = source_of(repo_url, here)
    whole = target_of(output_path, url, here) if output_path else str(here / default_path(url))
    check_ours(whole)
    return whole


def write_report(report: AuditReport, whole: str) -> None:
    """Write both files, closed to other users. Raises OSError."""
    Path(whole).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomic(Path(f"{whole}{MARKDOWN}"), report_markdown(report).encode(), 0o600)
    write_atomic(Path(f"{whole}{DOCUMENT}"), report_json(report), 0o600)


class CopyFailed(PmagentError, exit_code=1):
    """The report could not be copied; it lies in the workspace all the same."""


def write_file(audit: Audit, log_id: str, file: Path, least: float | None = None) -> Path:
    """Write the report of an audit of the log ``log_id`` that has concluded to ``file`` (absolute), in the format that
    its ending names, at once or not at all; its path. ``least``: see ``report_html``. Raises CopyFailed."""
    make = FORMATS.get(ending_of(file.name))
    try:
        made = report_files(audit, log_id)[DOCUMENT] if make is None else make(report_of(audit), least, audit.used_text)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, made)
    except OSError as error:
        raise CopyFailed(
            f"the report could not be written to {file}: {error.strerror}",
            f"it lies at {audit.asked.output}.md in the workspace",
        ) from error
    return file


def write_copies(audit: Audit, log_id: str, copy: Path) -> list[Path]:
    """Write the report of an audit of the log ``log_id`` that has concluded, as it lies in the workspace of the log's
    holder, to ``copy`` (absolute, without its ending) as well, each file at once or not at all; the copies' paths.
    Raises CopyFailed."""
    made = []
    for ending, content in report_files(audit, log_id).items():
        target = copy.with_name(f"{copy.name}{ending}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(target, content)
        except OSError as error:
            raise CopyFailed(
                f"the report could not be copied to {target}: {error.strerror}",
                f"it lies at {audit.asked.output}.md in the workspace",
            ) from error
        made.append(target)
    return made
