"""Calls that turn bytes into objects and may run code on the way: pickle and its like, YAML, saved models; pure."""

from __future__ import annotations

import ast
from typing import Final, NamedTuple

from pmagent.actors.audit.detectors.code.names import argument, called, calls_of, keyword, last_name
from pmagent.actors.audit.detectors.code.places import is_own_file
from pmagent.actors.audit.detectors.code.scopes import Module, Site
from pmagent.actors.audit.detectors.code.strings import is_constant
from pmagent.actors.audit.lists import Lists

_LISTS: Final = Lists(__package__, "unsafe_loads")

_PICKLES: Final = frozenset(
    f"{module}.{name}"
    for module in ("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal")
    for name in ("load", "loads", "Unpickler")
) | {"shelve.open", "joblib.load", "sklearn.externals.joblib.load", "pandas.read_pickle", "jsonpickle.decode",
     "compress_pickle.load", "pickle5.load", "pickle5.loads"}  # fmt: skip
_YAML: Final = _LISTS.words("yaml")
_SAFE_LOADERS: Final = frozenset({"SafeLoader", "CSafeLoader", "BaseLoader", "CBaseLoader"})
_DUMPING: Final = frozenset({"dump", "dumps", "Pickler", "to_pickle"})

LOADING: Final = frozenset(name.rpartition(".")[2] for name in _PICKLES | _YAML) | {"load"}
"""The last words of what loads."""


class Unsafe(NamedTuple):
    """The flaw in a call, and how sure it is."""

    goal: str
    sure: float


def is_load(name: str) -> bool:
    """Whether ``name`` is a call that may load objects unsafely, or would without the right argument."""
    return name in _PICKLES or name in _YAML or name in {"torch.load", "numpy.load"}


def unsafe_load(module: Module, call: ast.Call, site: Site, name: str) -> Unsafe | None:
    """The flaw in such a call. A pickle that the same file also writes is most likely a cache: 0.7; one whose name is
    constant is most likely the project's own: 0.6."""
    goal = "security.unsafe_load"
    given = argument(call, 0, "file", "data", "str", "stream", "filename")
    if given is not None and is_constant(module, given, site.scope) and name.endswith("loads"):
        return None
    if name in _YAML:
        sure = _yaml(call, name)
    elif name == "torch.load":
        sure = _switch(keyword(call, "weights_only"), safe=True, absent=0.6)  # safe by default since torch 2.6
    elif name == "numpy.load":
        sure = 0.9 - _switch(keyword(call, "allow_pickle"), safe=True, absent=0.9)
    else:
        sure = 0.7 if name.rpartition(".")[0] in _dumpers(module) else 0.9
        if _copies(call):
            return None
        if given is not None and is_own_file(module, given, site.scope):
            sure = 0.6
    return Unsafe(goal, round(sure, 2)) if sure > 0 else None


def _yaml(call: ast.Call, name: str) -> float:
    if "safe_load" in name and "unsafe" not in name:
        return 0.0
    if "unsafe" in name:
        return 0.95
    loader = last_name(argument(call, 1, "Loader")) if name in {"yaml.load", "yaml.load_all"} else "FullLoader"
    if loader in _SAFE_LOADERS or (loader and "safe" in loader.lower() and "unsafe" not in loader.lower()):
        return 0.0
    if loader == "FullLoader":
        return 0.5  # loads no objects since PyYAML 5.4, did before
    return 0.9 if loader in {"", "Loader", "UnsafeLoader", "CLoader"} else 0.5


def _switch(value: ast.expr | None, *, safe: bool, absent: float) -> float:
    """How sure a call is unsafe by a flag: what ``absent`` says without it, 0.5 where its value is not known."""
    match value:
        case None:
            return absent
        case ast.Constant(value=constant):
            return 0.0 if bool(constant) is safe else 0.9
    return 0.5


def _dumpers(module: Module) -> frozenset[str]:
    """The libraries with which this file also writes."""
    known = module.memo.get("dumpers")
    if known is None:
        calls = ((call, site) for call, site in calls_of(module, _DUMPING) if last_name(call.func) in _DUMPING)
        names = (called(module, call, site) for call, site in calls)
        known = module.memo["dumpers"] = frozenset(name.rpartition(".")[0] for name in names)
    return known


def _copies(call: ast.Call) -> bool:
    """Whether what is loaded was dumped in the same expression: a copy."""
    inner = call.args[0] if call.args else None
    return isinstance(inner, ast.Call) and last_name(inner.func) in _DUMPING
