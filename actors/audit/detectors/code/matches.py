"""The functions of the detectors' table: what words alone do not decide of a node; pure.

Each is given a node that the words of a rule led to, and says whether the rule holds of it; or how sure, in which
words; or which node within it is to be shown.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pmagent.actors.audit.detectors.code.calls import start
from pmagent.actors.audit.detectors.code.model_calls import model_call, talks_to_models
from pmagent.actors.audit.detectors.code.names import (
    argument,
    called,
    dotted,
    inside,
    keyword,
    last_name,
    parameters,
    walk,
)
from pmagent.actors.audit.detectors.code.processes import how_checked
from pmagent.actors.audit.detectors.code.scopes import Function, Module, Site
from pmagent.actors.audit.lists import Lists

_LISTS: Final = Lists(__package__, "matches")

Said = bool | tuple[str, float] | ast.AST | None


class At:
    """A node that a rule may hold of. ``written``: its last word; ``given``: the keyword that led to the rule."""

    __slots__ = ("given", "module", "node", "site", "written")

    def __init__(self, module: Module, site: Site, written: str = "", given: ast.keyword | None = None) -> None:
        self.module = module
        self.site = site
        self.node: Any = site.node
        self.written = written
        self.given = given

    @property
    def name(self) -> str:
        """The dotted name of what is called."""
        return called(self.module, self.node, self.site) if isinstance(self.node, ast.Call) else ""

    @property
    def owner(self) -> str:
        """The word before the last one."""
        return last_name(getattr(self.node.func, "value", None)) if isinstance(self.node, ast.Call) else ""


# --- agents --------------------------------------------------------------------------------------------------------

_CHAT: Final = re.compile(r"Chat[A-Z]\w*|AzureChatOpenAI|init_chat_model|(?:Async)?(?:OpenAI|Anthropic)")
_IN_MEMORY: Final = ("MemorySaver", "InMemorySaver", "InMemoryStore")
_RUNNABLE: Final = frozenset({"compile", "create_agent", "create_react_agent", "entrypoint", "create_deep_agent"})


def is_left_out(value: ast.expr, *, only_none: bool = False) -> bool:
    """None, and, but for ``only_none``, False or an empty list: a setting that sets nothing."""
    match value:
        case ast.Constant(value=constant):
            return constant is None or (constant is False and not only_none)
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return not only_none
    return False


def is_handed_on(given: ast.keyword) -> bool:
    """Whether a keyword is given what the caller gives under its name, be it set or not."""
    return isinstance(given.value, ast.Name) and given.value.id == given.arg


def of_chat(at: At) -> Said:
    """The call makes a chat model."""
    return _CHAT.fullmatch(at.written) is not None


def of_agent_or_chat(at: At) -> Said:
    """The file talks to models, or the call makes one."""
    return talks_to_models(at.module) or of_chat(at)


def asks_a_person(at: At) -> Said:
    """The setting asks a person at some time."""
    value = _value(at)
    return isinstance(value, ast.Constant) and value.value != "NEVER" and not is_left_out(value)


def decides(at: At) -> Said:
    """A call in the condition of a statement around it."""
    tests = [frame.stmt.test for frame in at.site.around() if isinstance(frame.stmt, ast.If | ast.While)]
    return any(at.node in ast.walk(test) for test in tests)


def keeps(at: At) -> Said:
    """The run is given something that keeps its state."""
    if at.written not in _RUNNABLE or at.name.startswith("re."):
        return None
    kept = dotted(at.module, _value(at), at.site.scope)
    memory = any(saver in kept for saver in _IN_MEMORY)
    says = f"{at.given.arg if at.given else ''} is given to {at.written}()" + (", in memory only" if memory else "")
    return says, 0.5 if memory else 0.95


def limits_recursion(at: At) -> Said:
    """``{"recursion_limit": 50}`` in a config."""
    return any(
        isinstance(key, ast.Constant) and key.value == "recursion_limit" and not is_left_out(value)
        for key, value in zip(at.node.keys, at.node.values, strict=True)
    )


# --- outcome -------------------------------------------------------------------------------------------------------

_ROUTES: Final = frozenset(("get", "post", "put", "delete", "patch", "route", "command", "tool", "websocket"))
_STORES: Final = re.compile(r"\s*(?:insert|update|replace|delete|merge)\b", re.IGNORECASE)


def asks_no_model(at: At) -> Said:
    """A graph is invoked, or anything else that is no model."""
    return model_call(at.module, at.node, at.site, known=talks_to_models(at.module)) is None


def is_given_results(at: At) -> Said:
    """There is more than literals in what the call is given."""
    return any(map(_is_computed, _values(at)))


def dumps_results(at: At) -> Said:
    """The first of several arguments is more than a literal."""
    return len(at.node.args) > 1 and _is_computed(at.node.args[0])


def sends_results(at: At) -> Said:
    """There is more than an address in what the call is given."""
    return len(_values(at)) > 1 and is_given_results(at)


def stores(at: At) -> Said:
    """A statement of SQL that writes."""
    text = argument(at.node, 0, "statement", "sql")
    first = text.values[0] if isinstance(text, ast.JoinedStr) and text.values else text
    return isinstance(first, ast.Constant) and isinstance(first.value, str) and _STORES.match(first.value) is not None


def returns_results(at: At) -> Said:
    """The function returns more than literals."""
    scope = at.module.scopes.get(at.node)
    return scope is not None and any(map(_is_computed, scope.returned))


def answers_requests(at: At) -> Said:
    """A function that a web framework's decorator registers."""
    wrapped = [one.func for one in at.node.decorator_list if isinstance(one, ast.Call)]
    routed = any(isinstance(one, ast.Attribute) and one.attr in _ROUTES for one in wrapped)
    return routed and returns_results(at)


