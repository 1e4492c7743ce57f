"""From a command's flags and files to the request for a run; all validation before anything is recorded happens here
(docs/design.md §14.4)."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from pmagent.actors.orchestra.planning.allowance import LimitExceeded, ToolRefused
from pmagent.actors.orchestra.planning.config import FILE, BadConfig, Flags, effective, read_config
from pmagent.actors.orchestra.planning.plan import make_plan, read_plan
from pmagent.actors.orchestra.running.sandbox_spec import absolute
from pmagent.actors.sandbox.programs import found
from pmagent.contracts.oa_documents import Document
from pmagent.contracts.orchestra import SEARCH_MAX, Intent, PlanText, Program, TaskOptions
from pmagent.contracts.orchestra_config import OrchestraConfig
from pmagent.contracts.orchestra_events import Replans, RunRequested
from pmagent.contracts.shape import Misfit, fit
from pmagent.events.errors import PmagentError
from pmagent.jobs.kinds import Source
from pmagent.orchestra.command import WHERE, not_listed, plan_of, program_of, whitelist_line
from pmagent.orchestra.paths import ANY_ID, check_paths, normalized

DEFAULTS: Final = OrchestraConfig(version="1.0")
"""The configuration of a workspace that has none: the specification's values."""


TASK_WORDS_BYTES_MAX: Final = 120 * 1024
"""Arguments and variables of a task; a sandbox takes 128 KiB, its own variables included."""


class BadRun(PmagentError, exit_code=2):
    """The request is no valid run; nothing was recorded."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a command. ``config`` None: the workspace's, if it has one; ``plan`` None: a planner makes it.
    ``search``: folders of programs that the command's environment names. ``words``: the one program to run, with its
    arguments, instead of a plan."""

    intent: str
    config: Source | None = None
    plan: Source | None = None
    concurrency: int | None = None
    retries: int | None = None
    replan: int = 0
    out: str | None = None
    action: str = "feature_work"
    plan_only: bool = False
    dry_run: bool = False
    search: Sequence[str] = ()
    words: Sequence[str] = ()


class _Checked(Document, frozen=True, kw_only=True):
    """Fields that enter the request as they were given."""

    intent: Intent
    replan: Replans


def as_request(options: RunOptions, workspace: Path, run_id: str) -> RunRequested:
    """The request for the run ``run_id`` (a UUID).

    Raises BadRun, NotListed, BadText, BadConfig, and BadPlan with its kinds: a plan of no good shape or order, or one
    that asks for more than the configuration grants.
    """
    values = _checked_fields(options)
    try:
        config = _effective(options, workspace)
        check_paths(config, workspace, run_id)
    except BadConfig as error:
        if options.out is None or "paths.runs is " not in error.message:
            raise
        raise BadConfig(f"--out is {error.message.partition('paths.runs is ')[2]}", error.hint) from error
    plan, given = None, dict[str, TaskOptions]()
    if options.plan is not None:
        plan, given = read_plan(options.plan.content, options.plan.where)
        try:
            make_plan(plan, config, run_id, options.plan.where, options=given)
        except ToolRefused as error:
            line = whitelist_line(config, (tool for task in plan.tasks for tool in task.tools))
            hint = error.hint.removesuffix("; or add it there")
            raise ToolRefused(error.message, f"{hint}; or write into {FILE}: {line}") from error
        _check_words(plan, options.plan.where)
    if options.words:
        program = program_of(options.words, workspace, options.search)
        if program not in config.whitelist_tools:
            raise not_listed(program, config, options.config.where if options.config is not None else FILE)
        plan = plan_of(program, options.words, retried=options.retries is not None)
        make_plan(plan, config, run_id, WHERE)
        _check_words(plan, WHERE)
    return RunRequested(
        run_id=run_id, intent=values.intent, config=config, action=options.action, plan=plan,
        source=options.plan.where if options.plan is not None else WHERE if options.words else "the plan",
        plan_only=options.plan_only, dry_run=options.dry_run, replans=values.replan, search=list(options.search),
        options=given,
    )


