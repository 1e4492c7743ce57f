"""Where the code checks what comes from outside before it uses it: URLs, paths; pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Final

from pmagent.actors.audit.detectors.code.excerpts import found
from pmagent.actors.audit.detectors.code.names import called, inside, last_name, parameters
from pmagent.actors.audit.detectors.code.scopes import Function, Module, Site
from pmagent.contracts.audit_facts import Finding

_OUTSIDE: Final = re.compile(
    r"(?:^|_)(?:url|uri|repo|repository|remote|path|target|branch|ref|link)(?:$|_|s$)", re.IGNORECASE
)
_PARSING: Final = frozenset({"urllib.parse.urlparse", "urllib.parse.urlsplit", "urlparse.urlparse", "validators.url",
                             "yarl.URL", "httpx.URL", "giturlparse.parse", "giturlparse.validate"})  # fmt: skip
_CHECKING: Final = re.compile(
    r"(?:^|_)(?:validate|sanitize|sanitise|check|verify|ensure|is_valid|is_safe|assert)(?:$|_)"
)
_MATCHING: Final = frozenset({"re.match", "re.fullmatch", "re.search"})


def input_checks(module: Module) -> Iterator[Finding]:
    """Where URLs and paths are parsed, matched, compared with what is allowed, or kept inside a directory."""
    for call, site in module.calls():
        said, sure = _input_check(module, call, site)
        if said:
            yield found("tools.inputs_checked", module, site, says=said, confidence=sure, lines=3)
    for site in module.sites(ast.Raise):
        test = _refused(site)
        if test is not None:
            says = "input that holds what it must not is refused"
            yield found("tools.inputs_checked", module, test, says=says, confidence=0.6, lines=3)
    for function, site in module.functions():
        if not _CHECKING.search(function.name) or not any(_OUTSIDE.search(one.arg) for one in parameters(function)):
            continue
        if any(isinstance(node, ast.Raise) for node in inside(function)) or _returns_truth(function):
            says = f"{function.name}() checks input"
            yield found("tools.inputs_checked", module, site, says=says, confidence=0.8)


def _refused(site: Site) -> ast.expr | None:
    """The test of ``if "x" in url: raise …``."""
    around = site.frame.parent if site.frame is not None else None
    if around is None or not isinstance(around.stmt, ast.If) or site.frame is None or site.frame.field != "body":
        return None
    for node in list(ast.walk(around.stmt.test))[:100]:
        compares = isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn)
        if compares and _from_outside([node]):
            return around.stmt.test
    return None


def _input_check(module: Module, call: ast.Call, site: Site) -> tuple[str, float]:
    """How a call checks what comes from outside, and how sure that is."""
    name = called(module, call, site)
    written = last_name(call.func)
    if name in _PARSING and _from_outside(call.args[:1]):
        return f"{name.rpartition('.')[2]}() of input", 0.7
    if name in _MATCHING and _from_outside(call.args[1:2]):
        return f"{name}() of input", 0.7
    if not isinstance(call.func, ast.Attribute):
        return "", 0.0
    if written in {"match", "fullmatch"} and _from_outside(call.args[:1]):
        return "input is matched against a pattern", 0.7
    if written == "startswith" and _from_outside([call.func.value]) and _is_protocol(call):
        return "the protocol of a URL is checked", 0.8
    if written in {"is_relative_to", "relative_to"} and _is_guard(site):
        return "a path is kept inside a directory", 0.7
    return "", 0.0


def _from_outside(expressions: Sequence[ast.AST]) -> bool:
    return any(
        _OUTSIDE.search(node.id if isinstance(node, ast.Name) else node.attr)
        for expression in expressions
        for node in ast.walk(expression)
        if isinstance(node, ast.Name | ast.Attribute)
    )


def _is_protocol(call: ast.Call) -> bool:
    texts = [node.value for one in call.args for node in ast.walk(one) if isinstance(node, ast.Constant)]
    return any(isinstance(text, str) and ("://" in text or text in {"-", "--", "git@"}) for text in texts)


def _is_guard(site: Site) -> bool:
    return any(isinstance(frame.stmt, ast.If | ast.Assert | ast.Try) for frame in site.around())


def _returns_truth(function: Function) -> bool:
    return any(
        isinstance(node, ast.Return) and isinstance(node.value, ast.Compare | ast.BoolOp | ast.Constant | ast.Call)
        for node in inside(function)
    )
