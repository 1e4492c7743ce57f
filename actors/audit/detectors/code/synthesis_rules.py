"""Rules by which scores are settled, as their names, constants and comparisons tell; pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from pmagent.actors.audit.detectors.code.excerpts import found
from pmagent.actors.audit.detectors.code.names import bindings, called, dotted, inside, last_name
from pmagent.actors.audit.detectors.code.scopes import Function, Module, Scope, Site
from pmagent.contracts.audit_facts import Finding

_SCORE: Final = re.compile(r"(?:^|_)(?:scores?|ratings?|grades?|points|verdicts?|opinions?|votes?|judge?ments?)(?:_|$)")


def _any(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words))


_RULES: Final = (
    (
        "security",
        _any(
            r"secur\w*_?(?:overrid|cap|rule|penalt|limit|flaw|violation)",
            r"(?:cap|override|rule)_(?:of_|for_)?secur",
        ),
    ),
    (
        "facts",
        _any(
            r"facts?_?(?:suprem|over|check|rule)",
            r"evidence_?(?:suprem|rule|overrid|over_)",
            r"rule_of_(?:evidence|fact)",
            r"hallucination_(?:penalt|rule|cap)",
        ),
    ),
    (
        "weight",
        _any(
            r"functionality_?(?:weight|rule)|rule_of_function",
            r"(?:tech_?lead|architecture|judge|persona|role|score)_?weights?|tie_?break",
        ),
    ),
)
_FACTS: Final = _any(r"overrul", r"set_aside", r"unsupported_(?:claim|opinion|citation)")
"""What speaks of facts over opinions in a file that combines scores, and of anything elsewhere."""
_CAPS: Final = re.compile(r"(?:^|_)(?:caps?|capped|ceiling)(?:_|$)")
_WORDS: Final = re.compile(r"score|rating|grade|points|verdict|opinion|vote|judg", re.IGNORECASE)
_SPREAD: Final = re.compile(
    r"(?:^|_)(?:variance|spread|disagreement|divergence|score_range|score_gap|std_?dev|stdev)(?:_|$)"
)
_STATISTICS: Final = frozenset(f"statistics.{name}" for name in ("variance", "pvariance", "stdev", "pstdev"))
_DISSENT: Final = re.compile(r"(?:^|_)(?:dissent\w*|disagreements?|minority_(?:opinion|report|view)\w*)(?:_|$)")


@lru_cache(maxsize=4096)
def is_score(name: str) -> bool:
    """Whether an identifier speaks of scores, verdicts or opinions."""
    return _SCORE.search(name.lower()) is not None


def rules(module: Module, *, judging: bool) -> Iterator[Finding]:
    """Named rules: functions, constants, keys, and caps of a score. ``judging``: the file combines scores; elsewhere
    only the name of a function counts, and less."""
    for function, site in module.functions():
        for rule in _named(function.name, judging=judging):
            if judging or speaks_of_scores(module, function):
                says = f"rule about {rule}: {function.name}()"
                yield found("justice.rules", module, site, says=says, confidence=0.9 if judging else 0.7)
    if judging:
        yield from _written_rules(module)


def _written_rules(module: Module) -> Iterator[Finding]:
    """Rules of a file that combines scores, as constants, caps, and keys of a rubric that are read."""
    for site in module.sites(ast.Assign, ast.AnnAssign):
        for name in _targets(site.node):
            for rule in _named(name, judging=True):
                yield found("justice.rules", module, site, says=f"rule about {rule}: {name}", confidence=0.8, lines=4)
    clamped = _clamped(module)
    for call, site in module.calls():
        cap = _cap(module, call, site, clamped)
        if cap:
            yield found("justice.rules", module, site, says=cap, confidence=0.8, lines=4)
        match call:
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(key)), *_]):
                for rule in _named(key, judging=True):
                    says = f"rule about {rule}: read as {key}"
                    yield found("justice.rules", module, site, says=says, confidence=0.6, lines=4)


def _named(name: str, *, judging: bool) -> Iterator[str]:
    lower = name.lower()
    yield from (rule for rule, words in _RULES if words.search(lower))
    if judging and _FACTS.search(lower):
        yield "facts"
    if judging and _CAPS.search(lower):
        yield "a cap"


def _targets(node: ast.AST) -> list[str]:
    match node:
        case ast.Assign(targets=targets):
            return [last_name(target) for target in targets]
        case ast.AnnAssign(target=target, value=ast.expr()):
            return [last_name(target)]
    return []


def _cap(module: Module, call: ast.Call, site: Site, clamped: set[int]) -> str:
    """``min(score, 3)``: a cap; but not ``max(1, min(5, score))``, which keeps a score in its range."""
    if called(module, call, site) != "builtins.min" or len(call.args) != 2 or id(call) in clamped:
        return ""
    one, other = call.args
    for score, cap in ((one, other), (other, one)):
        number = cap.value if isinstance(cap, ast.Constant) else None
        limit = isinstance(number, int | float) or (isinstance(cap, ast.Name) and "cap" in cap.id.lower())
        if limit and _names_score(score):
            return f"a cap of a score at {number if isinstance(number, int | float) else last_name(cap)}"
    return ""


def _clamped(module: Module) -> set[int]:
    """The calls of min that stand within one of max with a number."""
    return {
        id(inner)
        for call, site in module.calls()
        if called(module, call, site) == "builtins.max" and any(isinstance(one, ast.Constant) for one in call.args)
        for inner in call.args
        if isinstance(inner, ast.Call)
    }


_OF_SECURITY: Final = re.compile(r"secur|vulnerab|unsafe|injection")
_OF_FACTS: Final = re.compile(r"evidence|found|fact|support|cite|citation|artifact|hallucin|missing")
_OF_STRUCTURE: Final = re.compile(r"architect|orchestrat|graph|functional|modular")
_LEAD: Final = re.compile(r"tech_?lead")


def branches(module: Module, function: Function) -> Iterator[Finding]:
    """Rules that have no name but stand as branches of a function that combines scores: what is asked about security,
    facts or architecture before a score is set; a weight of the Tech Lead's. 0.6 to 0.7."""
    for node in inside(function):
        match node:
            case ast.If(test=test, body=body):
                asked, done = _said(test), " ".join(_said(stmt) for stmt in body[:20])
                if not is_score(done.replace(" ", "_")) and "return" not in done:
                    continue
                says, sure = "", 0.7
                if _OF_SECURITY.search(asked):
                    says = "security: a branch asks about it before a score is set"
                elif _OF_STRUCTURE.search(asked) and _LEAD.search(done):
                    says = "weight: the Tech Lead's score is treated apart where it is about architecture"
                elif _OF_FACTS.search(asked):
                    says, sure = "facts: a branch asks what was found before a score is set", 0.6
                if says:
                    yield found("justice.rules", module, test, says=f"rule about {says}", confidence=sure, lines=3)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                number = isinstance(left, ast.Constant) or isinstance(right, ast.Constant)
                if number and _LEAD.search(_said(node)):
                    says = "rule about weight: the Tech Lead's score is multiplied"
                    yield found("justice.rules", module, node, says=says, confidence=0.7, lines=3)


