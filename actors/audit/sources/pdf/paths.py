"""The paths that a report names (docs/design.md §15.5); pure.

A path is a name with a known ending (``src/state.py``, ``rubric.json``), a well-known name (``Dockerfile``), a folder
with a slash behind it (``tests/``), a name in a font for code below a folder as projects have them (``src/nodes``), or
what a drawn listing of folders names (``listing``).
Addresses, dates, versions, fractions, alternatives (``client/server``), products (``Node.js``) and patterns
(``report_*.md``) are none; nor is what the report says is planned, or not there.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from typing import Final

from pmagent.actors.audit.lists import Lists
from pmagent.actors.audit.sources.pdf.assertion import aside, asserted
from pmagent.actors.audit.sources.pdf.layout import Paragraph
from pmagent.actors.audit.sources.pdf.listing import FOLDERS, parted
from pmagent.actors.audit.sources.pdf.words import listed
from pmagent.contracts.audit_facts import Claim

_LISTS: Final = Lists(__package__, "paths")

CLAIMS_MAX: Final = 500
PATH_CHARS: Final = 300

_ENDINGS: Final = listed(
    """
    py pyi ipynb md rst txt json jsonl ndjson yaml yml toml lock cfg ini conf sh bash ps1 bat js jsx ts tsx mjs
    cjs css scss html htm xml svg png jpg jpeg gif webp pdf csv tsv parquet sql proto graphql rs go
    java kt swift cs cpp cc hpp rb php lua scala vue svelte tf hcl env example sample template tmpl j2 jinja
    jinja2 mmd dot puml drawio gitignore dockerignore gitattributes gitmodules editorconfig ino
    """
)
_SHORT: Final = ("c", "h", "r", "s")
"""Endings that count only behind a folder."""
_NAMES: Final = listed(
    """
    Dockerfile Makefile Procfile Jenkinsfile Vagrantfile justfile CODEOWNERS .gitignore .dockerignore
    .gitattributes .gitmodules .editorconfig .python-version .coveragerc .env.example .flake8 .pylintrc .mailmap
    .nvmrc .npmrc
    """
)
_FOLDERS: Final = listed(
    """
    src source lib libs app apps test tests docs doc scripts script bin config configs conf data dataset
    datasets examples example notebooks packages pkg cmd internal api audit reports report rubric rubrics tools
    tool nodes agents agent graph graphs utils core models prompts services server client frontend backend infra
    deploy deployment migrations assets static public templates resources specs spec schemas schema contracts
    benchmarks bench fixtures hooks .github .vscode .cursor .claude .devcontainer
    """
)
_SYSTEM: Final = listed(
    "tmp usr etc var home dev proc sys root opt mnt bin sbin lib users workspace content app data private"
)
_LOCAL: Final = frozenset((".env", ".git", ".venv", "venv", "node_modules", "__pycache__", ".idea", "site-packages"))
"""Never in a repository, so never claimed to be."""
_PRODUCTS: Final = listed(
    """
    node.js next.js vue.js react.js express.js three.js d3.js nuxt.js nest.js chart.js angular.js backbone.js
    ember.js socket.io asp.net tensorflow.js mermaid.js deno.js bun.js plotly.js discord.js require.js
    electron.js alpine.js p5.js ml5.js moment.js
    """
)
_DOMAIN: Final = _LISTS.pattern("domain")
_ADDRESS: Final = _LISTS.pattern("address")
_TOKEN: Final = _LISTS.pattern("token")
_HYPHENS: Final = {0x2010: "-", 0x2011: "-"}
_LIKELY: Final = re.compile(r"[./\\]|file$", re.IGNORECASE)
_NEAR: Final = 400
"""So far around a path the sentence is looked for that names it."""
_TAIL: Final = re.compile(r"[.,;:!?'\u2019]+$")
_KNOWN: Final = re.compile(rf"(?:.*[^.])?\.(?:{'|'.join(sorted(_ENDINGS))})$", re.IGNORECASE)
_BRIEF: Final = re.compile(rf".*\w\.(?:{'|'.join(_SHORT)})$", re.IGNORECASE)
_NUMBERS: Final = re.compile(r"v?[\d.]+%?[a-z]?$", re.IGNORECASE)


def claims(passages: Iterable[Paragraph]) -> list[Claim]:
    """The paths that the passages name, each once, with the page that does first; at most ``CLAIMS_MAX``."""
    first: dict[str, int] = {}
    for passage in passages:
        if aside(passage.heading, *passage.above):
            continue
        if len(first) < CLAIMS_MAX:
            first |= dict.fromkeys(named(passage, first), passage.page)
    return [Claim(path=path, page=page) for path, page in list(first.items())[:CLAIMS_MAX]]


def named(passage: Paragraph, known: Container[str] = ()) -> Iterator[str]:
    """The paths that a passage names, in its order, each once, without those ``known``; with / between names, and no ./
    before them."""
    text, in_listings = parted(passage.text)
    said = {path for path in in_listings if path not in known}
    yield from (path for path in dict.fromkeys(in_listings) if path in said)
    text = text.translate(_HYPHENS)
    text = _ADDRESS.sub(lambda found: " " * len(found.group()), text)
    for found in _TOKEN.finditer(text):
        token = _TAIL.sub("", found.group())
        if not _LIKELY.search(token):
            continue
        start, end = found.start(), found.start() + len(token)
        path = _path(token, _in_code(passage, text, start, end))
        if path is None or path in known or path in said:
            continue
        if _claimed(passage, text, start, end):
            said.add(path)
            yield path


def _claimed(passage: Paragraph, text: str, start: int, end: int) -> bool:
    """Whether what stands there is said to be in the repository. In a listing of code a mere name may be any file that
    the code reads or writes, unless its line begins with it."""
    if passage.code:
        line = text[text.rfind("\n", 0, start) + 1 : start]
        return "/" in text[start:end] or not line.strip("`'\" ")
    first, last = _sentence(text, start, end)
    return asserted(text[first:last], start - first, end - first)


def _in_code(passage: Paragraph, text: str, start: int, end: int) -> bool:
    """Whether it stands in a font for code, or between backticks."""
    if any(begin <= start and end <= stop for begin, stop in passage.codes):
        return True
    return text[start - 1 : start] == "`" and text[end : end + 1] == "`"


def _sentence(text: str, start: int, end: int) -> tuple[int, int]:
    """Where the sentence around a token begins and ends; dots inside words end none."""
    before = max(
        (found.end() for found in re.finditer(r"[.!?]\s|\n", text[max(0, start - _NEAR) : start])), default=None
    )
    after = re.search(r"[.!?](?=\s|$)|\n", text[end : end + _NEAR])
    first = max(0, start - _NEAR) + before if before is not None else max(0, start - _NEAR)
    return first, end + after.end() if after else min(len(text), end + _NEAR)


def _path(token: str, in_code: bool) -> str | None:
    """The path that ``token`` is, or None."""
    path = token.replace("\\", "/")
    if len(path) > PATH_CHARS or "//" in path or path.lower() in _PRODUCTS:
        return None
    while path.startswith("./"):
        path = path[2:]
    names = [name for name in path.split("/") if name]
    if not names or any(name in {".", "..."} for name in names) or all(_NUMBERS.match(name) for name in names):
        return None
    absolute = path.startswith("/") or path[1:2] == ":"
    if (absolute and (path[1:2] == ":" or names[0].lower() in _SYSTEM)) or path.startswith("~"):
        return None
    return path if _is_path(names, path, in_code, absolute) else None


def _is_path(names: list[str], path: str, in_code: bool, absolute: bool) -> bool:
    last = names[-1]
    if any(name in _LOCAL for name in names):
        return False
    if len(names) > 1 and (_DOMAIN.search(names[0]) or any(_ended(name) for name in names[:-1])):
        return False
    if path.endswith("/"):
        return not absolute and _is_folder(names, in_code)
    if last in _NAMES:
        return True
    if _KNOWN.match(last) and (len(names) > 1 or not last.startswith(".") or last.count(".") > 1):
        return len(names) > 1 or not re.fullmatch(r"[A-Z]?\.\w+", last)
    if len(names) == 1:
        return in_code and bool(_BRIEF.match(last))
    if _BRIEF.match(last):
        return True
    return not absolute and in_code and _below_known(names)


def _ended(name: str) -> bool:
    """Whether a name between slashes has a file's ending: then these are alternatives (``state.py/graph.py``)."""
    return bool(_KNOWN.match(name)) and not name.startswith(".")


def _is_folder(names: list[str], in_code: bool) -> bool:
    if any(len(name) < 2 or _NUMBERS.match(name) for name in names):
        return False
    return in_code or len(names) > 1 or names[0] in _FOLDERS or names[0].startswith((".", "_"))


def _below_known(names: list[str]) -> bool:
    """Whether names without an ending are a path all the same: ``src/nodes``, but not ``input/output``."""
    if not all(re.fullmatch(r"[a-z0-9_.@+-]+", name) for name in names):
        return False
    return names[0] in FOLDERS or (names[0] in _FOLDERS and len(names) > 2)
