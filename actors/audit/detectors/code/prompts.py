"""Prompts in the code: long texts that are given to models, and the persona that each of them speaks to; pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from pmagent.actors.audit.detectors.code.model_calls import talks_to_models
from pmagent.actors.audit.detectors.code.names import calls_of, last_name
from pmagent.actors.audit.detectors.code.parse import role_of
from pmagent.actors.audit.detectors.code.scopes import Function, Module, Scope, Site
from pmagent.actors.audit.detectors.code.strings import with_holes
from pmagent.actors.audit.lists import Lists

_LISTS: Final = Lists(__package__, "prompts")

CHARS_MIN: Final = 50
"""Shorter texts are no prompts of a persona."""
CHARS_MAX: Final = 20_000
ADDRESSED_MAX: Final = 80
"""Within so many characters a text that speaks to somebody says "you"."""
OPENING_MAX: Final = 400
"""Within so many characters a prompt says to whom it speaks."""
_OPENING: Final = _LISTS.pattern("opening")
"""``You are the …`` at the beginning of a sentence, and whom it names."""
_ADDRESSED: Final = re.compile(r"\b(?:you|your)\b", re.IGNORECASE)
_KEYWORDS: Final = _LISTS.words("keywords")
_PROMPT_NAME: Final = _LISTS.pattern("prompt_name")
_NOISE: Final = _LISTS.pattern("noise")
_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
ROLE: Final = _LISTS.pattern("role")
_SAME_ROLE: Final = (
    ("prosecutor", re.compile(r"prosecut", re.IGNORECASE)),
    ("defense", re.compile(r"defen[sc]e|defender|defendant", re.IGNORECASE)),
    ("tech lead", re.compile(r"tech(?:nical)?[_ ]?lead", re.IGNORECASE)),
    ("optimist", re.compile(r"optimis", re.IGNORECASE)),
    ("pessimist", re.compile(r"pessimis", re.IGNORECASE)),
    ("skeptic", re.compile(r"s[kc]eptic", re.IGNORECASE)),
    ("pragmatist", re.compile(r"pragmatist", re.IGNORECASE)),
    ("contrarian", re.compile(r"contrarian", re.IGNORECASE)),
)
"""Roles that are one persona by whatever words they are introduced."""
_STOPS: Final = frozenset({"who", "that", "for", "in", "with", "and", "of", "on", "responsible", "tasked", "agent"})
FILE_CHARS_MAX: Final = 100_000
_PROMPT_ENDINGS: Final = _LISTS.words("prompt_endings")
_PROMPT_FOLDER: Final = re.compile(r"(?:\w+_)?(?:prompts?|personas?|judges|system_prompts)")
_PROMPT_FILE: Final = re.compile(r"prompt|persona", re.IGNORECASE)


class Prompt(NamedTuple):
    """A text given to a model. ``persona``: whom it speaks to, in lower case; "" where that is not said.
    ``said``: whom its opening ``You are …`` names, or whom it is for where it stands beside others and speaks to
    somebody, or is a system message; "" where it is neither. ``slot``: it names by a placeholder, so that it is one for
    all. ``judges``: the persona judges, by its name. ``family``: the texts beside which it stands: values of a
    dict, constants of a module, an attribute of several classes. ``variable``: the name under which the program gets at
    it, "" where it is written where it is used."""

    persona: str
    text: str
    path: str
    line: int
    said: str
    slot: bool
    judges: bool
    family: str = ""
    variable: str = ""

    @property
    def label(self) -> str:
        """``prosecutor (judges.py:12)``."""
        return f"{self.persona} ({self.path}:{self.line})"


def _prompt(persona: str, text: str, place: tuple[str, int], said: str, family: str = "", variable: str = "") -> Prompt:
    judges = ROLE.search(persona) is not None
    return Prompt(persona, text, *place, said, _has_slot(text), judges, family, variable)


def prompts_in(module: Module) -> Iterator[Prompt]:
    """The prompts of a file, each text once for a persona."""
    seen: set[tuple[str, str]] = set()
    families, systems = _families(module), _systems(module)
    for name, expression, site, entry in _candidates(module):
        family = entry or families.get(expression, "")
        text = with_holes(module, expression, site.scope)
        if text is None or len(text) < CHARS_MIN:
            continue
        text = text[:CHARS_MAX]
        opening = _OPENING.search(text[:OPENING_MAX])
        named = family or (_PROMPT_NAME.search(name) and ROLE.search(name + _around(site)))
        if opening is None and not named and not _has_slot(text):
            continue
        said = _same(_said(opening))
        persona = _whom(name, said, site)
        variable = _variable(site)
        if family and not said and (_ADDRESSED.search(text[:ADDRESSED_MAX]) or variable in systems):
            said = persona
        if (persona, text) not in seen:
            seen.add((persona, text))
            line = getattr(expression, "lineno", site.line)
            yield _prompt(persona, text, (module.source.path, line), said, family, variable)


def _systems(module: Module) -> set[str]:
    """The names that stand in a system message."""
    found: set[str] = set()
    for site in (*module.sites(ast.Tuple), *module.sites(ast.Dict)):
        match site.node:
            case ast.Tuple(elts=[ast.Constant(value="system"), value]):
                found |= _names(value)
            case ast.Dict(values=[ast.Constant(value="system"), value]):
                found |= _names(value)
    for call, _site in calls_of(module, ("SystemMessage",)):
        if call.args and last_name(call.func) == "SystemMessage":
            found |= _names(call.args[0])
    return found


def _names(value: ast.expr) -> set[str]:
    nodes = (node for node in ast.walk(value) if isinstance(node, ast.Name | ast.Attribute))
    return {last_name(node) for node in nodes}


def _variable(site: Site) -> str:
    """The module's or class's name in which a text lies."""
    match site.stmt:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name if site.scope.function is None else ""
    return ""


def _families(module: Module) -> dict[ast.expr, str]:
    """Texts that stand side by side under names of their own: constants of a module that talks to models, or an
    attribute of several of its classes; each with the name of its family."""
    rows: dict[str, list[ast.expr]] = {}
    for site in module.sites(ast.Assign, ast.AnnAssign):
        name, value = _variable(site), getattr(site.node, "value", None)
        if name and isinstance(value, ast.expr) and _may_be_long(value) and not isinstance(value, ast.Call):
            row = f"{module.source.path}:{name}" if site.scope.is_class else f"{module.source.path}:"
            rows.setdefault(row, []).append(value)
    talks = talks_to_models(module)
    return {value: row for row, values in rows.items() if talks and len(values) > 1 for value in values}


def _candidates(module: Module) -> Iterator[tuple[str, ast.expr, Site, str]]:
    """Texts that may be long, with the name under which they stand: variable, key, keyword, function; and their
    family."""
    found: list[tuple[str, Any, Site, str]] = []
    for site in (*module.sites(ast.Assign), *module.sites(ast.AnnAssign), *module.sites(ast.Return)):
        node: Any = site.node
        if not _may_be_long(node.value):
            continue
        if type(node) is ast.Return:
            if isinstance(site.scope.node, Function):
                found.append((site.scope.node.name, node.value, site, ""))
        else:
            target = node.targets[-1] if type(node) is ast.Assign else node.target
            key = _key(target) if type(node) is ast.Assign else ""
            found.append((last_name(target) or key, node.value, site, ""))
    for call, site in module.calls():
        if any(map(_may_be_long, call.args)) or any(_may_be_long(one.value) for one in call.keywords):
            found += [(name, value, site, "") for name, value in _given(call)]
    for site in (*module.sites(ast.Dict), *module.sites(ast.Tuple)):
        match site.node:
            case ast.Dict() as mapping if any(map(_may_be_long, mapping.values)):
                family = _family(module, mapping, site)
                found += [(name, value, site, family) for name, value in _entries(mapping.keys, mapping.values)]
            case ast.Tuple(elts=[ast.Constant(value="system"), value]):
                found.append(("system", value, site, ""))
    found.sort(key=lambda one: one[2].place)
    yield from (one for one in found if _may_be_long(one[1]))


def _family(module: Module, mapping: ast.Dict, site: Site) -> str:
    """The place of a dict whose name says that it holds prompts, and that holds two long texts; else ""."""
    match site.stmt:
        case ast.Assign(targets=[*_, target], value=value) | ast.AnnAssign(target=target, value=value):
            long = [one for one in mapping.values if _may_be_long(one)]
            named = _PROMPT_NAME.search(last_name(target)) or talks_to_models(module)
            if value is mapping and len(long) >= 2 and named:
                return f"{module.source.path}:{mapping.lineno}"
    return ""


def _given(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    written = last_name(call.func)
    named = next(
        (
            one.value.value
            for one in call.keywords
            if one.arg in {"name", "role", "judge", "persona"}
            and isinstance(one.value, ast.Constant)
            and isinstance(one.value.value, str)
        ),
        "",
    )
    for one in call.keywords:
        if one.arg in _KEYWORDS or (written == "SystemMessage" and one.arg == "content"):
            yield named or one.arg or "", one.value
    if written in {"SystemMessage", "SystemMessagePromptTemplate"} and call.args:
        yield "system", call.args[0]
    if written in {"from_template", "PromptTemplate", "Template"} and call.args:
        yield "prompt", call.args[0]
    if named and call.args[1:]:  # Persona("Prosecutor", "You are …")
        yield from ((named, one) for one in call.args)
    elif len(call.args) >= 2 and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str):
        first = call.args[0].value
        if len(first) <= 40 and written[:1].isupper():
            yield from ((first, one) for one in call.args[1:])


def _entries(keys: list[ast.expr | None], values: list[ast.expr]) -> Iterator[tuple[str, ast.expr]]:
    said = {
        key.value: value
        for key, value in zip(keys, values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }
    role = said.get("role")
    if isinstance(role, ast.Constant) and role.value in {"user", "assistant", "human", "ai", "tool"}:
        return
    whom = next((said[key] for key in ("persona", "judge", "name") if key in said), None)
    named = whom.value if isinstance(whom, ast.Constant) and isinstance(whom.value, str) else ""
    for key, value in zip(keys, values, strict=True):
        written = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else last_name(key)
        yield f"{named} prompt" if named and written in _KEYWORDS else named or written, value


def _key(target: ast.expr) -> str:
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return str(target.slice.value)
    return ""


_MADE: Final = frozenset((ast.JoinedStr, ast.BinOp, ast.Call, ast.NamedExpr))
"""Kinds of expressions that may put a text together."""


def _may_be_long(expression: ast.expr | None) -> bool:
    """Whether it is worth folding: most expressions are no text at all."""
    if isinstance(expression, ast.Constant):
        return isinstance(expression.value, str) and len(expression.value) >= CHARS_MIN
    return type(expression) in _MADE


def _persona(name: str) -> str:
    """A name without the words that every prompt's name has: ``PROSECUTOR_SYSTEM_PROMPT`` is ``prosecutor``."""
    words = "_".join(word.lower() for word in _WORD.findall(name))
    before = ""
    while words != before:
        before = words
        words = _NOISE.sub("", words).strip("_")
    return words.replace("_", " ")


