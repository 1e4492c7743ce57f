"""How the code starts processes and reaches the network: checked, limited in time, failures told, input checked; pure.

Confidence: 1 where the call itself says so (check=True, timeout=); 0.9 where the same function looks at the return code
or catches the failure; 0.6 to 0.8 where names and assignments have to be followed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pmagent.actors.audit.detectors.code.calls import RAISING, Start, start
from pmagent.actors.audit.detectors.code.clones import Clone, clones
from pmagent.actors.audit.detectors.code.excerpts import by_place, found
from pmagent.actors.audit.detectors.code.input_checks import input_checks
from pmagent.actors.audit.detectors.code.names import bindings, called, inside, keyword, last_name
from pmagent.actors.audit.detectors.code.places import place_of
from pmagent.actors.audit.detectors.code.scopes import Frame, Function, Module, Scope, Site, module_of
from pmagent.actors.audit.detectors.code.source import Source
from pmagent.contracts.audit_facts import Finding

_FAILURES: Final = frozenset({
    "CalledProcessError", "SubprocessError", "TimeoutExpired", "GitCommandError", "GitError", "GitCommandNotFound",
    "InvalidGitRepositoryError", "NoSuchPathError", "NotGitRepository", "FileNotFoundError", "PermissionError",
    "OSError", "TimeoutError", "Exception",
})  # fmt: skip
_OF_PROCESSES: Final = _FAILURES - {"Exception", "OSError", "FileNotFoundError", "PermissionError", "TimeoutError"}
_REQUESTS: Final = re.compile(
    r"(?:requests|httpx|httpx2)\.(?:get|post|put|delete|patch|head|request|stream)"
    r"|(?:requests\.(?:S|s)ession|httpx\.(?:Async)?Client|aiohttp\.ClientSession)\(\)(?:\.\w+)?"
    r"|urllib\.request\.urlopen|urllib2\.urlopen"
)
_CLIENTS: Final = frozenset({"httpx.Client", "httpx.AsyncClient", "aiohttp.ClientTimeout", "aiohttp.ClientSession"})
_LIMITS: Final = frozenset({"asyncio.wait_for", "asyncio.timeout", "asyncio.timeout_at", "anyio.fail_after",
                            "anyio.move_on_after", "trio.fail_after", "trio.move_on_after", "signal.alarm",
                            "signal.setitimer", "async_timeout.timeout"})  # fmt: skip
_SENT: Final = re.compile(r"(?:requests|httpx)\.(?:get|post|put|delete|patch|head|request|stream)|\w*\.?urlopen")
_CHANGING: Final = frozenset((
    "post", "patch", "sendmail", "send_message", "send_email", "publish", "tweet", "chat_postMessage", "create_issue",
    "create_comment", "create_issue_comment", "create_review", "create_pull", "create_event", "create_order",
))  # fmt: skip
"""Names of calls by which something outside is changed."""
_REPLACING: Final = frozenset(f"{one}.{verb}" for one in ("requests", "httpx") for verb in ("put", "delete"))
_MAKING: Final = frozenset({"tempfile.TemporaryDirectory", "tempfile.mkdtemp", "anyio.TemporaryDirectory"})
_STRINGS: Final = (ast.Constant, ast.JoinedStr)
_PLACES: Final = (ast.Name, ast.Attribute, ast.BinOp, ast.Call)


class ProcessReader:
    """Finds the assets of tools.*; a Detector. Tests and examples are not looked at."""

    def __init__(self) -> None:
        self._found: list[Finding] = []
        self._processes = 0
        self._requests = 0
        self._sends = 0
        self._clones = 0
        self._handed: set[tuple[str, str]] = set()
        self._given: list[tuple[str, str, Finding]] = []

    def take(self, source: Source) -> None:
        """Look at a file."""
        module = module_of(source)
        if module is None or source.role != "code":
            return
        reading = _Reading(module)
        for call, site in module.calls():
            started = start(module, call, site)
            if started is not None:
                self._processes += 1
                self._found.extend(reading.checked(started))
            self._found.extend(reading.time_limit(call, site, started))
            name = called(module, call, site)
            self._requests += _SENT.fullmatch(name) is not None
            decorates = isinstance(site.stmt, Function) and call in site.stmt.decorator_list
            changes = last_name(call.func) in _CHANGING or name in _REPLACING
            self._sends += changes and not decorates
        for clone in clones(module):
            self._clones += 1
            self._clone(module, clone)
        self._found.extend(reading.handled())
        self._found.extend(input_checks(module))
        self._handed.update(_temporary_arguments(module))

    def findings(self) -> Iterator[Finding]:
        """Temporary clones, checked processes, time limits, failures told, input checked."""
        known = self._handed
        given = [finding for name, param, finding in self._given if {(name, param), (name, "*")} & known]
        yield from by_place([*self._found, *given])

    @property
    def examined(self) -> Mapping[str, int]:
        """How many starts of processes, requests, clones, and calls that change something elsewhere there are."""
        return {"processes": self._processes, "requests": self._requests, "clones": self._clones, "sends": self._sends}

    def _clone(self, module: Module, clone: Clone) -> None:
        target = clone.target if clone.target is not None else clone.folder
        place = place_of(module, target, clone.site.scope)
        if place.where != "temporary" and clone.folder is not None:
            inner = place_of(module, clone.folder, clone.site.scope)
            place = inner if inner.where == "temporary" else place
        says, sure = f"{clone.kind} clones into a temporary directory", place.sure or 0.7
        function = clone.site.scope.function
        given = place.where == "unknown" and bool(place.param) and function is not None
        finding = found("tools.temporary_clone", module, clone.site, says=says, confidence=sure, lines=6)
        if place.where == "temporary":
            self._found.append(finding)
        elif given and function is not None:
            self._given.append((function.name, place.param, finding))
            if _makes_temporary(module):
                says = f"{clone.kind} clones into a directory that is given; the same file makes temporary ones"
                self._found.append(
                    found("tools.temporary_clone", module, clone.site, says=says, confidence=0.6, lines=6)
                )
        if clone.kind == "git" and clone.dashes and clone.url is not None:
            says = "-- stands before the URL of a git clone"
            self._found.append(found("tools.inputs_checked", module, clone.site, says=says, confidence=0.9, lines=6))


class _Reading:
    """One file, looked at for processes."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._codes: dict[Function | None, bool] = {}
        self._starts: list[Site] = []

    def checked(self, started: Start) -> list[Finding]:
        """Whether a process that is started by argument list has its failure looked at."""
        self._starts.append(started.site)
        if started.shell is not False or (started.words is None and isinstance(started.command, _STRINGS)):
            return []
        how, sure = self._how_checked(started)
        if not how:
            return []
        says = f"started by argument list; {how}"
        return [found("tools.checked_processes", self._module, started.site, says=says, confidence=sure, lines=6)]

    def _how_checked(self, started: Start) -> tuple[str, float]:
        if started.name in RAISING:
            return f"{started.name.rpartition('.')[2]} raises", 1.0
        check = keyword(started.call, "check")
        if isinstance(check, ast.Constant) and check.value:
            return "check=True", 1.0
        if started.name.startswith(("anyio.run_process", "trio.run_process")) and check is None:
            return "raises by default", 1.0
        if self._looks_at_code(started.site.scope.function):
            return "its return code is looked at", 0.9
        catching = _catching(started.site.around(), _OF_PROCESSES)
        if catching and not isinstance(check, ast.Constant):
            return f"{catching} is caught", 0.7
        returned = isinstance(started.site.stmt, ast.Return)
        if returned and any(self._looks_at_code(node) for node, _site in self._module.functions()):
            return "its result is returned to code that looks at return codes", 0.7
        return "", 0.0

    def _looks_at_code(self, function: Function | None) -> bool:
        if function not in self._codes:
            body: ast.AST = self._module.tree if function is None else function
            looked = {node.attr for node in inside(body) if isinstance(node, ast.Attribute)}
            self._codes[function] = not looked.isdisjoint(("returncode", "check_returncode"))
        return self._codes[function]

    def time_limit(self, call: ast.Call, site: Site, started: Start | None) -> list[Finding]:
        """A time limit on a process, a request, or whatever is awaited."""
        name = called(self._module, call, site)
        given = keyword(call, "timeout")
        limited = given is not None and not (isinstance(given, ast.Constant) and given.value is None)
        waiting = last_name(call.func) in {"communicate", "wait"} and name.startswith(("subprocess.", "asyncio."))
        says, sure = "", 0.0
        if limited and (started is not None or _REQUESTS.fullmatch(name) or name in _CLIENTS):
            says, sure = "time limit", 1.0
        elif limited and (waiting or last_name(call.func) == "communicate"):
            says, sure = "time limit of a process that runs", 0.9
        elif name in _LIMITS:
            says, sure = f"time limit by {name}", 0.8
        return [found("tools.time_limits", self._module, site, says=says, confidence=sure, lines=6)] if says else []

    def handled(self) -> Iterator[Finding]:
        """Try statements around processes or git whose handlers tell: raise, return, log, or keep what went wrong."""
        sites = [*self._starts, *(clone.site for clone in clones(self._module))]
        seen: set[int] = set()
        for site in sites:
            for frame, field in _with_fields(site.around()):
                stmt = frame.stmt
                if not isinstance(stmt, ast.Try) or field != "body" or id(stmt) in seen:
                    continue
                for handler in stmt.handlers:
                    names = _caught(handler) & _FAILURES
                    if names and _tells(handler):
                        seen.add(id(stmt))
                        says = f"{', '.join(sorted(names))} is caught and told"
                        sure = 0.95 if names & _OF_PROCESSES else 0.8
                        yield found("tools.errors_handled", self._module, handler, says=says, confidence=sure, lines=5)
        yield from self._by_code()

    def _by_code(self) -> Iterator[Finding]:
        """``if result.returncode != 0: raise …``."""
        for function in dict.fromkeys(site.scope.function for site in self._starts):
            for node in inside(self._module.tree if function is None else function):
                if not isinstance(node, ast.If) or not any(
                    isinstance(one, ast.Attribute) and one.attr == "returncode" for one in ast.walk(node.test)
                ):
                    continue
                leaves = [*node.body, *node.orelse]
                if any(isinstance(one, ast.Raise | ast.Return) for stmt in leaves for one in ast.walk(stmt)):
                    says = "a return code is looked at and its failure told"
                    yield found("tools.errors_handled", self._module, node, says=says, confidence=0.9, lines=4)


