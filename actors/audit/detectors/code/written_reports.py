"""Files that the code writes a report to; pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from pmagent.actors.audit.detectors.code.excerpts import found
from pmagent.actors.audit.detectors.code.names import argument, called, calls_of, last_name
from pmagent.actors.audit.detectors.code.scopes import Module, Site
from pmagent.actors.audit.detectors.code.strings import with_holes
from pmagent.contracts.audit_facts import Finding

_OPENING: Final = frozenset({"builtins.open", "io.open", "aiofiles.open", "codecs.open"})
_MARKDOWN: Final = re.compile(r"\.(?:md|markdown)\b", re.IGNORECASE)
_DATA: Final = re.compile(r"\.(?:json|html|txt)\b", re.IGNORECASE)
_REPORT: Final = re.compile(r"report|markdown|summary|verdict|(?:^|_)md(?:_|$)", re.IGNORECASE)


def reports(module: Module) -> Iterator[Finding]:
    """Files that are written: Markdown by their name 0.9, another format of a report 0.7, by a word only 0.6."""
    for call, site in calls_of(module, ("write_text", "open")):
        target, what = _written(module, call, site)
        if target is None:
            continue
        path = with_holes(module, target, site.scope) or _text(target, site)
        words = [path, *_identifiers(target), *(_identifiers(what) if what is not None else [])]
        words += [getattr(site.scope.function, "name", "")]
        report = any(_REPORT.search(word) for word in words)
        if _MARKDOWN.search(path):
            sure, says = 0.9, "a Markdown file is written"
        elif report and _DATA.search(path):
            sure, says = 0.7, "a report is written to a file"
        elif report and any(re.search("markdown|report|(?:^|_)md$", word, re.IGNORECASE) for word in words):
            sure, says = 0.6, "what is called a report is written to a file"
        else:
            continue
        yield found("justice.report_file", module, site, says=says, confidence=sure, lines=4)


def _written(module: Module, call: ast.Call, site: Site) -> tuple[ast.expr | None, ast.expr | None]:
    """The path that a call opens for writing, and what it writes, where that is said."""
    match call.func:
        case ast.Attribute(value=owner, attr="write_text"):
            return owner, argument(call, 0, "data")
        case ast.Attribute(value=owner, attr="open") if _for_writing(argument(call, 0, "mode")):
            return owner, None
    if not call.args or called(module, call, site) not in _OPENING:
        return None, None
    return (call.args[0] if _for_writing(argument(call, 1, "mode")) else None), None


def _for_writing(mode: ast.expr | None) -> bool:
    return isinstance(mode, ast.Constant) and isinstance(mode.value, str) and bool(set(mode.value) & set("wxa"))


def _text(target: ast.expr, site: Site) -> str:
    """The literal parts of a path that is put together: ``out / f"{slug}.md"``."""
    parts: list[str] = []
    for number, node in enumerate(ast.walk(target)):
        if number > 60:
            break
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            parts.append(node.value)
        elif isinstance(node, ast.Name):
            found = site.scope.lookup(node.id)
            value = found[1][-1].value if found is not None else None
            if value is not None and found is not None:
                parts.extend(
                    one.value
                    for one in list(ast.walk(value))[:40]
                    if isinstance(one, ast.Constant) and isinstance(one.value, str)
                )
    return " ".join(parts)


def _identifiers(expression: ast.expr) -> list[str]:
    names = [last_name(node) for node in list(ast.walk(expression))[:40] if isinstance(node, ast.Name | ast.Attribute)]
    return [name for name in names if name]
