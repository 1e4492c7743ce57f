"""What a term that a rubric quotes is looked for as: a path, a name, a call, or a phrase; pure."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Final, Literal

import msgspec

Kind = Literal["path", "name", "call", "keyword", "phrase"]

_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_DOTTED: Final = re.compile(r"(\.?)([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(\s*(?:\.\.\.|…)?\s*\))?", re.ASCII)
_PATH: Final = re.compile(
    r"(?:[\w.@+-]+/)+[\w.@+-]*|[\w.@+-]+\.(?:py|pyi|ipynb|toml|lock|md|txt|json|ya?ml|cfg|ini|sh|env)|\.[\w.-]+",
    re.ASCII,
)
_HOLE: Final = re.compile(r"<[^<>]{1,40}>")
_RECEIVERS: Final = frozenset((
    "agent", "app", "builder", "chain", "client", "cls", "g", "graph", "instance", "llm", "model", "obj", "self",
    "sg", "workflow",
))  # fmt: skip
"""Names of variables in a rubric's examples: what is meant is the method, whatever the variable is called."""


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """``term`` as it is quoted. ``names``: of a name its last parts, by which candidates are known (of a call, that of
    what is called); ``dotted`` the whole chain that a name must end with. ``arguments``: of a call the first ones, of a
    keyword its value. ``phrase``: words in lower case, with single blanks; ``joined`` the same as one word."""

    term: str
    kind: Kind
    names: tuple[str, ...] = ()
    dotted: str = ""
    arguments: tuple[str, ...] = ()
    phrase: str = ""
    joined: str = ""


def pattern(term: str) -> Pattern:
    """How ``term`` is looked for."""
    stripped = term.strip().rstrip(":;,")
    named = _DOTTED.fullmatch(stripped)
    if _PATH.fullmatch(stripped) and (named is None or "/" in stripped or _is_file(stripped)):
        return Pattern(term=term, kind="path", phrase=stripped.removeprefix("./"))
    if named is not None:
        return _name(term, named[2], leading=bool(named[1]))
    return _expression(term, stripped) or _phrase(term, stripped)


def like(wanted: str, node: ast.expr) -> bool:
    """Whether an argument is the ``wanted`` one, given as source; <words in angle brackets> in a text stand for
    anything."""
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "<x>" for part in node.values]
        return _alike(wanted, "".join(str(part) for part in parts))
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _alike(wanted, node.value)
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Constant)):
        return False  # nothing longer is quoted, and to write out a large tree takes long
    return ast.unparse(node) == wanted


def squashed(name: str) -> str:
    """A name or phrase as one word: ``evidence_missing``, ``EvidenceMissing`` and "Evidence Missing" are the same."""
    return re.sub(r"[\s_-]", "", name).lower()


def _is_file(text: str) -> bool:
    return bool(re.search(r"\.(?:py|pyi|ipynb|toml|lock|md|txt|json|ya?ml|cfg|ini|sh)$", text)) or text.startswith(
        ".env"
    )


def _name(term: str, dotted: str, *, leading: bool) -> Pattern:
    head, _, last = dotted.rpartition(".")
    if leading or head in _RECEIVERS:
        head = ""
    whole = f"{head}.{last}" if head else last
    return Pattern(term=term, kind="name", names=(last,), dotted=whole)


def _expression(term: str, text: str) -> Pattern | None:
    """A call with arguments, or ``name=value``; None where it is neither."""
    source = text.removeprefix(".").removeprefix("@")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(f"f({source})" if re.match(r"\w+\s*=[^=]", source) else source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(tree, ast.Call):
        return None
    if len(tree.keywords) == 1 and not tree.args and isinstance(tree.func, ast.Name) and tree.func.id == "f":
        only = tree.keywords[0]
        if only.arg is None:
            return None
        return Pattern(term=term, kind="keyword", names=(only.arg,), arguments=(_source(only.value),))
    named = _DOTTED.fullmatch(ast.unparse(tree.func))
    if named is None:
        return None
    base = _name(term, named[2], leading=text.startswith("."))
    arguments = tuple(_source(one) for one in tree.args if not _is_ellipsis(one))
    return msgspec.structs.replace(base, kind="call", arguments=arguments) if arguments else base


def _source(node: ast.expr) -> str:
    """An argument as ``like`` wants it: a text as it is, anything else as source."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _phrase(term: str, text: str) -> Pattern:
    phrase = " ".join(text.lower().split())
    word = squashed(text)
    return Pattern(term=term, kind="phrase", phrase=phrase, joined=word if _NAME.fullmatch(word) else "")


def _alike(wanted: str, given: str) -> bool:
    parts = [re.escape(part) for part in _HOLE.split(wanted)]
    return re.fullmatch(".*".join(parts), given, re.DOTALL) is not None
