"""``pmagent audit``: judge a repository and its report against a rubric, and watch (docs/design.md §15.1)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pmagent.cli.frame import App, Command, format_option, pass_app, request_option
from pmagent.cli.inputs import job_id, source_from
from pmagent.exitcodes import Exit

if TYPE_CHECKING:
    from pmagent.audit.request import PreparedAudit
    from pmagent.workspace.settings import AuditSettings


@click.command(
    cls=Command,
    example=[
        "pmagent audit https://github.com/OWNER/NAME report.pdf",
        "pmagent audit . report.pdf --rubric rubric.json --output audit/mine.md",
        "pmagent audit git@github.com:OWNER/NAME.git report.pdf --model anthropic:NAME --format json",
    ],
)
@click.argument("repo_url")
@click.argument("pdf")
@click.option(
    "--rubric", metavar="FILE",
    help="The criteria, JSON; - is stdin [default: audit.rubric, else one for agent projects].",
)
@click.option(
    "--output", metavar="PATH",
    help="The report's path: a file that ends in .md, .html, .sarif, .junit.xml or .json, else a folder "
         "[default: audit/report_<name>.md].",
)
@click.option(
    "--model", metavar="NAME",
    help="The judges' model, PROVIDER:NAME; '' for the rules [default: audit.model, else the rules].",
)
@click.option(
    "--vision-model", metavar="NAME",
    help="The model that looks at the report's images [default: audit.vision_model, else none].",
)
@click.option(
    "--fail-under", metavar="SCORE", type=click.FloatRange(1, 5),
    help="End with exit code 1 where the overall score is lower.",
)
@request_option()
@format_option()
@pass_app
def audit(
    app: App,
    repo_url: str,
    pdf: str,
    rubric: str | None,
    output: str | None,
    model: str | None,
    vision_model: str | None,
    fail_under: float | None,
    request: str | None,
    format: str,
) -> int:
    """Audit the repository REPO_URL (https, ssh, git@, file:// or a local path) and the PDF report about it.

    Detectives look for evidence in the code, its history and the report; three judges give opinions on each criterion
    of the rubric; fixed rules compute the scores. Progress goes to stderr. Ctrl-C ends the audit in order. Exit 0:
    there is a report. 1: the audit failed, was refused or cancelled (the collected evidence is kept), or the score is
    below --fail-under. 2: an argument is wrong, or a model's key is missing; nothing was recorded. 6: a time limit.
    `pmagent audits` lists audits."""
    from pmagent.audit.request import AuditOptions, as_request
    from pmagent.contracts.audit_events import RUBRIC_BYTES_MAX

    settings = _settings(app, repo_url)
    if rubric is None and settings.rubric:
        rubric = str(app.workspace / settings.rubric)
    options = AuditOptions(
        repo_url=repo_url, pdf_path=pdf, rubric=source_from(rubric, RUBRIC_BYTES_MAX, "it has to hold a rubric"),
        output=output, model=model, vision_model=vision_model,
    )
    asked = as_request(options, settings, app.workspace, Path.cwd(), job_id(request))
    return _audit(app, asked, format, fail_under)


def _settings(app: App, repo_url: str) -> AuditSettings:
    """The settings of the audit. One of an address goes by the workspace's file only if that was accepted."""
    from pmagent.audit.source import is_address
    from pmagent.workspace.settings import resolve
    from pmagent.workspace.trust import is_accepted, require_accepted

    workspace = app.workspace.resolve()
    if not is_address(repo_url, workspace):
        require_accepted(workspace)
    elif not is_accepted(workspace):
        return resolve(app.workspace_flag, app.environ, b"").settings.audit
    return app.resolved.settings.audit


def _audit(app: App, prepared: PreparedAudit, format: str, fail_under: float | None) -> int:
    from pmagent.audit.delivery import write_copies, write_file
    from pmagent.cli.audit_text import AUDIT, document, exit_code, summary, used_text
    from pmagent.cli.job_screen import follow_job

    asked, copy, file = prepared
    audit = follow_job(app, AUDIT, asked, plain=format == "json")
    copies: list[Path] = []
    if audit.state == "concluded":
        workspace = app.workspace.resolve()
        copies += write_copies(workspace, asked.output, copy) if copy is not None else []
        copies += [write_file(workspace, audit, file, fail_under, used_text(audit))] if file is not None else []
    below = fail_under is not None and audit.score is not None and audit.score < fail_under
    code = Exit.NO if below else exit_code(audit)
    more = {} if fail_under is None else {"fail_under": fail_under, "exit_code": int(code)}
    app.output.answer(format, document(audit, copies) | more, lambda: summary(app.output, audit, copies))
    if below:
        app.output.note(f"the overall score, {audit.score:g}, is below --fail-under {fail_under:g}")
    return code
