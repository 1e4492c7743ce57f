"""From a command's flags and files to the request for an audit; all validation before anything is recorded happens here
(docs/design.md §15.1)."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Final, NamedTuple, TypeVar

import msgspec

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.rubric import BadRubric, read_rubric, rubric_of
from pmagent.actors.audit.sources.pdf.reading import check_pdf
from pmagent.actors.core.extras import install
from pmagent.audit.appeals import appeals_in
from pmagent.audit.output import check_output, ending_of, output_of
from pmagent.audit.rubrics import DEFAULT, default_rubric
from pmagent.audit.sarif import reported_by
from pmagent.audit.source import BadAudit, check_folder, check_source, origin_of, source_of
from pmagent.contracts.audit_events import PATH_CHARS_MAX, AuditLimits, AuditRequested
from pmagent.contracts.model import ModelLimits, ModelPrice
from pmagent.jobs.kinds import Source
from pmagent.workspace.settings import AuditSettings
from pmagent.workspace.settings_programs import ConfigError

L = TypeVar("L", AuditLimits, ModelLimits)


class AuditOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a command. ``rubric`` None: the default one; ``model`` and ``vision_model`` None: the settings';
    ``outputs``: at most one place for the documents, and files of other formats; ``sarif``: of other tools."""

    repo_url: str
    pdf_path: str
    rubric: Source | None = None
    outputs: Sequence[str] = ()
    model: str | None = None
    vision_model: str | None = None
    panel: str = ""
    sarif: Sequence[Source] = ()
    appeals: Source | None = None


class PreparedAudit(NamedTuple):
    """The request; ``copy``: where the report is to lie besides, without its ending (None: nowhere); ``files``: of one
    format each, besides."""

    request: AuditRequested
    copy: Path | None
    files: Sequence[Path] = ()


def as_request(
    options: AuditOptions, settings: AuditSettings, workspace: Path, folder: Path, audit_id: str
) -> PreparedAudit:
    """The request for the audit ``audit_id`` (a UUID); paths are relative to ``folder``. Blocks while repository and
    report are seen to be of the right kind.

    Raises BadAudit (a source that cannot be), BadRubric, BadPath (the output), ConfigError.
    """
    repo_url = source_of(options.repo_url, folder)
    pdf_path = _pdf(options.pdf_path, folder)
    rubric = default_rubric() if options.rubric is None else read_rubric(options.rubric.content, options.rubric.where)
    check_folder(repo_url)
    limits = limits_of(settings, AuditLimits)
    try:
        check_pdf(pdf_path, limits)
    except SourceFailed as failed:
        raise BadAudit(failed.message, failed.hint) from failed
    output, copy, files = _outputs(options.outputs, repo_url, workspace, folder, audit_id)
    model = _model(settings.model if options.model is None else options.model)
    if options.panel and not model:
        raise BadAudit("--panel names a second model, and there is no first", "name it: --model PROVIDER:NAME")
    request = AuditRequested(
        audit_id=audit_id,
        repo_url=repo_url,
        pdf_path=pdf_path,
        rubric=rubric.document,
        rubric_source=DEFAULT if options.rubric is None else options.rubric.where,
        output=output,
        engine="langchain" if model else "rules",
        model=model,
        vision_model=_model(settings.vision_model if options.vision_model is None else options.vision_model),
        limits=limits,
        model_limits=limits_of(settings, ModelLimits),
        price=price_of(settings),
        panel=_model(options.panel),
        origin=origin_of(repo_url),
        reported=reported_by(options.sarif, None if "://" in repo_url else Path(repo_url)),
        appeals=[] if options.appeals is None else appeals_in(options.appeals),
    )
    return PreparedAudit(request, copy, files)


def as_resumed(
    earlier: AuditRequested, settings: AuditSettings, workspace: Path, folder: Path, audit_id: str,
    outputs: Sequence[str] = (),
) -> PreparedAudit:  # fmt: skip
    """The request for an audit that takes up ``earlier``, within today's limits. Raises BadAudit, BadPath,
    ConfigError."""
    output, copy, files = _outputs(outputs, earlier.repo_url, workspace, folder, audit_id)
    request = msgspec.structs.replace(
        earlier, audit_id=audit_id, resumes=earlier.audit_id, output=output if outputs else earlier.output,
        limits=limits_of(settings, AuditLimits), model_limits=limits_of(settings, ModelLimits),
        price=price_of(settings),
    )  # fmt: skip
    return PreparedAudit(request, copy, files)