def _said(node: ast.AST) -> str:
    """The identifiers and short texts of a part of code, in lower case, a bounded number of them."""
    words: list[str] = []
    for number, one in enumerate(ast.walk(node)):
        if number >= 300:
            break
        match one:
            case (
                ast.Name(id=name)
                | ast.Attribute(attr=name)
                | ast.Constant(value=str(name))
                | ast.keyword(arg=str(name))
            ):
                words.append(name[:60].lower())
            case ast.Return():
                words.append("return")
    return " ".join(words)


def spreads(module: Module) -> Iterator[Finding]:
    """Comparisons of how far scores lie apart with a number."""
    for site in module.sites(ast.Compare):
        if not isinstance(site.node, ast.Compare) or not isinstance(site.node.ops[0], _ORDERS):
            continue
        for part in (site.node.left, *site.node.comparators):
            sure = _is_spread(module, part, site.scope)
            if sure > 0.7 or (sure and _near_scores(module, site)):
                says = "how far scores lie apart is compared with a limit"
                yield found("justice.variance", module, site.node, says=says, confidence=sure, lines=4)
                break


_ORDERS: Final = (ast.Gt, ast.GtE, ast.Lt, ast.LtE)


def speaks_of_scores(module: Module, node: ast.AST) -> bool:
    """Whether the lines of a node speak of scores at all: most functions do not."""
    first = getattr(node, "lineno", 1)
    lines = module.lines[first - 1 : getattr(node, "end_lineno", None) or first]
    return any(_WORDS.search(line) is not None for line in lines)