def _said(opening: re.Match[str] | None) -> str:
    """The persona that a text's opening names: at most four words."""
    if opening is None:
        return ""
    words = re.findall(r"[A-Za-z][\w'-]*", opening[1])
    cut = next((number for number, word in enumerate(words) if word.lower() in _STOPS), 4)
    return " ".join(words[: min(cut, 4)]).lower()


def _whom(name: str, said: str, site: Site) -> str:
    """The persona by the name under which its text stands; by the function or class around, where that is a role and
    the name is none, or has the text as an attribute; by what the text says."""
    if isinstance(site.scope.node, ast.ClassDef) and _variable(site):
        return _same(_persona(site.scope.node.name))
    by_name = _same(_persona(name))
    if ROLE.search(by_name):
        return by_name
    return _same(_around(site)) or by_name or said


def _same(persona: str) -> str:
    """One name for a role, however it is introduced: ``ruthless prosecutor`` is the ``prosecutor``."""
    return next((role for role, words in _SAME_ROLE if words.search(persona)), persona)


def _around(site: Site) -> str:
    """The persona by the function or class in which the text stands."""
    scope: Scope | None = site.scope
    while scope is not None:
        if isinstance(scope.node, Function | ast.ClassDef):
            found = _persona(scope.node.name)
            if found and ROLE.search(found):
                return found
        scope = scope.parent
    return ""


