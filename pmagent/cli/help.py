"""``pmagent help``: topics, and the help of any command."""

from __future__ import annotations

from collections.abc import Sequence

import click

from pmagent import __version__
from pmagent.cli.frame import App, command
from pmagent.cli.topics import TOPICS
from pmagent.exitcodes import Exit


@command("pmagent help", "pmagent help exit-codes", "pmagent help log tail", name="help", format=None)
@click.argument("words", nargs=-1, metavar="[TOPIC | COMMAND...]")
def help_command(app: App, words: Sequence[str]) -> int:
    """Explain a topic, or a command."""
    if not words:
        for name, topic in TOPICS.items():
            app.output.line(f"  {name:<14} {topic.title}")
        app.output.line("")
        app.output.line("pmagent help TOPIC, or pmagent help COMMAND")
        return Exit.DONE
    if len(words) == 1 and words[0] in TOPICS:
        app.output.block(TOPICS[words[0]].text())
        return Exit.DONE
    app.output.block(_command_help(words, app))
    return Exit.DONE


@command("pmagent version", format=None)
def version(app: App) -> int:
    """Show the version."""
    app.output.line(f"pmagent {__version__}")
    return Exit.DONE


def _command_help(words: Sequence[str], app: App) -> str:
    from pmagent.cli.app import program

    command: click.Command = program
    context = click.Context(program, info_name="pmagent", obj=app)
    if " ".join(words[:2]) in program.entries:
        words = [" ".join(words[:2]), *words[2:]]
    for word in words:
        found = command.get_command(context, word) if isinstance(command, click.Group) else None
        if found is None:
            raise click.UsageError(f"there is no topic or command {' '.join(words)!r}; topics: {', '.join(TOPICS)}")
        context = click.Context(found, info_name=word, parent=context, obj=app)
        command = found
    return command.get_help(context)
