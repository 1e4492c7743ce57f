"""Which functions of a repository can run at all: what its entry points reach, name by name; pure.

The reading errs on the side of reach. A name that reached code mentions reaches every function of that name in the
modules that reached code imports, so a call through an attribute, a table of functions or a decorator counts. Code that
no reached code even names does not run.

Entry points are modules that are run (``if __name__ == "__main__"``, ``__main__.py``, a file that a settings file, a
Dockerfile, a workflow or the README names), objects that these files name (``module:attribute``), and functions that a
decorator registers in a reached module. A repository without any is a library: whatever it offers under a public name
counts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from pmagent.actors.audit.detectors.code.arrivals import WORKS_MAX, Arrivals, Lost
from pmagent.actors.audit.detectors.code.flowing import Work
from pmagent.actors.audit.detectors.code.flows import works
from pmagent.actors.audit.detectors.code.names import last_name
from pmagent.actors.audit.detectors.code.passages import FILES_MAX
from pmagent.actors.audit.detectors.code.scopes import Function, Module, Site, module_of
from pmagent.actors.audit.detectors.code.source import Source
from pmagent.actors.audit.detectors.code.usage import is_stub

_NAMING: Final = re.compile(
    r"(?:.*/)?(?:pyproject\.toml|setup\.(?:py|cfg)|langgraph\.json|Dockerfile[\w.-]*|docker-compose[\w.-]*\.ya?ml"
    r"|compose\.ya?ml|Procfile|Makefile|justfile|package\.json|README(?:\.\w+)?|.*\.(?:sh|ya?ml|service))"
)
"""Files that may name what is run."""
_READ_MAX: Final = 60
_TEXT_MAX: Final = 200_000
_RUN: Final = re.compile(
    r"(?:\b(?:python[\d.]*|uv run|poetry run|pipx run|streamlit run|chainlit run|fastapi (?:dev|run)|ipython)"
    r"[ \t]+)+(?:-\w+[ \t]+)*[\w./-]*?([\w-]+)\.(?:py|ipynb)\b"
    r"|\bpython[\d.]*[\"',\t ]+-m[\"',\t ]+([\w.]+)"
    r"|([\w./-]+?)(?:\.py)?:([A-Za-z_]\w*)\b(?!/)"
)
"""A command that runs a file or a module, and an object of a module: ``./src/agent.py:graph``, ``package.cli:main``."""
_PLAIN_DECORATORS: Final = frozenset((
    "staticmethod", "classmethod", "property", "setter", "getter", "cached_property", "lru_cache", "cache", "wraps",
    "contextmanager", "asynccontextmanager", "dataclass", "overload", "override", "abstractmethod", "retry", "final",
    "traceable", "total_ordering", "singledispatch", "field_validator", "model_validator", "validator", "tool",
))  # fmt: skip
"""Decorators that register nothing: what bears only these runs when somebody calls it."""
_LOADED: Final = "<module>"


class Body(NamedTuple):
    """A function, or a module's own statements (``name`` ``<module>``): its lines, the names that it mentions, and
    whether a decorator may hand it to somebody. ``owner``: of a method of a class that has bases, this class: a base
    from outside may call it."""

    path: str
    name: str
    first: int
    last: int
    names: frozenset[str]
    registered: bool
    public: bool
    owner: str = ""
    stub: bool = False


class ReachReader:
    """Is given every Python file, then says which of their lines can run."""

    def __init__(self, files: int = 0) -> None:
        """``files``: so many there are altogether; of more than ``FILES_MAX`` no values are followed."""
        self._functions: dict[str, list[Body]] = {}
        self._loaded: dict[str, Body] = {}
        self._imports: dict[str, frozenset[str]] = {}
        self._run: set[str] = set()
        self._reached: set[Body] = set()
        self._names: set[str] = set()
        self._called: dict[str, list[Body]] = {}
        self._by_stem: dict[str, list[str]] = {}
        self._waiting: list[Body] = []
        self._works: list[Work] = []
        self._followed = 0 if files <= FILES_MAX else WORKS_MAX + 1
        self._fields: dict[str, list[str]] = {}
        self._offered: set[str] = set()
        self.lost: list[Lost] = []
        """Results of code that can run which do not arrive."""
        self.arrivals = Arrivals((), {}, (), ())
        self.offered_by_name: set[str] = set()
        """Objects that a settings file or a script names, for others to run."""
        self.library = False
        """Whether the repository has no entry point."""

    def take(self, source: Source) -> None:
        """Remember the functions of a file; tests reach nothing that ships."""
        module = module_of(source)
        if module is None or source.role == "test":
            return
        functions = list(module.functions())
        self._functions[source.path] = [_body(module, node, site) for node, site in functions]
        if self._followed <= WORKS_MAX:
            made = list(works(module))
            self._works += made
            self._followed += len(made)
        for one, _ in module.classes():
            fields = self._fields.setdefault(one.name, [])
            fields += [last_name(stmt.target) for stmt in one.body if isinstance(stmt, ast.AnnAssign)]
        self._loaded[source.path] = _module_body(module)
        self._imports[source.path] = frozenset(part for name in module.imported for part in name.split(".") if part)
        if source.path.endswith("__init__.py"):
            self._offered.update(name.rpartition(".")[2] for name in module.imported)
        if _is_run(module):
            self._run.add(source.path)

    def settle(self, files: Sequence[str], read: Callable[[str], bytes | None]) -> None:
        """Follow everything from the entry points; ``read`` gives the content of one of the tracked ``files``."""
        modules, objects = _named(files, read)
        self.offered_by_name = objects
        for path in self._loaded:
            self._by_stem.setdefault(_stem(path), []).append(path)
        for one in (one for several in self._functions.values() for one in several):
            for name in {one.name, one.owner} - {""}:
                self._called.setdefault(name, []).append(one)
        entries = [path for path in self._loaded if path in self._run or _stem(path) in modules]
        self.library = not entries
        for path in entries or self._loaded:
            self._load(path)
        for body in [one for several in self._functions.values() for one in several]:
            if body.public if self.library else body.path in entries and body.name in objects:
                self._reach(body)
        while self._waiting:
            self._follow(self._waiting.pop())
        self._arrive()

    def _arrive(self) -> None:
        """See which results arrive; a function whose result is dropped everywhere, and that does nothing else, might as
        well not be reached."""
        at = {(body.path, body.name, body.last): body for body in self._reached}
        every = self._works if self._followed <= WORKS_MAX else ()
        running = [one for one in every if (one.path, one.name or _LOADED, one.last if one.name else 0) in at]
        offered = {one.identity for one in running if self.library and not one.name.startswith("_")}
        self.arrivals = Arrivals(running, self._fields, self._names, offered)
        self.lost = [
            one._replace(kind="variable") if one.kind == "global" and one.path in self._run else one
            for one in self.arrivals.lost() if not (self.library and one.kind == "key")
        ]  # fmt: skip
        for one in self.lost:
            if one.kind == "result":
                self._reached.discard(at[one.path, one.name, one.last])

    def reached(self, path: str, line: int) -> bool:
        """Whether what stands there can run, and is more than a stub; a place that is not known can."""
        if path not in self._loaded or line == 0:
            return True
        around = [one for one in self._functions[path] if one.first <= line <= one.last]
        return self._loaded[path] in self._reached and all(one in self._reached and not one.stub for one in around)

    @property
    def works(self) -> bool:
        """Whether any function can run at all that is more than a stub."""
        return any(body.name != _LOADED and not body.stub for body in self._reached)

    def mentions(self, name: str) -> bool:
        """Whether reached code reads this name, or an attribute called so."""
        return name in self._names

    def idle(self) -> Iterator[Body]:
        """Functions that nothing reaches, or that are only there by name; not what a package offers to others."""
        for path in sorted(self._functions):
            for one in self._functions[path]:
                if one.stub or (one not in self._reached and self._offered.isdisjoint((one.name, one.owner))):
                    yield one

    def runs(self, path: str, line: int, names: Sequence[str]) -> bool:
        """The same of a function or class under these names, also where the package offers it to others; of a file
        (line 0), whether it is loaded."""
        if line == 0:
            return path not in self._loaded or self._loaded[path] in self._reached
        return self.reached(path, line) or not self._offered.isdisjoint(names)

    def _load(self, path: str) -> None:
        if self._loaded[path] not in self._reached:
            self._reach(self._loaded[path])
            for one in self._functions[path]:
                if one.registered or not self._names.isdisjoint((one.name, one.owner)):
                    self._reach(one)

    def _reach(self, body: Body) -> None:
        if body not in self._reached:
            self._reached.add(body)
            self._waiting.append(body)

    def _follow(self, body: Body) -> None:
        if body.name == _LOADED:
            for path in [path for part in self._imports[body.path] for path in self._by_stem.get(part, ())]:
                self._load(path)
        fresh = body.names - self._names
        self._names |= fresh
        for name in fresh:
            for one in self._called.get(name, ()):
                if self._loaded[one.path] in self._reached:
                    self._reach(one)


def _body(module: Module, node: Function, site: Site) -> Body:
    decorators = [last_name(one) for one in node.decorator_list]
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    around = site.scope.node
    special = node.name.startswith("__") and node.name.endswith("__")
    heard = module.mentions[node]
    return Body(
        path=module.source.path, name=node.name, first=first, last=node.end_lineno or node.lineno,
        names=frozenset(heard.names | heard.read),
        registered=special or any(name not in _PLAIN_DECORATORS for name in decorators),
        public=not node.name.startswith("_") and site.scope.function is None,
        owner=around.name if isinstance(around, ast.ClassDef) and around.bases else "", stub=is_stub(node),
    )


def _module_body(module: Module) -> Body:
    """The code that runs when a module is loaded, decorators and defaults included."""
    heard = module.mentions[module.tree]
    names = frozenset(heard.names | heard.read)
    return Body(module.source.path, _LOADED, 0, 0, names, registered=True, public=True)


def _is_run(module: Module) -> bool:
    if module.source.path.rpartition("/")[2] in ("__main__.py", "manage.py") or module.source.path.endswith(".ipynb"):
        return True
    for stmt in module.tree.body:
        match stmt:
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
                return True
            case ast.If(test=ast.Compare(comparators=[ast.Name(id="__name__")])):
                return True
    return False


def _named(files: Sequence[str], read: Callable[[str], bytes | None]) -> tuple[set[str], set[str]]:
    """Names of modules and of objects that the project's other files run."""
    modules: set[str] = set()
    objects: set[str] = set()
    for path in [one for one in files if _NAMING.fullmatch(one)][:_READ_MAX]:
        text = (read(path) or b"")[:_TEXT_MAX].decode("utf-8", "replace")
        for match in _RUN.finditer(text):
            file, module, owner, attribute = match.groups()
            modules.add(file or (module or owner.replace("/", ".")).rpartition(".")[2])
            objects.update({attribute} if attribute else ())
    return modules, objects


def _stem(path: str) -> str:
    parts = path.rpartition(".")[0].split("/")
    return parts[-2] if parts[-1] in ("__init__", "__main__") and len(parts) > 1 else parts[-1]