def _has_slot(text: str) -> bool:
    """Whether the opening says ``You are {…}``: one text for all."""
    return re.search(r"(?:you are|act as)\s+(?:the|an?)?\s*\{[\w.\[\]'\"]*\}", text[:400], re.IGNORECASE) is not None


# --- in files of their own ----------------------------------------------------------------------------------------


def is_prompt_file(path: str) -> bool:
    """Whether a file may hold prompts, by its name: text in a folder of prompts or personas, or named for one."""
    *folders, name = path.split("/")
    stem, _dot, ending = name.rpartition(".")
    if ending.lower() not in _PROMPT_ENDINGS or role_of(path) != "code":
        return False
    return any(_PROMPT_FOLDER.fullmatch(folder.lower()) for folder in folders) or _PROMPT_FILE.search(stem) is not None


def prompts_in_text(path: str, text: str) -> Iterator[Prompt]:
    """The prompts of a text file: one from each ``You are …`` to the next, or the whole file where there is one."""
    text = text[:FILE_CHARS_MAX]
    openings = list(_OPENING.finditer(text))
    if not openings:
        return
    named = _same(_persona(path.rpartition("/")[2].rpartition(".")[0]))
    whole = len({_same(_said(one)) for one in openings}) == 1
    starts = [0] if whole else [one.start() for one in openings]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end][:CHARS_MAX]
        said = _same(_said(_OPENING.search(part)))
        if len(part) >= CHARS_MIN and (said or named):
            persona = named if whole and ROLE.search(named) else said or named
            yield _prompt(persona, part, (path, text.count("\n", 0, start) + 1), said)