def _near_scores(module: Module, site: Site) -> bool:
    """Whether the function around, or the class of it, speaks of scores: ``variance`` is a word of many trades."""
    around = site.scope.enclosing_class
    node = site.scope.function if around is None else around.node
    return speaks_of_scores(module, site.stmt if node is None else node)


def _is_spread(module: Module, part: ast.expr, scope: Scope) -> float:
    match part:
        case ast.BinOp(left=high, op=ast.Sub(), right=low):
            extremes = {_extreme(module, high, scope), _extreme(module, low, scope)}
            return (0.9 if _names_score(part) else 0.5) if extremes == {"max", "min"} else 0.0
        case ast.Call(func=func):
            name = dotted(module, func, scope)
            return 0.9 if name in _STATISTICS or _SPREAD.search(last_name(func).lower()) else 0.0
        case ast.Name(id=name):
            for binding in bindings(scope, part)[-2:]:
                if binding.kind == "value" and isinstance(binding.value, ast.BinOp | ast.Call):
                    sure = _is_spread(module, binding.value, binding.scope)
                    if sure:
                        return sure
            return 0.7 if _SPREAD.search(name.lower()) else 0.0
        case ast.Attribute(attr=name):
            return 0.7 if _SPREAD.search(name.lower()) else 0.0
    return 0.0


def _extreme(module: Module, expression: ast.expr, scope: Scope) -> str:
    """``max`` or ``min``, for a call of it or a name that holds its result."""
    if isinstance(expression, ast.Name):
        found_here = [one for one in bindings(scope, expression) if isinstance(one.value, ast.Call)]
        if not found_here or found_here[-1].value is None:
            return ""
        expression, scope = found_here[-1].value, found_here[-1].scope
    name = dotted(module, expression.func, scope) if isinstance(expression, ast.Call) else ""
    return name.removeprefix("builtins.") if name in {"builtins.max", "builtins.min"} else ""


def _names_score(expression: ast.expr) -> bool:
    for number, node in enumerate(ast.walk(expression)):
        if number >= 200:
            break
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if is_score(name):
                return True
    return False


def disagreements(module: Module) -> Iterator[Finding]:
    """Where a dissent is written: a function for it, a value given to its field."""
    for function, site in module.functions():
        if _DISSENT.search(function.name.lower()):
            yield found("justice.dissent", module, site, says=f"{function.name}()", confidence=0.9)
    for site in module.sites(ast.Assign, ast.AnnAssign):
        value = getattr(site.node, "value", None)
        for name in _targets(site.node):
            if _DISSENT.search(name.lower()) and not _is_empty(value) and not site.scope.is_class:
                yield found("justice.dissent", module, site, says=f"{name} is set", confidence=0.8, lines=4)
    for call, site in module.calls():
        for given in call.keywords:
            if given.arg and _DISSENT.search(given.arg.lower()) and not _is_empty(given.value):
                where = Site(given.value, site.scope, site.frame)
                yield found(
                    "justice.dissent", module, where.node, says=f"{given.arg} is given", confidence=0.8, lines=2
                )


def _is_empty(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and not value.value)
