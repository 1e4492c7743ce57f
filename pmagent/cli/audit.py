"""``pmagent audit``: judge a repository and its report against a rubric, and watch (docs/design.md §15.1)."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pmagent.cli.frame import App, command
from pmagent.cli.inputs import STDIN, BadInput, id_prefix, job_id, source_from
from pmagent.cli.shell import complete_jobs
from pmagent.exitcodes import Exit
from pmagent.jobs.kinds import AUDITS

if TYPE_CHECKING:
    from pmagent.audit.request import AuditOptions, PreparedAudit
    from pmagent.contracts.audit_events import AuditRequested
    from pmagent.workspace.settings import AuditSettings


@command(
    "pmagent audit https://github.com/OWNER/NAME report.pdf",
    "pmagent audit . report.pdf --rubric rubric.json --output audit/mine.md",
    "pmagent audit git@github.com:OWNER/NAME.git report.pdf --model anthropic:NAME --format json",
    "pmagent audit --resume 5b0c7a52", request=True,
)
@click.argument("repo_url", required=False)
@click.argument("pdf", required=False)
@click.option(
    "--rubric", metavar="FILE",
    help="The criteria, JSON; - is stdin [default: audit.rubric, else one for agent projects].",
)
@click.option(
    "--output", metavar="PATH", multiple=True,
    help="The report's path: a file that ends in .md, .summary.md, .html, .sarif, .junit.xml or .json, else a folder; "
         "may be given for several formats [default: audit/report_<name>.md].",
)
@click.option(
    "--model", metavar="NAME",
    help="The judges' model, PROVIDER:NAME; '' for the rules [default: audit.model, else the rules].",
)
@click.option(
    "--panel", metavar="NAME", default="",
    help="A second model, asked the same; its scores stand beside the first's, and change none.",
)
@click.option(
    "--vision-model", metavar="NAME",
    help="The model that looks at the report's images [default: audit.vision_model, else none].",
)
@click.option(
    "--sarif", metavar="FILE", multiple=True, help="Findings of another tool (bandit, semgrep, ruff), as evidence.",
)
@click.option(
    "--appeals", is_flag=True,
    help="Show the appeals of audit-appeals.yaml, which lies beside the rubric; without one, in this folder.",
)
@click.option(
    "--fail-under", metavar="SCORE", type=click.FloatRange(1, 5),
    help="End with exit code 1 where the overall score is lower.",
)
@click.option(
    "--resume", metavar="ID", shell_complete=partial(complete_jobs, only=[AUDITS]),
    help="Take up an audit that ended without all its answers; what was answered is not asked again.",
)
def audit(
    app: App,
    /,
    repo_url: str | None,
    pdf: str | None,
    output: tuple[str, ...],
    fail_under: float | None,
    resume: str | None,
    request: str | None,
    format: str,
    **given: Any,
) -> int:
    """Audit the repository REPO_URL (https, ssh, git@, file:// or a local path) and the PDF report about it.

    Detectives look for evidence in the code, its history and the report; three judges give opinions on each criterion
    of the rubric; fixed rules compute the scores. Progress goes to stderr. Ctrl-C ends the audit in order. Exit 0:
    there is a report. 1: the audit failed, was refused or cancelled (the collected evidence is kept), a model gave no
    answer on a criterion, or the score is below --fail-under. 2: an argument is wrong, or a model's key is missing;
    nothing was recorded. 6: a time limit. It needs a workspace: pmagent init makes one. `pmagent audits` lists
    audits."""
    from pmagent.audit.request import as_request, as_resumed

    here, audit_id = Path.cwd(), job_id(request)
    if resume is not None:
        if repo_url is not None or any(given.values()):
            raise click.UsageError("--resume goes with --output, --fail-under, --request and --format alone")
        earlier = _ended(app, resume)
        settings = _settings(app, earlier.repo_url)
        return _audit(app, as_resumed(earlier, settings, app.workspace, here, audit_id, output), format, fail_under)
    if repo_url is None or pdf is None:
        raise click.UsageError(f"Missing argument '{'REPO_URL' if repo_url is None else 'PDF'}'.")
    settings = _settings(app, repo_url)
    options = _options(app, settings, repo_url=repo_url, pdf_path=pdf, outputs=output, **given)
    return _audit(app, as_request(options, settings, app.workspace, here, audit_id), format, fail_under)


def _options(
    app: App, settings: AuditSettings, *, rubric: str | None, sarif: tuple[str, ...], appeals: bool, **given: Any
) -> AuditOptions:
    from pmagent.audit.appeals import APPEALS_BYTES_MAX, NAME
    from pmagent.audit.request import AuditOptions
    from pmagent.audit.sarif import SARIF_BYTES_MAX
    from pmagent.contracts.audit_events import RUBRIC_BYTES_MAX

    if rubric is None and settings.rubric:
        rubric = str(app.workspace / settings.rubric)
    beside = Path(rubric).parent if rubric not in (None, STDIN) else Path()
    return AuditOptions(
        rubric=source_from(rubric, RUBRIC_BYTES_MAX, "it has to hold a rubric"),
        sarif=[one for name in sarif if (one := source_from(name, SARIF_BYTES_MAX, "it has to hold SARIF"))],
        appeals=source_from(str(beside / NAME), APPEALS_BYTES_MAX, "it has to hold appeals") if appeals else None,
        **given,
    )


def _ended(app: App, given: str) -> AuditRequested:
    """The request of the audit whose id begins so, which has ended without all its answers. Raises BadInput,
    BadParameter, NoSuchJob."""
    from pmagent.jobs.catalogue import ALL, Catalogue
    from pmagent.jobs.history import opened

    entry = Catalogue(app.layout, kept=ALL, checks=True).prefixed([AUDITS], id_prefix(given, "--resume"), ALL)
    with opened(app.layout) as log:
        view = log.view(AUDITS, entry.position)
        asked: AuditRequested = log.at(entry.position).data
    if not view.over:
        raise BadInput(f"the audit {view.id} goes on: it is {view.word}", f"pmagent audits {view.id[:8]} shows it")
    if view.concluded is not None and not view.unanswered:
        raise BadInput(f"the audit {view.id} has all its answers", f"pmagent audits {view.id[:8]} shows them")
    return asked


def _settings(app: App, repo_url: str) -> AuditSettings:
    """The settings of the audit. One of an address goes by the workspace's file only if that was accepted."""
    from pmagent.audit.source import is_address
    from pmagent.workspace.presence import require_workspace
    from pmagent.workspace.settings import resolve
    from pmagent.workspace.trust import is_accepted, require_accepted

    workspace = app.workspace.resolve()
    require_workspace(workspace)
    if not is_address(repo_url, workspace):
        require_accepted(workspace)
    elif not is_accepted(workspace):
        return resolve(app.workspace_flag, app.environ, b"").settings.audit
    return app.resolved.settings.audit


def _audit(app: App, prepared: PreparedAudit, format: str, fail_under: float | None) -> int:
    from pmagent.audit.delivery import write_copies, write_file
    from pmagent.cli.audit_text import AUDIT, document, exit_code, summary
    from pmagent.cli.job_screen import follow_job

    asked, copy, files = prepared
    audit = follow_job(app, AUDIT, asked, plain=format == "json")
    copies: list[Path] = []
    if audit.state == "concluded":
        with closing(app.layout.store.reader()) as log:
            log_id = log.log_id()
        copies += write_copies(audit, log_id, copy) if copy is not None else []
        copies += [write_file(audit, log_id, file, fail_under) for file in files]
    below = fail_under is not None and audit.score is not None and audit.score < fail_under
    code = Exit.NO if below else exit_code(audit)
    more = {} if fail_under is None else {"fail_under": fail_under, "exit_code": int(code)}
    app.output.answer(format, document(audit, copies) | more, lambda: summary(app.output, audit, copies))
    if below:
        app.output.note(f"the overall score, {audit.score:g}, is below --fail-under {fail_under:g}")
    return code
