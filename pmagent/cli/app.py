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

from pmagent import __version__
from pmagent.cli.frame import FORMAT, App, Entry, Group
from pmagent.cli.output import Output, PipeClosed, Styled, Unwritten
from pmagent.edge import Command
from pmagent.edges import EDGES
from pmagent.events.errors import FULL, PmagentError
from pmagent.exitcodes import Exit, kind
from pmagent.service.remarks import heard_by

_LOG = Group(
    "log", help="Look at the log: every event, in order, and why.",
    entries={
        "tail": Entry("pmagent.cli.log.tail:tail", "the latest events, or follow live"),
        "show": Entry("pmagent.cli.log.show:show", "one event, its causes, its consequences"),
        "why": Entry("pmagent.cli.log.why:why", "the tree of causes and consequences"),
        "verify": Entry("pmagent.cli.log.verify:verify", "check every byte of the log"),
        "export": Entry("pmagent.cli.log.export:export", "the lines as they are stored"),
        "stat": Entry("pmagent.cli.log.stat:stat", "counts, sizes, rates"),
        "list": Entry("pmagent.cli.log.list:list_logs", "all logs of a database, and who holds them"),
        "copy": Entry("pmagent.cli.log.copy:copy", "move a log to another folder or database, or back it up"),
        "prepare": Entry("pmagent.cli.log.prepare:prepare", "prepare a PostgreSQL database for logs"),
        "accept-restore": Entry(
            "pmagent.cli.log.adopt:accept_restore", "go on with a log that lost events; what is open ends"
        ),
        "adopt": Entry("pmagent.cli.log.adopt:adopt", "take a log from elsewhere for your own; what is open ends"),
    },
    aliases={"grep": ["tail", "-n", "all", "--grep"]},
)
_SERVICE = Group(
    "service", help="Keep the daemon of this workspace running by systemd's user manager.",
    entries={
        "install": Entry("pmagent.cli.daemon:service_install", "write its unit"),
        "show": Entry("pmagent.cli.daemon:service_show", "print its unit"),
    },
)
_OPERATORS = Group("operators", help="The operators of the console, and their roles.", entries={
    "add": Entry("pmagent.cli.console:add", "let somebody in, with a secret"),
    "list": Entry("pmagent.cli.console:listing", "names, roles"),
    "role": Entry("pmagent.cli.console:role", "view or approve"),
    "secret": Entry("pmagent.cli.console:secret", "another secret, or none"),
    "passkeys": Entry("pmagent.cli.console:passkeys", "an operator's passkeys; remove one"),
    "remove": Entry("pmagent.cli.console:remove", "let somebody in no more"),
})


def _of_areas() -> dict[str, Entry | Group]:
    made: dict[str, Entry | Group] = {}
    for name, command in ((name, command) for edge in EDGES for name, command in edge.commands.items()):
        if isinstance(command, Command):
            made[name] = Entry(*command)
        else:
            entries = {one: Entry(*entry) for one, entry in command.entries.items()}
            made[name] = Group(name, text=command.text, help=command.help, entries=entries)
    return made


program = Group(
    "pmagent", help="Runs AI agents, and a lab machine's keyboard and mouse, under control: one log, permits, replay.",
    epilog="pmagent help TOPIC: exit-codes, environment, formatting, plans, times, vocabulary.",
    entries={
        "init": Entry("pmagent.cli.workspace:init", "make this git repository a workspace"),
        "trust": Entry("pmagent.cli.trust:trust", "accept what the workspace's configuration lets be done"),
        "up": Entry("pmagent.cli.daemon:up", "run the daemon, in the foreground, or detached"),
        "down": Entry("pmagent.cli.daemon:down", "stop the daemon in order"),
        "restart": Entry("pmagent.cli.daemon:restart", "stop the daemon, and start it in the background"),
        "service": Entry("pmagent.cli.app:_SERVICE", "keep the daemon running by systemd"),
        "status": Entry("pmagent.cli.daemon:status", "daemon, mode, sessions, log: at a glance"),
        "console": Entry("pmagent.cli.console:console", "the one-time address of the page to watch and approve on"),
        "operators": Entry("pmagent.cli.app:_OPERATORS", "who may enter the console"),
        "doctor": Entry("pmagent.cli.doctor:doctor", "check installation, workspace, settings, log"),
        **_of_areas(),
        "pause": Entry("pmagent.cli.control:pause", "let nothing new start, and disarm: the stop switch"),
        "resume": Entry("pmagent.cli.control:resume", "let what is permitted start again"),
        "cancel": Entry("pmagent.cli.cancel:cancel", "end a run or an audit, in order"),
        "log": Entry("pmagent.cli.app:_LOG", "look at the log"),
        "replay": Entry("pmagent.cli.replay:replay", "decide all again, compare with the log"),
        "rebuild": Entry("pmagent.cli.replay:rebuild", "write the documents anew from the log"),
        "diff": Entry("pmagent.cli.compare:diff", "compare two logs"),
        "sim": Entry("pmagent.cli.sim:sim", "simulate: one seed, one history"),
        "help": Entry("pmagent.cli.help:help_command", "explain a topic or a command"),
        "completion": Entry("pmagent.cli.shell:completion", "the shell's completion script"),
        "version": Entry("pmagent.cli.help:version", "show the version", hidden=True),
        "lnav": Entry("pmagent.cli.shell:lnav", "the format file for the log viewer lnav"),
    },
    aliases={"ps": ["runs"], "ls": ["runs"], "list": ["runs"]},
)


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(App).output.line(f"pmagent {__version__}")
        ctx.exit()


program.params.append(click.Option(
    ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=_print_version,
    help="Show the version and exit.",
))


def run(
    argv: Sequence[str] | None = None, output: Output | None = None, environ: Mapping[str, str] = os.environ
) -> int:
    """Run one command line; returns its exit code. Every error ends here."""
    if "_PMAGENT_COMPLETE" in environ:
        return _complete()
    arguments = list(sys.argv[1:] if argv is None else argv)
    app = App(output or Output.standard(), environ)
    app.json = _wants_json(arguments, environ)
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
        from pmagent.cli.trust_prompt import ask_to_accept

        if not ask_to_accept(app.workspace.resolve(), app.output, error):
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


def _wants_json(arguments: list[str], environ: Mapping[str, str]) -> bool:
    """Whether a program is listening; asked before the arguments are understood, for their errors go to it too."""
    given = [two for one, two in pairwise([*arguments, ""]) if one in ("-o", "--format")]
    given += [one.partition("=")[2] for one in arguments if one.startswith("--format=")]
    return bool({"--json", "-ojson"} & {*arguments}) or "json" in given or (not given and environ.get(FORMAT) == "json")


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
        code = Exit.DISK_FULL if error.errno in FULL else Exit.NO
        return code, f"{error.strerror}{named}", "pmagent doctor looks at permissions and space"
    what = f"a bug in pmagent: {type(error).__name__}{_place(error)}"
    return Exit.BUG, what, "run it again with --debug, and report it"


def _place(error: BaseException) -> str:
    """Where it was raised; an error's own text may hold anything, so it is shown only with --debug."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
