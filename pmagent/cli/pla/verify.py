"""``pmagent pla verify-log``: session logs, line by line (docs/design.md §16.8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pmagent.cli.frame import App, command
from pmagent.cli.output import Output, Styled
from pmagent.exitcodes import Exit


@command("pmagent pla verify-log", "pmagent pla verify-log --format json", name="verify-log", reads=True)
@click.argument("paths", type=click.Path(exists=True, dir_okay=False, path_type=Path), nargs=-1, metavar="[PATH...]")
@click.option("--alone", is_flag=True, help="Check the files by themselves, not against the workspace's log.")
def verify_log(app: App, paths: tuple[Path, ...], alone: bool, format: str) -> int:
    """Check session logs: every entry's shape, checksum and place in the chain, and their equality with the workspace's
    log (only that shows that an end was cut off). Without PATH, check all of this workspace's.

    Exit 0: they are intact. Exit 4: one is not; its first bad line is named."""
    import msgspec

    from pmagent.pla.verifying import verify_alone, verify_session_log, verify_with_log, verify_workspace
    from pmagent.workspace.presence import require_workspace

    if paths:
        found = [(path, verify_session_log(path) if alone else verify_with_log(app.workspace, path)) for path in paths]
    elif alone:
        found = [*verify_alone(app.workspace)]
        if not found:
            require_workspace(app.workspace)
    elif app.layout.store.exists() or app.layout.log.is_dir() or any((app.workspace / "sessions").glob("*.jsonl")):
        found = [*verify_workspace(app.workspace)]  # also what was removed
    else:
        require_workspace(app.workspace)
        found = []
    verdicts: list[dict[str, Any]] = [{"path": str(path), **msgspec.structs.asdict(one)} for path, one in found]
    ok = all(verdict["ok"] for verdict in verdicts)
    app.output.answer(format, {"ok": ok, "logs": verdicts}, lambda: _screen(app.output, verdicts))
    return Exit.DONE if ok else Exit.CORRUPT


def _screen(output: Output, verdicts: list[dict[str, Any]]) -> None:
    if not verdicts:
        output.line("no session logs yet: a session begins with pmagent pla mode SUGGEST")
    for verdict in verdicts:
        if verdict["ok"]:
            how = "and equal to the log" if verdict["compared"] else "by itself"
            count = verdict["entries"]
            entries = f"{count} entr{'y' if count == 1 else 'ies'}"
            output.line(Styled("✓ intact", "green"), f": {verdict['path']}: {entries}, {how}")
            output.line(Styled(f"  checksum  {verdict['checksum']}", "dim"))
        elif verdict["code"] == "unreadable":  # the reason names it
            output.line(Styled("✗ not judged", "red"), f": {verdict['reason']}")
            output.note(Styled("hint:", "cyan"), f" {verdict['mend']}")
        else:
            where = f"{verdict['path']}, line {verdict['line']}"
            output.line(Styled("✗ not intact", "red"), f": {where}: {verdict['reason']}")
            output.note(Styled("hint:", "cyan"), f" {verdict['mend']}")
