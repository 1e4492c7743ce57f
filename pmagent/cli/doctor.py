"""``pmagent doctor``: everything that can be wrong around us, each with what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import click

from pmagent.cli.frame import App, command
from pmagent.cli.output import Output, Styled
from pmagent.exitcodes import Exit


@command("pmagent doctor", "pmagent doctor --settings", "pmagent doctor --format json")
@click.option("--settings", "with_settings", is_flag=True,
              help="Also each setting, and where it comes from; JSON always has them.")
def doctor(app: App, with_settings: bool, format: str) -> int:
    """Check installation, workspace, settings, surfaces, log, daemon, permissions, operators, disk, clock, programs.

    Exit 1 when a check fails; warnings alone are no failure."""
    from pmagent.cli.checks import all_checks

    checks = all_checks(app.workspace_flag, app.environ, app.output.note)
    settings = _settings(app.workspace_flag, app.environ)
    failed = any(check.state == "fail" for check in checks)
    if format == "json":
        app.output.document({"ok": not failed, "checks": checks, "settings": settings})
    else:
        for check in checks:
            _check_line(app.output, check.state, check.name, check.text, check.remedy)
        if with_settings:
            app.output.line("")
            app.output.line(Styled("settings", "bold"))
        for setting in settings if with_settings else ():
            app.output.line(f"  {setting['key']:<30} {setting['value']}", Styled(f"  ({setting['origin']})", "dim"))
    return Exit.NO if failed else Exit.DONE


def _settings(flag: str | None, environ: Mapping[str, str]) -> list[dict[str, object]]:
    """Each setting with its value and where it came from; [] when they are not understood."""
    from pmagent.workspace.settings import resolve
    from pmagent.workspace.settings_programs import ConfigError

    try:
        resolved = resolve(flag, environ)
    except ConfigError:
        return []
    return [{"key": key, "value": value, "origin": origin} for key, (value, origin) in resolved.origins.items()]


_MARKS: dict[str, Callable[[], Styled]] = {
    "ok": lambda: Styled("✓ ok  ", "green"),
    "warn": lambda: Styled("! warn", "yellow"),
    "fail": lambda: Styled("✗ fail", "red"),
}


def _check_line(output: Output, state: str, name: str, text: str, remedy: str) -> None:
    output.line(_MARKS[state](), f"  {name:<12} {text}")
    if remedy:
        output.line(Styled(f"                      → {remedy}", "cyan"))