def _values(at: At) -> list[ast.expr]:
    return [*at.node.args, *(one.value for one in at.node.keywords)]


_COMPUTED: Final = frozenset((ast.Name, ast.Attribute, ast.Call))


def _is_computed(value: ast.expr) -> bool:
    """Whether there is more in it than literals."""
    return any(type(node) in _COMPUTED for node in walk(value))


# --- what comes from outside is checked -----------------------------------------------------------------------------

_OUTSIDE: Final = _LISTS.pattern("outside")


def first_is_from_outside(at: At) -> Said:
    """The first argument comes from outside, by its name."""
    return _from_outside(at.node.args[:1])


def second_is_from_outside(at: At) -> Said:
    """The second argument comes from outside, by its name."""
    return _from_outside(at.node.args[1:2])


def checks_protocol(at: At) -> Said:
    """A text from outside is asked for the protocol that it begins with."""
    texts = [node.value for one in at.node.args for node in ast.walk(one) if isinstance(node, ast.Constant)]
    protocol = any(isinstance(text, str) and ("://" in text or text in {"-", "--", "git@"}) for text in texts)
    return protocol and _from_outside([at.node.func.value])


def is_guarded(at: At) -> Said:
    """The call stands where its answer or its failure decides."""
    return any(isinstance(frame.stmt, ast.If | ast.Assert | ast.Try) for frame in at.site.around())


def refuses(at: At) -> Said:
    """The test of ``if "x" in url: raise …``."""
    frame = at.site.frame
    if frame is None or frame.parent is None or not isinstance(frame.parent.stmt, ast.If) or frame.field != "body":
        return None
    test = frame.parent.stmt.test
    for node in list(ast.walk(test))[:100]:
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn) and _from_outside([node]):
            return test
    return None


def checks_its_input(at: At) -> Said:
    """A function that is given something from outside, and raises or says whether it fits."""
    if not any(_OUTSIDE.search(one.arg) for one in parameters(at.node)):
        return False
    truth = ast.Compare | ast.BoolOp | ast.Constant | ast.Call
    return any(
        isinstance(node, ast.Raise) or (isinstance(node, ast.Return) and isinstance(node.value, truth))
        for node in inside(at.node)
    )


def _from_outside(expressions: Iterable[ast.AST]) -> bool:
    return any(
        _OUTSIDE.search(node.id if isinstance(node, ast.Name) else node.attr)
        for expression in expressions
        for node in ast.walk(expression)
        if isinstance(node, ast.Name | ast.Attribute)
    )


# --- processes and requests ------------------------------------------------------------------------------------------

_REQUESTS: Final = _LISTS.pattern("requests")
_REPLACING: Final = frozenset(f"{one}.{verb}" for one in ("requests", "httpx") for verb in ("put", "delete"))
_CHANGING: Final = _LISTS.words("changing")
"""Names of calls by which something outside is changed."""


