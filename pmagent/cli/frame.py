"""The frame of every command: the shared options, the example in its help, and the object that carries them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from pmagent.cli.output import Output, Piece, Styled

if TYPE_CHECKING:
    from pmagent.service.liveness import Liveness
    from pmagent.workspace.layout import Layout
    from pmagent.workspace.settings import Resolved

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]

FORMATS: Final = ("text", "json")
FORMAT: Final = "PMAGENT_FORMAT"
"""The variable that chooses the format where no option does."""
CONTEXT: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"], "max_content_width": 120}


def options(*given: Decorator) -> Decorator:
    """A decorator that gives a command all of these options, in this order."""

    def decorated(command: Any) -> Any:
        for option in reversed(given):
            command = option(command)
        return command

    return decorated


class App:
    """One run of the command line: the writer, the shared options, and the settings (looked up when asked for)."""

    def __init__(self, output: Output, environ: Mapping[str, str]) -> None:
        self.output = output
        self.environ = environ
        self.workspace_flag: str | None = None
        self.debug = False
        self.json = False
        self.pager = True
        """Whether long text may go to a pager."""
        self.trusting = False
        """Whether --trust-workspace was given: the configuration as it lies there is accepted."""
        self._resolved: Resolved | None = None
        self._daemon: Liveness | None = None

    @property
    def resolved(self) -> Resolved:
        """The settings and where each came from. Raises ConfigError."""
        if self._resolved is None:
            from pmagent.workspace.settings import resolve

            self._resolved = resolve(self.workspace_flag, self.environ)
            self.output.set_color(self._resolved.settings.cli.color)
        return self._resolved

    @property
    def workspace(self) -> Path:
        """The workspace, absolute: flag, ``PMAGENT_WORKSPACE``, or found from the current directory upwards."""
        return self.resolved.workspace

    @property
    def layout(self) -> Layout:
        """Where things lie in the workspace."""
        from pmagent.workspace.layout import Layout

        return Layout(self.workspace)

    def daemon_news(self, *, done: bool = False) -> list[list[Piece]]:
        """Say that the daemon does not answer, has gone, or is back, each once, in a line. Waits for nothing; behind a
        command that is ``done``, until it is known whether it answers."""
        if self._daemon is None:
            from pmagent.service.liveness import Liveness
            from pmagent.workspace.layout import Layout
            from pmagent.workspace.settings import workspace_of

            self._daemon = Liveness(Layout(workspace_of(self.workspace_flag, self.environ)))
        if self._daemon.look(wait=done) and (self._daemon.state == "silent" or not done):
            return [[Styled("note:", "yellow"), f" {self._daemon.text}"]]
        return []

    @contextmanager
    def asking(self) -> Iterator[None]:
        """A command, at whose end the daemon is not asked any more."""
        try:
            yield
        finally:
            if self._daemon is not None:
                self._daemon.close()

    def note_daemon(self, *, done: bool = False) -> None:
        """Note ``daemon_news``."""
        for line in self.daemon_news(done=done):
            self.output.note(*line)


pass_app = click.make_pass_decorator(App)


def shared_options() -> list[click.Parameter]:
    """``--workspace`` and ``--debug``, before the command's name or behind it."""
    return [
        click.Option(
            ["--workspace"], metavar="DIR", expose_value=False, callback=_set_workspace,
            help="The workspace [default: PMAGENT_WORKSPACE, else the one around the current directory].",
        ),
        click.Option(
            ["--debug"], is_flag=True, expose_value=False, callback=_set_debug, help="Show the traceback of an error.",
        ),
        click.Option(
            ["--utc"], is_flag=True, expose_value=False, callback=_set_utc,
            help="Show times in UTC on a terminal, too.",
        ),
        click.Option(
            ["--trust-workspace"], is_flag=True, expose_value=False, callback=_set_trusting,
            help="Accept the workspace's configuration as it is (see pmagent trust).",
        ),
        click.Option(
            ["--no-pager"], is_flag=True, expose_value=False, hidden=True, callback=_set_no_pager,
            help="Show long text without a pager.",
        ),
    ]