def _outputs(
    wanted: Sequence[str], repo_url: str, workspace: Path, folder: Path, audit_id: str
) -> tuple[str, Path | None, tuple[Path, ...]]:
    places = [one for one in wanted if not ending_of(one)]
    if len(places) > 1:
        raise BadAudit("--output names two places for the report", "give one; other formats may stand beside it")
    path, copy, _ = output_of(places[0] if places else None, repo_url, workspace, folder, audit_id)
    made = [output_of(one, repo_url, workspace, folder, audit_id).file for one in wanted if ending_of(one)]
    return path, copy, tuple(one for one in made if one is not None)


def checked(asked: AuditRequested, workspace: Path) -> AuditRequested:
    """The request as it may be recorded here, whoever sent it; what the audit needs is there. Raises BadAudit,
    BadRubric, BadPath."""
    check_source(asked.repo_url)
    if not os.path.isabs(asked.pdf_path):
        raise BadAudit("the path of the PDF is not absolute", "give it from / on")
    _pdf(asked.pdf_path, workspace)
    rubric = read_rubric(msgspec.json.encode(asked.rubric), asked.rubric_source or "the rubric")
    check_output(asked.output, workspace, asked.audit_id)
    if (asked.engine == "rules") != (asked.model == ""):
        raise BadAudit("the engine rules asks no model, and langchain needs one", "name --model PROVIDER:NAME, or none")
    if asked.panel and not asked.model:
        raise BadAudit("a panel checks a model, and there is none", "name --model PROVIDER:NAME")
    for missing, mend in _missing():
        raise BadAudit(missing, mend)
    return msgspec.structs.replace(asked, rubric=rubric.document)


def check_masked(asked: AuditRequested, drafted: AuditRequested) -> None:
    """Look whether the request is one still, now that its secrets are masked. Raises BadAudit."""
    for name in _UNMASKED:
        if getattr(asked, name) != getattr(drafted, name):
            raise BadAudit(
                f"{name} holds a secret that the audit's environment knows, and is masked in the log",
                "give it without the secret; or unset the variable, if its value is none",
            )
    if asked.rubric != drafted.rubric:
        try:
            rubric_of(drafted.rubric)
        except BadRubric as error:
            what = f"with its secrets masked the rubric is none any more: {error.message}"
            raise BadAudit(what, "unset the variable that holds a word of the rubric as if it were a secret") from error


_UNMASKED: Final = ("audit_id", "repo_url", "pdf_path", "output", "model", "vision_model", "panel", "resumes")
"""Fields that an audit cannot use when they are masked."""


def limits_of(settings: AuditSettings, kind: type[L]) -> L:
    """The limits of this kind in the settings."""
    return kind(**{name: getattr(settings, name) for name in kind.__struct_fields__})


def price_of(settings: AuditSettings) -> ModelPrice | None:
    """The judges' model's price, where it is set. Raises ConfigError where half of it is."""
    if settings.input_usd is None and settings.output_usd is None:
        return None
    if settings.input_usd is None or settings.output_usd is None:
        absent = "audit.input_usd" if settings.input_usd is None else "audit.output_usd"
        raise ConfigError(f"{absent} is not set, though the other price is", "set both prices, or none")
    return ModelPrice(input_usd=settings.input_usd, output_usd=settings.output_usd)


def _model(name: str) -> str:
    if not name.isprintable() or (name and not name.strip()):
        raise BadAudit("the model's name is no printable text", "name one, e.g. --model anthropic:NAME")
    return name


def _pdf(given: str, folder: Path) -> str:
    """The PDF's path, absolute. Raises BadAudit where there is no regular file that can be read."""
    if "\0" in given or not given:
        raise BadAudit("PDF names no file", _PDF)
    path = os.path.abspath(folder / os.path.expanduser(given))
    try:
        path.encode()
    except UnicodeEncodeError:
        raise BadAudit("the path of the PDF is no text in UTF-8", "rename it, or give it through a link") from None
    if len(path) > PATH_CHARS_MAX:
        raise BadAudit(f"the path of the PDF is longer than {PATH_CHARS_MAX} characters", "give a shorter one")
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise BadAudit(f"there is no PDF at {path}: {error.strerror}", _PDF) from error
    if not stat.S_ISREG(mode):
        raise BadAudit(f"{path} is no file", _PDF)
    if not os.access(path, os.R_OK):
        raise BadAudit(f"{path} may not be read", "change its permissions")
    return path


_PDF: Final = "give the report's PDF, a file on this machine"


def _missing() -> list[tuple[str, str]]:
    """Requirements of an audit that this machine lacks."""
    found = []
    if which("git") is None:
        found.append(("there is no git on PATH, which clones the repository", "install git"))
    if find_spec("pymupdf") is None:
        found.append(("PyMuPDF is not installed, which reads the PDF", install("audit")))
    return found
