"""How a finding shows code: a few of its lines as they stand, bounded, secrets masked; pure."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable
from typing import Final

from pmagent.actors.audit.detectors.code.scopes import Function, Module, Site
from pmagent.contracts.audit_facts import CONTENT_CHARS_MAX, Finding
from pmagent.events.redact import Redactor

LINES_MAX: Final = 12
CHARS_MAX: Final = 600
_REDACTOR: Final = Redactor()


def excerpt(module: Module, node: ast.AST, lines: int = LINES_MAX, chars: int = CHARS_MAX) -> str:
    """The lines of a node, without their common indentation; of a longer one the beginning, then how much follows."""
    return clean(_lines(module, node, lines, chars))


def _lines(module: Module, node: ast.AST, lines: int, chars: int = CHARS_MAX) -> str:
    first = getattr(node, "lineno", 1)
    last = getattr(node, "end_lineno", None) or first
    if isinstance(node, Function | ast.ClassDef) and node.decorator_list:
        first = min(first, node.decorator_list[0].lineno)
    shown = module.lines[first - 1 : min(last, first - 1 + lines)]
    shown = [line[: chars + 1] for line in shown]  # a line of megabytes is not turned over again and again
    text = (shown[0].lstrip(" \t") if len(shown) == 1 else textwrap.dedent("\n".join(shown))).rstrip()
    more = last - first + 1 - len(shown)
    if len(text) > chars:
        text = text[:chars].rstrip() + " …"
    if more > 0:
        text += f"\n… ({more} more lines)"
    return text


def clean(text: str) -> str:
    """As a finding's text may be: well-formed, secrets masked, not longer than the contract lets it be."""
    text = text.encode("utf-8", "replace").decode()
    return _REDACTOR.text(text)[:CONTENT_CHARS_MAX]


def _header(module: Module, node: ast.AST, lines: int = 3) -> str:
    """The first line or lines of a function, class or statement."""
    body = getattr(node, "body", None)
    if isinstance(body, list) and body:
        first = getattr(node, "lineno", 1)
        lines = max(1, min(lines, getattr(body[0], "lineno", first + 1) - first))
    return _lines(module, node, lines).partition("\n… (")[0]


def found(
    goal: str, module: Module, site: Site | ast.AST, *, says: str = "", confidence: float = 1.0, lines: int = LINES_MAX
) -> Finding:
    """A finding at a place: what it ``says``, then the code of the statement (of a site) or the node."""
    if isinstance(site, Site):
        line, node = site.line, site.stmt if not isinstance(site.node, ast.stmt) else site.node
        if isinstance(node, Function | ast.ClassDef | ast.For | ast.While | ast.If | ast.With | ast.Try):
            code = _header(module, node) if line == getattr(node, "lineno", 0) else _lines(module, site.node, lines)
        else:
            code = _lines(module, node, lines)
    else:
        line, code = getattr(site, "lineno", 0), _lines(module, site, lines)
    text = clean(f"{says}\n{code}" if says and code else says or code)
    return Finding(goal=goal, path=module.source.path, line=line, text=text, confidence=confidence)


def by_place(findings: Iterable[Finding]) -> list[Finding]:
    """Each place once for a goal, as the surest finding has it. The surest first, so that what is left out of many is
    what matters least; then in the order of path and line."""
    best: dict[tuple[str, str, int], Finding] = {}
    for one in findings:
        key = (one.goal, one.path, one.line)
        if key not in best or best[key].confidence < one.confidence:
            best[key] = one
    return sorted(best.values(), key=lambda one: (-one.confidence, one.path, one.line, one.goal))