def _set_workspace(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.ensure_object(App).workspace_flag = value


def _set_debug(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(App).debug = True


def _set_utc(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(App).output.utc = True


def _set_trusting(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(App).trusting = True


def _set_no_pager(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(App).pager = False


def _show_help(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.ensure_object(App).output.block(ctx.get_help())
        ctx.exit()


class _Helped(click.Command):
    """A command whose help leaves through the one writer."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:  # noqa: ARG002 - click's signature
        """``-h`` and ``--help``, whoever asks first: the option is made once."""
        if self._help_option is None:
            self._help_option = click.Option(
                list(CONTEXT["help_option_names"]), is_flag=True, is_eager=True, expose_value=False,
                callback=_show_help, help="Show this text and exit.",
            )
        return self._help_option


class Command(_Helped):
    """A command whose help begins with a runnable example."""

    def __init__(
        self, *args: Any, example: Sequence[str] | str, options: Sequence[Decorator] = (), reads: bool = False,
        **kwargs: Any
    ) -> None:
        kwargs.setdefault("context_settings", CONTEXT)
        super().__init__(*args, **kwargs)
        self.examples = [example] if isinstance(example, str) else list(example)
        self._reads = reads
        for option in options:
            option(self)
        self.params.extend(shared_options())

    def invoke(self, ctx: click.Context) -> Any:
        """Accept first, where --trust-workspace was given: the command has looked at nothing yet. Behind a command that
        ``reads`` what a daemon writes, and asks it nothing, say where that does not answer."""
        app = ctx.find_object(App)
        if app is not None and app.trusting:
            from pmagent.cli.trust_prompt import accept_as_is

            accept_as_is(app.workspace.resolve(), app.output)
        if app is None:
            return super().invoke(ctx)
        with app.asking():
            code = super().invoke(ctx)
            if self._reads:
                app.note_daemon(done=True)
            return code

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Example first, then the usual."""
        with formatter.section("Example"):
            formatter.write("".join(f"  $ {example}\n" for example in self.examples))
        formatter.write_paragraph()
        super().format_help(ctx, formatter)


class Entry:
    """A command that is not imported yet: where it is (``module:attribute``), and its line in the list."""

    def __init__(self, place: str, text: str, *, hidden: bool = False) -> None:
        self.place = place
        self.text = text
        self.hidden = hidden


class Group(_Helped, click.Group):
    """A group that imports a command when it is called. ``entries`` in the order of its help; one of two words stands
    beside a command of the first, which is no group. ``text``: its own line in a list; ``aliases``: names that other
    tools have taught -> the words that they stand for."""

    def __init__(
        self, *args: Any, entries: Mapping[str, Entry | Group], text: str = "",
        aliases: Mapping[str, Sequence[str]] = MappingProxyType({}), **kwargs: Any,
    ) -> None:  # fmt: skip
        kwargs.setdefault("context_settings", CONTEXT)
        super().__init__(*args, **kwargs)
        self.entries = entries
        self.aliases = aliases
        self.text = text
        self.params.extend(shared_options())

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Names, in order; those of one word, which a shell can complete."""
        return [name for name in self.entries if " " not in name]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import it."""
        entry = self.entries.get(cmd_name)
        if entry is None or isinstance(entry, Group):
            return entry
        module, name = entry.place.split(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command), entry.place
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command named first, or a usage error that names the nearest."""
        args = [*self.aliases.get(args[0], args[:1]), *args[1:]]
        if " ".join(args[:2]) in self.entries:
            args = [" ".join(args[:2]), *args[2:]]
        if args[0] not in self.entries and not args[0].startswith("-"):
            meant = [name for name in (_MEANT.get(args[0], ""),) if name in self.entries]
            near = meant or get_close_matches(args[0], self.entries, 1)
            hint = f"did you mean {near[0]}?" if near else f"commands: {', '.join(self.entries)}"
            raise click.UsageError(f"there is no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """The list, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.text) for name, entry in self.entries.items() if not entry.hidden])


_MEANT: Final = {"start": "up", "stop": "down", "config": "doctor", "check": "doctor", "clean": "prune", "gc": "prune"}
"""Names that other programs use -> a command of ours that is not spelled alike."""


_REQUEST: Final = click.option(
    "--request", metavar="ID", help="Repeat the request ID whose outcome is not known: it is carried out once at most."
)
_OPERATOR: Final = click.option(
    "--operator", metavar="NAME",
    help="Your name as operator [default: the setting pla.operator, else the login name].",
)


def same_request(request: str | None) -> dict[str, str]:
    """The arguments of an operation that ``--request`` stands for. Raises UsageError."""
    if request is None:
        return {}
    if not request.isascii() or not request.isprintable():
        raise click.UsageError("--request is no request's id: take it from the error that named it")
    return {"request": request}


_JSON: Final = "pmagent.json"


def _ask_for_json(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    ctx.meta[_JSON] = value


def format_option(
    default: str = "text", *, lines: bool = False, seen: str = "", more: Mapping[str, str] = MappingProxyType({})
) -> Callable[[F], F]:
    """``--format text|json``; ``lines`` for commands that print one JSON object a line. ``seen``: the default on a
    terminal, where it is another. ``more``: further formats, each with its help. Given as ``format``."""
    what = "one stored event a line" if lines else "one document"

    def chosen(ctx: click.Context, param: click.Parameter, value: str | None) -> str:
        if value is not None:
            return value
        if ctx.meta.get(_JSON):
            return "json"
        app = ctx.find_object(App)
        named = app.environ.get(FORMAT, "") if app is not None else ""
        if named not in ("", *FORMATS):
            raise click.BadParameter(f"{named!r} is not one of {', '.join(FORMATS)}", ctx, param, FORMAT)
        on_terminal = seen and app is not None and app.output.is_seen
        return named or (seen if on_terminal else default)

    others = "".join(f"{name}: {meaning}. " for name, meaning in more.items())

    def decorated(command: F) -> F:
        both = click.option(
            "-o", "--format", type=click.Choice((*FORMATS, *more)), callback=chosen,
            help=f"text: for people. json: {what} on stdout, and nothing else; also --json. {others}"
            f"[default: {FORMAT}, else {default}{f'; on a terminal {seen}' if seen else ''}]",
        )
        short = click.option(
            "--json", is_flag=True, is_eager=True, hidden=True, expose_value=False, callback=_ask_for_json,
            help="The same as --format json.",
        )
        return both(short(command))

    return decorated


_TEXT_OR_JSON: Final = format_option()


def command(
    *example: str, name: str | None = None, cls: type[Command] = Command, operator: bool = False,
    request: bool = False, format: Decorator | None = _TEXT_OR_JSON, reads: bool = False,
) -> Callable[[Callable[..., int | None]], click.Command]:
    """A command of a function that takes ``app``, its own arguments and options, and those that many commands have:
    ``--operator``, ``--request`` and ``--format``. ``example``: what its help begins with; ``reads``: it shows what a
    daemon writes, and asks it nothing."""
    own = (_OPERATOR if operator else None), (_REQUEST if request else None), format
    shared = [option for option in own if option is not None]

    def made(function: Callable[..., int | None]) -> click.Command:
        return click.command(name, cls=cls, example=example, options=shared, reads=reads)(pass_app(function))

    return made
