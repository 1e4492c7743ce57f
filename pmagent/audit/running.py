"""An audit in this process, without a workspace and a log (docs/design.md §15.1)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pmagent.actors.audit import graph
from pmagent.actors.audit.graph import Compiled
from pmagent.audit.delivery import place_of
from pmagent.audit.rubrics import load_rubric
from pmagent.audit.source import source_of
from pmagent.audit.standalone import StandaloneClerk
from pmagent.contracts.audit import AuditReport
from pmagent.contracts.audit_events import AuditLimits
from pmagent.events.errors import PmagentError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class AuditFailed(PmagentError, exit_code=1):
    """An audit that has no report. ``code`` is one of ``FailureCode``, of what failed first."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.code = code


def compile_audit_graph(
    model: BaseChatModel | None = None,
    vision_model: BaseChatModel | None = None,
    limits: AuditLimits | None = None,
) -> Compiled:
    """The audit as a compiled ``StateGraph`` whose nodes do their work on the spot: ``graph.invoke({"repo_url": …,
    "pdf_path": …})``, and if wanted ``rubric_path`` and ``output_path`` (see ``run_audit``), returns the state.
    ``final_report`` is None where the audit failed, and ``failures`` say why; else it is written too. ``model`` judges
    (None: the rules do, offline), ``vision_model`` looks at the report's images (None: nobody does)."""
    clerk = StandaloneClerk(model, vision_model, limits, writes=True)
    return graph.compile_audit_graph(clerk, {"engine": clerk.engine})


def run_audit(
    repo_url: str,
    pdf_path: str,
    rubric_path: str | None = None,
    output_path: str | None = None,
    *,
    model: BaseChatModel | None = None,
    vision_model: BaseChatModel | None = None,
    limits: AuditLimits | None = None,
) -> AuditReport:
    """Audit a repository and its report; the result is written as Markdown and as JSON, each file at once or not at
    all: at ``output_path`` (a file that ends in .md, else a folder), else at ``audit/report_<name>.md``. Blocking.

    Raises BadRubric, BadAudit and BadPath before anything is done; AuditFailed where there is no report.
    """
    here = Path.cwd()
    url = source_of(repo_url, here)
    wanted = "" if output_path is None else output_path
    place_of(wanted, url, here)
    rubric = load_rubric(rubric_path)
    state = compile_audit_graph(model, vision_model, limits).invoke(
        {
            "repo_url": url,
            "pdf_path": str(here / os.path.expanduser(pdf_path)),
            "rubric": rubric.document,
            "output_path": wanted,
        }
    )
    report: AuditReport | None = state.get("final_report")
    if report is None:
        failure = state["failures"][0]
        raise AuditFailed(failure.code, failure.reason, failure.mend)
    return report
