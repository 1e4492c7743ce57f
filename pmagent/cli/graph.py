"""``pmagent graph lint``: faults in the graphs of a LangGraph program, found in its source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pmagent.cli.frame import App, command, format_option
from pmagent.cli.inputs import BadInput
from pmagent.cli.output import Styled
from pmagent.exitcodes import Exit

if TYPE_CHECKING:
    from pmagent.actors.audit.sources.repository.graph_child import GraphAnswer
    from pmagent.contracts.audit_facts import GraphFault

_COLOURS = {"error": "red", "warning": "yellow", "note": "blue"}


@command(
    "pmagent graph lint .", "pmagent graph lint . --format sarif",
    format=format_option(more={"sarif": "SARIF 2.1.0, for code hosts and editors"}),
)
@click.argument("path", metavar="[PATH]", default=".")
@click.option("--notes", is_flag=True, help="Also notes: functions that do nothing, or always return the same.")
def lint(app: App, path: str, notes: bool, format: str) -> int:
    """Find faults in the LangGraph graphs below PATH, a folder or a Python file: nodes that no path reaches, cycles
    without a way to END, routes that the map lacks, keys that the state does not declare, parallel writes without a
    reducer.

    The program is read, never run or imported, in a process with limits and without a network. A graph that cannot be
    read whole is not accused of what may stand in the rest; `not read` names it. Needs no workspace. Exit 0: no errors
    and no warnings. Exit 1: there are some. Exit 2: PATH cannot be read."""
    import msgspec

    from pmagent.actors.audit.failures import SourceFailed
    from pmagent.actors.audit.graphs.faults import RULES
    from pmagent.actors.audit.sources.repository.repo_tools import read_graphs
    from pmagent.audit.sarif import SarifResult, SarifRule, sarif

    given = Path(path)
    if not given.exists():
        raise BadInput(f"{path}: no such file or folder", "name a folder or a Python file")
    if not given.is_dir() and given.suffix not in (".py", ".ipynb"):
        raise BadInput(f"{path} is no Python file", "name a folder, a .py file or a notebook")
    folder = given if given.is_dir() else given.resolve().parent
    try:
        answer = read_graphs(str(folder))
    except SourceFailed as failed:
        raise BadInput(f"{path}: {failed.message}", failed.hint) from failed
    own = [one for one in answer.faults if given.is_dir() or one.path == given.name]
    faults = [one for one in own if notes or one.severity != "note"]
    if format == "sarif":
        rules = {
            name: SarifRule(rule.severity, rule.title, f"{rule.consequence}. {rule.fix[0].upper()}{rule.fix[1:]}.")
            for name, rule in RULES.items()
        }
        app.output.document(
            sarif(rules, (SarifResult(one.rule, one.severity, one.text, one.path, one.line) for one in faults))
        )
    elif format == "json":
        unread = {f"{graph.path}:{graph.line}": graph.unresolved for graph in answer.graphs if graph.unresolved}
        app.output.document({
            "graphs": len(answer.graphs), "faults": msgspec.to_builtins(faults), "unresolved": unread,
            "unparsed": msgspec.to_builtins(answer.unparsed),
        })  # fmt: skip
    else:
        _screen(app, faults, answer)
    return Exit.NO if any(one.severity != "note" for one in faults) else Exit.DONE


def _screen(app: App, faults: list[GraphFault], answer: GraphAnswer) -> None:
    from pmagent.actors.audit.graphs.faults import RULES

    for one in faults:
        app.output.line(
            f"{one.path}:{one.line}: ", Styled(one.severity, _COLOURS[one.severity]), f" {one.text} [{one.rule}]"
        )
        app.output.line(f"    {RULES[one.rule].consequence}; {RULES[one.rule].fix}")
    counted = [f"{sum(one.severity == level for one in faults)} {level}s" for level in ("error", "warning")]
    app.output.line(f"{len(answer.graphs)} graphs, {', '.join(counted)}")
    for graph in answer.graphs:
        if graph.unresolved:
            app.output.line(f"not read: {graph.path}:{graph.line}: {'; '.join(graph.unresolved[:3])}")
    for unparsed in answer.unparsed:
        app.output.line(f"not read: {unparsed.path}:{unparsed.line}: {unparsed.reason}")
