"""The program: its commands, and how each way of ending becomes an exit code and a message
(docs/design.md §11.4, §11.5)."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import click

from events.errors import PmagentError
from pmagent import __version__
from pmagent.cli.frame import App, Entry, Group
from pmagent.cli.output import Output, PipeClosed, Styled, Unwritten
from pmagent.exitcodes import Exit, kind
from pmagent.remarks import heard_by

_LOG = Group(
    "log",
    help="Look at the log: what happened, in order, and why.",
    entries={
        "tail": Entry("pmagent.cli.log.tail:tail", "the latest events, or follow live"),
        "show": Entry("pmagent.cli.log.show:show", "one event, its causes, its consequences"),
        "why": Entry("pmagent.cli.log.why:why", "the tree of causes and consequences"),
        "verify": Entry("pmagent.cli.log.verify:verify", "check every byte of the log"),
        "export": Entry("pmagent.cli.log.export:export", "the lines as they are stored"),
        "stat": Entry("pmagent.cli.log.stat:stat", "counts, sizes, rates"),
        "adopt": Entry("pmagent.cli.log.adopt:adopt", "take a log from elsewhere for your own; what is open ends"),
    },
)
_OA = Group(
    "oa",
    help="The orchestrator assistant: its state, its guards, its reasoning.",
    entries={
        "snapshot": Entry("pmagent.cli.oa:snapshot", "read the surfaces, write STATE.json"),
        "guard": Entry("pmagent.cli.oa:guard", "run a guard; one JSON report"),
        "decision": Entry("pmagent.cli.oa_reasoning:decision", "ask whether an action is safe now"),
        "generate": Entry("pmagent.cli.oa_reasoning:generate", "generate an OPS block for a goal"),
        "interpret": Entry("pmagent.cli.oa_reasoning:interpret", "explain why a guard failed"),
        "transition": Entry("pmagent.cli.oa_reasoning:transition", "ask whether a phase may begin"),
        "context": Entry("pmagent.cli.oa_context:context", "show or write the task context"),
    },
)
_BOOT = Group("boot", help="Boot a session.", entries={"oa": Entry("pmagent.cli.oa:boot", "boot an OA session")})
_KERNEL = Group(
    "kernel",
    help="The kernel surfaces of this workspace.",
    entries={"refresh": Entry("pmagent.cli.workspace:refresh", "recompute and write the surfaces")},
)
_PLA = Group(
    "pla",
    help="The portable lab assistant: types on a machine what an operator has approved, and nothing else.",
    entries={
        "status": Entry("pmagent.cli.pla.looking:status", "mode, session, device, open proposal"),
        "mode": Entry("pmagent.cli.pla.session:mode", "OBSERVE, SUGGEST or EXECUTE"),
        "observe": Entry("pmagent.cli.pla.session:observe", "look at the newest frame"),
        "propose": Entry("pmagent.cli.pla.proposing:propose", "ask for a proposal"),
        "list": Entry("pmagent.cli.pla.looking:listing", "the newest proposals"),
        "show": Entry("pmagent.cli.pla.looking:show", "exactly what would be typed"),
        "approve": Entry("pmagent.cli.pla.deciding:approve", "approve it, once, for those bytes"),
        "reject": Entry("pmagent.cli.pla.deciding:reject", "reject it, with a reason"),
        "arm": Entry("pmagent.cli.pla.device:arm", "let the device type what is approved"),
        "disarm": Entry("pmagent.cli.pla.device:disarm", "end what it types"),
        "device": Entry("pmagent.cli.pla.port:device", "which devices there are, how ours stands"),
        "end": Entry("pmagent.cli.pla.session:end", "end the session"),
        "verify-log": Entry("pmagent.cli.pla.verify:verify_log", "check session logs"),
        "demo": Entry("pmagent.cli.pla.demo:demo", "a session on a device to try things with"),
    },
)
_CONTRACTS = Group(
    "contracts",
    help="The PLA's contracts: what proposals, decisions, executions, status and logs have to look like.",
    entries={
        "check": Entry("pmagent.cli.contracts:check", "hold documents against them"),
        "list": Entry("pmagent.cli.contracts:listing", "their names, version and hash"),
    },
)
_OPERATORS = Group(
    "operators",
    help="Who may enter the console, and as what.",
    entries={
        "add": Entry("pmagent.cli.console:add", "let somebody in, with a secret"),
        "list": Entry("pmagent.cli.console:listing", "names, roles"),
        "role": Entry("pmagent.cli.console:role", "view or approve"),
        "secret": Entry("pmagent.cli.console:secret", "another secret, or none"),
        "remove": Entry("pmagent.cli.console:remove", "let somebody in no more"),
    },
)
program = Group(
    "pmagent",
    help="Runs AI agents, and a lab machine's keyboard and mouse, under control: one log, permits, replay.",
    epilog="pmagent help TOPIC: exit-codes, environment, formatting, plans, times, vocabulary.",
    entries={
        "init": Entry("pmagent.cli.workspace:init", "make this git repository a workspace"),
        "trust": Entry("pmagent.cli.trust:trust", "accept what the workspace's configuration lets be done"),
        "up": Entry("pmagent.cli.daemon:up", "run the daemon, in the foreground"),
        "status": Entry("pmagent.cli.daemon:status", "daemon, mode, sessions, log: at a glance"),
        "console": Entry("pmagent.cli.console:console", "the one-time address of the page to watch and approve on"),
        "operators": Entry("pmagent.cli.app:_OPERATORS", "who may enter the console"),
        "doctor": Entry("pmagent.cli.doctor:doctor", "check installation, workspace, settings, log"),
        "kernel": Entry("pmagent.cli.app:_KERNEL", "recompute the kernel surfaces"),
        "run": Entry("pmagent.cli.run:run", "have a task done by tools in sandboxes"),
        "runs": Entry("pmagent.cli.jobs:runs", "the runs there were, or one of them"),
        "audit": Entry("pmagent.cli.audit:audit", "judge a repository and its report"),
        "audits": Entry("pmagent.cli.jobs:audits", "the audits there were, or one of them"),
        "pause": Entry("pmagent.cli.control:pause", "let nothing new start, and disarm: the stop switch"),
        "resume": Entry("pmagent.cli.control:resume", "let what is permitted start again"),
        "cancel": Entry("pmagent.cli.cancel:cancel", "end a run or an audit, in order"),
        "oa": Entry("pmagent.cli.app:_OA", "OA state, guards, reasoning"),
        "boot": Entry("pmagent.cli.app:_BOOT", "boot an OA session"),
        "pla": Entry("pmagent.cli.app:_PLA", "type on a machine what is approved"),
        "contracts": Entry("pmagent.cli.app:_CONTRACTS", "check documents against the PLA's contracts"),
        "log": Entry("pmagent.cli.app:_LOG", "look at the log"),
        "replay": Entry("pmagent.cli.replay:replay", "decide all again, compare with the log"),
        "rebuild": Entry("pmagent.cli.replay:rebuild", "write the documents anew from the log"),
        "diff": Entry("pmagent.cli.compare:diff", "compare two logs"),
        "sim": Entry("pmagent.cli.sim:sim", "simulate: one seed, one history"),
        "help": Entry("pmagent.cli.help:help_command", "explain a topic or a command"),
        "completion": Entry("pmagent.cli.shell:completion", "the shell's completion script"),
        "lnav": Entry("pmagent.cli.shell:lnav", "the format file for the log viewer lnav"),
    },
)


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(App).output.line(f"pmagent {__version__}")
        ctx.exit()


program.params.append(
    click.Option(
        ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=_print_version,
        help="Show the version and exit.",
    )
)


def run(
    argv: Sequence[str] | None = None, output: Output | None = None, environ: Mapping[str, str] = os.environ
) -> int:
    """Run one command line; returns its exit code. Every error ends here."""
    if "_PMAGENT_COMPLETE" in environ:
        return _complete()
    arguments = list(sys.argv[1:] if argv is None else argv)
    app = App(output or Output.standard(), environ)
    app.json = _wants_json(arguments)
    heard_by(app.output.note)
    try:
        code = _invoke(arguments, app)
        app.output.flush()
        return code
    except (PipeClosed, BrokenPipeError):
        app.output.abandon()
        return Exit.PIPE_CLOSED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Unwritten as error:
        app.output.abandon()
        app.json = False  # it is said on stderr
        return _report(error, app)
    except Exception as error:  # noqa: BLE001 - the last stop: whatever it is becomes a message and an exit code
        try:
            code = _report(error, app)
        except (PipeClosed, Unwritten):  # where nothing is buffered (PYTHONUNBUFFERED)
            app.output.abandon()
            return _report(error, app)  # on stderr alone: something was written, or tried
        try:
            app.output.flush()
        except (PipeClosed, Unwritten):
            app.output.abandon()
        return code


def _invoke(arguments: list[str], app: App) -> int:
    try:
        return _invoke_once(arguments, app)
    except PmagentError as error:
        if not _is_unaccepted(error):
            raise
        from pmagent.cli.trust import asked

        if not asked(app, error):
            raise
    return _invoke_once(arguments, app)


def _is_unaccepted(error: PmagentError) -> bool:
    """Whether nothing was begun because the configuration is not accepted, here or by the daemon."""
    return "NotAccepted" in (type(error).__name__, getattr(error, "kind", ""))


def _invoke_once(arguments: list[str], app: App) -> int:
    try:
        with program.make_context("pmagent", arguments or ["--help"], obj=app) as ctx:
            result = program.invoke(ctx)
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        app.output.block(error.format_message())
        return Exit.USAGE
    return result if isinstance(result, int) else Exit.DONE


def _complete() -> int:
    from click.shell_completion import shell_complete

    return shell_complete(program, {}, "pmagent", "_PMAGENT_COMPLETE", os.environ["_PMAGENT_COMPLETE"])


def _wants_json(arguments: list[str]) -> bool:
    """Whether a program is listening; asked before the arguments are understood, for their errors go to it too."""
    return "--format=json" in arguments or ("--format", "json") in pairwise(arguments)


def _report(error: BaseException, app: App) -> int:
    """Say what happened, where, and what to do next; returns the exit code."""
    if app.debug:
        for line in traceback.format_exception(error):
            for part in line.rstrip("\n").split("\n"):
                app.output.note(part)
    code, message, hint = _explain(error)
    if app.json and not app.output.wrote:
        facts = error.facts if isinstance(error, PmagentError) else {}
        app.output.document({"error": {"kind": kind(code), "message": message, "hint": hint, **facts}})
    app.output.note(Styled("error:", "red"), f" {message}")
    if hint:
        app.output.note(Styled("hint:", "cyan"), f" {hint}")
    return code


def _explain(error: BaseException) -> tuple[int, str, str]:
    if isinstance(error, PmagentError):
        return error.exit_code, error.message, error.hint
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else "pmagent"
        message = error.format_message().replace("\n\t", " ")  # click puts each choice on a line
        return Exit.USAGE, message, f"{where} --help"
    if isinstance(error, click.ClickException):
        return Exit.USAGE, error.format_message(), ""
    if isinstance(error, OSError) and error.strerror:
        named = f": {os.fsdecode(error.filename)}" if isinstance(error.filename, (str, bytes)) else ""
        return Exit.NO, f"{error.strerror}{named}", "pmagent doctor looks at permissions and space"
    what = f"a bug in pmagent: {type(error).__name__}{_place(error)}"
    return Exit.BUG, what, "run it again with --debug, and report it"


def _place(error: BaseException) -> str:
    """Where it was raised; an error's own text may hold anything, so it is shown only with --debug."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