def is_checked(at: At) -> Said:
    """A process that is started by argument list, whose failure is looked at."""
    started = start(at.module, at.node, at.site)
    how = None if started is None else how_checked(at.module, started)
    return how and (f"started by argument list; {how[0]}", how[1])


def limits_process_or_request(at: At) -> Said:
    """The call starts a process or sends a request."""
    return start(at.module, at.node, at.site) is not None or _REQUESTS.fullmatch(at.name) is not None


def limits_running(at: At) -> Said:
    """The call waits for a process that runs."""
    waits = at.written == "wait" and at.name.startswith(("subprocess.", "asyncio."))
    return waits or at.written == "communicate"


def changes_something_outside(at: At) -> Said:
    """The call changes something elsewhere, and decorates no function."""
    decorates = isinstance(at.site.stmt, Function) and at.node in at.site.stmt.decorator_list
    return (at.written in _CHANGING or at.name in _REPLACING) and not decorates


# --- questions that are asked again, dissent -------------------------------------------------------------------------


def is_given_lambda(at: At) -> Said:
    """The call is given a lambda."""
    return any(isinstance(one, ast.Lambda) for one in at.node.args)


def is_given_response_model(at: At) -> Said:
    """The call is given the model of a response."""
    return keyword(at.node, "response_model") is not None


def sets_a_value(at: At) -> Said:
    """A name is given more than an empty value, and is no field of a class."""
    return not _is_empty(at.node.value) and not at.site.scope.is_class


def is_no_empty_value(at: At) -> Said:
    """The keyword is given more than an empty value."""
    return not _is_empty(_value(at))


def _is_empty(value: ast.expr | None) -> bool:
    match value:
        case None | ast.Dict(keys=[]) | ast.List(elts=[]):
            return True
        case ast.Constant(value=constant):
            return not constant
    return False


def _value(at: At) -> ast.expr:
    assert at.given is not None
    return at.given.value


# --- engineering at large ---------------------------------------------------------------------------------------------

_RECORDS: Final = _LISTS.words("records")


def is_record(at: At) -> Said:
    """A class whose fields have types."""
    marks = [*at.node.bases, *(one.func if isinstance(one, ast.Call) else one for one in at.node.decorator_list)]
    return any(isinstance(stmt, ast.AnnAssign) for stmt in at.node.body) and not _RECORDS.isdisjoint(
        map(last_name, marks)
    )


def is_settings(at: At) -> Said:
    """A class of settings that are read from the environment."""
    return any(last_name(base) == "BaseSettings" for base in at.node.bases)


def is_environment(at: At) -> Said:
    """The environment is subscripted."""
    return dotted(at.module, at.node.value, at.site.scope) == "os.environ"


def has_message(at: At) -> Said:
    """An exception is raised with a message."""
    return isinstance(at.node.exc, ast.Call) and bool(at.node.exc.args or at.node.exc.keywords)


def is_given_arguments(at: At) -> Said:
    """The call is given arguments."""
    return bool(at.node.args)


def is_given_stderr(at: At) -> Said:
    """The call prints to standard error."""
    return last_name(_value(at)) == "stderr" and bool(at.node.args)


def drops(at: At) -> Said:
    """A handler of everything that does nothing."""
    return _catches_all(at) and all(map(_does_nothing, at.node.body))


def passes_over(at: At) -> Said:
    """A handler of everything with a mere ``return`` or ``continue``."""
    body = at.node.body
    return _catches_all(at) and len(body) == 1 and not _does_nothing(body[0]) and _leaves_silently(body[0])


def _catches_all(at: At) -> bool:
    kind = at.node.type
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind] if kind is not None else []
    names = {dotted(at.module, one, at.site.scope) for one in kinds}
    return kind is None or not names.isdisjoint(("builtins.Exception", "builtins.BaseException"))


def _does_nothing(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.Pass) or (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant))


def _leaves_silently(stmt: ast.stmt) -> bool:
    match stmt:
        case ast.Continue() | ast.Break() | ast.Return(value=None | ast.Constant()):
            return True
        case ast.Return(value=ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Dict(values=parts)):
            return all(isinstance(part, ast.Constant) for part in parts)
    return False


Match = Callable[[At], Said]
MATCHES: Final[Mapping[str, Match]] = {
    name: one for name, one in globals().items() if inspect.isfunction(one) and one.__module__ == __name__
}
"""The functions of this module by their names."""
