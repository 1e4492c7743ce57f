"""The outcome of a program: graphs that it runs, and results that leave it for a file, database, caller or screen;
pure.

Confidence: 0.95 for files, databases and requests, 0.8 for what a web framework's function returns, 0.7 for what is
printed. A text without anything computed in it is no result.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Final

from pmagent.actors.audit.detectors.code.answers import questions
from pmagent.actors.audit.detectors.code.excerpts import by_place, found
from pmagent.actors.audit.detectors.code.model_calls import model_call, talks_to_models
from pmagent.actors.audit.detectors.code.names import argument, called, last_name, walk
from pmagent.actors.audit.detectors.code.scopes import Module, Site, module_of
from pmagent.actors.audit.detectors.code.source import Source
from pmagent.contracts.audit_facts import Finding

RETURNED: Final = 0.6
"""How sure it is that what a public function returns is a result: of a library it is, of a program it is none."""
_RUNNING: Final = frozenset((
    "invoke", "ainvoke", "stream", "astream", "batch", "abatch", "astream_events", "stream_events",
))  # fmt: skip
_OPENING: Final = frozenset(("builtins.open", "io.open", "aiofiles.open", "codecs.open"))
_WRITING: Final = frozenset(("write_text", "write_bytes", "to_csv", "to_json", "to_parquet", "to_excel", "savefig"))
_STORING: Final = frozenset(("execute", "executemany", "insert_one", "insert_many", "upsert", "add_all", "put_object"))
_SENDING: Final = frozenset(("post", "put", "patch", "send_message", "sendmail", "publish"))
_LEAVING: Final = _WRITING | _STORING | _SENDING | {"print", "write", "writelines", "writerow", "writerows", "dump"}
_ROUTES: Final = frozenset(("get", "post", "put", "delete", "patch", "route", "command", "tool", "websocket"))
_STORES: Final = re.compile(r"\s*(?:insert|update|replace|delete|merge)\b", re.IGNORECASE)


class OutcomeReader:
    """Finds graph.run, outcome.delivered, and judges.parallel outside of graphs; a Detector. It does not look at tests
    and examples."""

    def __init__(self) -> None:
        self._found: list[Finding] = []
        self._asking: set[str] = set()
        self._at_once: list[tuple[str, Finding]] = []

    def take(self, source: Source) -> None:
        """Look at a file."""
        module = module_of(source)
        if module is None or source.role != "code":
            return
        known = talks_to_models(module)
        self._asking.update(one.name for one in questions(module) if one is not None)
        self._at_once.extend(_at_once(module))
        for call, site in module.calls():
            runs = isinstance(call.func, ast.Attribute) and call.func.attr in _RUNNING
            if runs and model_call(module, call, site, known=known) is None:
                says = f"{last_name(call.func)}() of what is no model"
                self._found.append(found("graph.run", module, site, says=says, confidence=0.9, lines=4))
            says, sure = _delivered(module, call, site)
            if says:
                self._found.append(found("outcome.delivered", module, site, says=says, confidence=sure, lines=4))
        for function, site in module.functions():
            scope = module.scopes.get(function)
            answers = scope is not None and any(map(_is_computed, scope.returned))
            if answers and not function.name.startswith("_"):
                says = f"{function.name}() returns it to its caller"
                self._found.append(found("outcome.delivered", module, site, says=says, confidence=RETURNED, lines=3))
            wrapped = [one.func for one in function.decorator_list if isinstance(one, ast.Call)]
            if answers and any(isinstance(one, ast.Attribute) and one.attr in _ROUTES for one in wrapped):
                says = f"{function.name}() answers a request"
                self._found.append(found("outcome.delivered", module, site, says=says, confidence=0.8, lines=3))

    def findings(self) -> Iterator[Finding]:
        """Runs of graphs, deliveries, and questions to models that are asked side by side."""
        self._found += [one for name, one in self._at_once if name in self._asking]
        yield from by_place(self._found)

    @property
    def examined(self) -> Mapping[str, int]:
        """Nothing that others do not count."""
        return {}


def _at_once(module: Module) -> Iterator[tuple[str, Finding]]:
    """Functions that are called side by side without a graph, by name: tasks of a workflow in a comprehension, what is
    gathered, what a pool of threads maps or is given."""
    tasks = {function.name for function, _ in module.functions() if any(map(_is_task, function.decorator_list))}
    for call, site in module.calls():
        written, names = last_name(call.func), set[str]()
        if written in ("gather", "create_task", "TaskGroup"):
            names = {last_name(one.func) for one in ast.walk(call) if isinstance(one, ast.Call)}
        elif written in ("map", "submit", "run_in_executor", "to_thread"):
            names = {last_name(one) for one in call.args}
        elif written in tasks and isinstance(call.func, ast.Name) and _is_repeated(call, site):
            names = {written}
        for name in names - {written} if written not in tasks else names:
            says = f"{name}() is called side by side, by {written}()"
            yield name, found("judges.parallel", module, site, says=says, confidence=0.8, lines=4)


def _is_task(decorator: ast.expr) -> bool:
    return last_name(decorator) == "task"


def _is_repeated(call: ast.Call, site: Site) -> bool:
    """Whether a call is the element of a comprehension."""
    rows = (node for node in walk(site.stmt) if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp))
    return any(call in walk(row) for row in rows)


def _delivered(module: Module, call: ast.Call, site: Site) -> tuple[str, float]:
    """How a call takes a result out of the program, and how sure that is; ("", 0): it does not."""
    written = last_name(call.func)
    if written not in _LEAVING:
        return "", 0.0
    values = [*call.args, *(one.value for one in call.keywords)]
    computed = any(map(_is_computed, values))
    if isinstance(call.func, ast.Attribute):
        if written in _WRITING and (computed or written.startswith("to_")):
            return f"{written}() writes a file", 0.95
        if written in ("write", "writelines", "writerow", "writerows") and computed:
            return f"{written}() writes to a file or stream", 0.9
        if written == "dump" and len(call.args) > 1 and _is_computed(call.args[0]):
            return "dump() writes a file", 0.95
        if written in _SENDING and computed and len(values) > 1:
            return f"{written}() sends it", 0.8
        if written in _STORING and (written != "execute" or _stores(call)):
            return f"{written}() stores it", 0.9
    if called(module, call, site) == "builtins.print" and computed:
        return "it is printed", 0.7
    return "", 0.0


def _stores(call: ast.Call) -> bool:
    text = argument(call, 0, "statement", "sql")
    first = text.values[0] if isinstance(text, ast.JoinedStr) and text.values else text
    return isinstance(first, ast.Constant) and isinstance(first.value, str) and _STORES.match(first.value) is not None


def _is_computed(value: ast.expr) -> bool:
    """Whether there is more in it than literals."""
    return any(isinstance(node, ast.Name | ast.Attribute | ast.Call) for node in walk(value))