def _check_words(plan: PlanText, where: str) -> None:
    """Look whether each task's arguments and variables are no more than a program takes. Raises LimitExceeded."""
    for task in plan.tasks:
        words = (*task.inputs.args, *task.inputs.env, *task.inputs.env.values())
        if sum(len(word.encode("utf-8", "replace")) + 1 for word in words) > TASK_WORDS_BYTES_MAX:
            raise LimitExceeded(
                f"{where}: {task.task_id}: arguments and variables have more than {TASK_WORDS_BYTES_MAX} bytes",
                "give long content as a file: inputs.files",
            )


def configured(workspace: Path) -> tuple[str, OrchestraConfig]:
    """The source and the configuration of a run without flags ("": the specification's values). Raises BadText,
    BadConfig."""
    source = of_workspace(workspace)
    config = _effective(RunOptions(intent="any", config=source), workspace)
    check_paths(config, workspace, ANY_ID)
    return (source.where if source is not None else ""), config


def warnings_of(config: OrchestraConfig) -> list[str]:
    """Warnings about settings that have no effect, for people."""
    if config.security.redact_secrets:
        return []
    return ["security.redact_secrets is false, but nothing enters the log or a run's documents unmasked all the same"]


def checked(asked: RunRequested, workspace: Path) -> RunRequested:
    """The request as it may be recorded here, whoever sent it, with the programs that are found here. Raises BadRun,
    BadConfig."""
    try:
        fit(msgspec.to_builtins(asked.config), OrchestraConfig, "config")
        if asked.plan is not None:
            fit(msgspec.to_builtins(asked.plan), PlanText, "plan")
    except Misfit as misfit:
        raise BadRun(misfit.message, misfit.hint) from misfit
    config = normalized(asked.config, workspace)
    check_paths(config, workspace, asked.run_id)
    programs = programs_of(config, workspace, asked.search)
    return msgspec.structs.replace(asked, config=config, programs=programs, form=2)


def programs_of(config: OrchestraConfig, workspace: Path, search: Sequence[str]) -> list[Program]:
    """The programs of the whitelist that are found here."""
    root = os.path.realpath(workspace)
    return found(config.whitelist_tools, root, search[:SEARCH_MAX], absolute(root, config.security.fs.allow_read))


def _checked_fields(options: RunOptions) -> _Checked:
    for text, what in ((options.intent, "INTENT"), (options.out or "", "--out")):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BadRun(f"{what} is not text in the locale's encoding", "write it in UTF-8") from None
        if "\0" in text:
            raise BadRun(f"{what} holds a NUL", "give text")
    try:
        return fit({"intent": options.intent, "replan": options.replan}, _Checked)
    except Misfit as misfit:
        flag = "--" if misfit.message.startswith("replan ") else ""
        raise BadRun(f"{flag}{misfit.message}", misfit.hint) from misfit


def _effective(options: RunOptions, workspace: Path) -> OrchestraConfig:
    source = options.config if options.config is not None else of_workspace(workspace)
    config = DEFAULTS if source is None else read_config(source.content, source.where)
    flags = Flags(concurrency=options.concurrency, retries=options.retries, out=options.out)
    try:
        return normalized(effective(config, flags), workspace)
    except BadConfig as error:
        if source is None or error.message.startswith("--"):
            raise
        raise BadConfig(f"{source.where}: {error.message}", error.hint) from error


def of_workspace(workspace: Path) -> Source | None:
    """The workspace's own configuration; None where there is none. One that cannot be read is not passed over; an empty
    folder is none: it keeps the place while a task that may write the workspace runs, and where one was killed."""
    path = workspace / FILE
    if not os.path.lexists(path) or _is_empty_folder(path):
        return None
    try:
        with path.open("rb") as file:
            return Source(FILE, file.read(BYTES_READ_MAX))
    except OSError as error:
        why = error.strerror or errno.errorcode.get(error.errno or 0, "it cannot be read")
        raise BadConfig(f"{FILE}: {why}", "mend or remove it, or name another with --config") from error


def _is_empty_folder(path: Path) -> bool:
    try:
        return not os.path.islink(path) and not os.listdir(path)
    except OSError:  # no folder, or one that is not ours to look into
        return False


BYTES_READ_MAX: Final = 1 << 20
"""More than a configuration may have, so that one that is too large is refused as such."""