def _makes_temporary(module: Module) -> bool:
    return any(called(module, call, site) in _MAKING for call, site in module.calls())


def _catching(frames: Iterable[Frame], names: frozenset[str]) -> str:
    for frame, field in _with_fields(frames):
        if isinstance(frame.stmt, ast.Try) and field == "body":
            for handler in frame.stmt.handlers:
                common = _caught(handler) & names
                if common:
                    return min(common)
    return ""


def _with_fields(frames: Iterable[Frame]) -> Iterator[tuple[Frame, str]]:
    """Each statement around, and in which part of it the inner one stands."""
    field = ""
    for frame in frames:
        yield frame, field
        field = frame.field


def _caught(handler: ast.ExceptHandler) -> set[str]:
    if handler.type is None:
        return {"Exception"}
    parts = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {last_name(part) for part in parts}


def _tells(handler: ast.ExceptHandler) -> bool:
    """Whether a handler does more than to pass over what it caught: it raises, calls, keeps something, or returns what
    says something."""
    for stmt in handler.body:
        for node in ast.walk(stmt):
            if isinstance(node, ast.Raise | ast.Call | ast.Assign | ast.AugAssign | ast.JoinedStr):
                return True
            if isinstance(node, ast.Return) and node.value is not None and _says_something(node.value, handler.name):
                return True
    return False


def _says_something(value: ast.expr, caught: str | None) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id == caught)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(node.value))
        for node in ast.walk(value)
    )


def _temporary_arguments(module: Module) -> Iterator[tuple[str, str]]:
    """Calls of functions with a temporary directory among what they are given: the function, and the parameter's name
    where it is said ("*": by position)."""
    if not module.imports("tempfile", "anyio", "aiofiles"):
        return
    for call, site in module.calls():
        written = last_name(call.func)
        if not written or written in {"str", "Path", "print", "join", "rmtree"}:
            continue
        if any(isinstance(one, _PLACES) and _is_temporary(module, one, site.scope) for one in call.args[:6]):
            yield written, "*"
        for given in call.keywords[:12]:
            if given.arg and _is_temporary(module, given.value, site.scope):
                yield written, given.arg


def _is_temporary(module: Module, expression: ast.expr, scope: Scope) -> bool:
    if isinstance(expression, ast.Name) and not bindings(scope, expression):
        return False
    place = place_of(module, expression, scope)
    return place.where == "temporary" and place.sure >= 0.7
