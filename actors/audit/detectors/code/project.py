"""Engineering at large: what of it stands in files by their names, and what in the code; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pmagent.actors.audit.detectors.code.engineering import ProjectReader
from pmagent.actors.audit.detectors.code.excerpts import clean
from pmagent.actors.audit.detectors.code.parse import role_of
from pmagent.actors.audit.detectors.code.secret_literals import secrets_in_settings
from pmagent.actors.audit.lists import Lists
from pmagent.contracts.audit_facts import Finding

_LISTS: Final = Lists(__package__, "project")

__all__ = ["ProjectReader", "Read", "project_findings"]

Read = Callable[[str], bytes | None]
"""The content of a tracked file by its path; None where it cannot be read."""

_READ_MAX: Final = 200_000
_WORKFLOWS: Final = _LISTS.pattern("workflows")
_LOCKS: Final = _LISTS.pattern("locks")
_LICENCES: Final = re.compile(r"(?:LICEN[CS]E|COPYING|UNLICENSE)(?:[.-][\w.-]+)?", re.IGNORECASE)
_READMES: Final = re.compile(r"README(?:\.(?:md|rst|txt|adoc))?", re.IGNORECASE)
_EXAMPLES: Final = _LISTS.pattern("examples")
_COMMITTED: Final = re.compile(r"(?:.*/)?\.env(?:\.(?!example|sample|template|dist)\w+)?")
_LINTERS: Final = {
    "ruff.toml": "ruff", ".ruff.toml": "ruff", ".flake8": "flake8", ".pylintrc": "pylint", "pylintrc": "pylint",
    "mypy.ini": "mypy", ".mypy.ini": "mypy", "pyrightconfig.json": "pyright", ".pre-commit-config.yaml": "pre-commit",
}  # fmt: skip
_SECTIONS: Final = _LISTS.pattern("sections")
_RUNNING: Final = _LISTS.pattern("running")
"""A command, at the beginning of a line or behind a backtick: prose may well say ``make sure``."""
_USAGE: Final = re.compile(r"^```(?:python|py)\b", re.MULTILINE)
_PINNED: Final = re.compile(r"^[A-Za-z0-9][\w.\[\],-]*\s*==\s*[^\s*]+", re.MULTILINE)
_NAMED: Final = re.compile(r"^[A-Za-z0-9][\w.\[\],-]*", re.MULTILINE)


def project_findings(
    files: Sequence[str], read: Read, code: ProjectReader, settings: Sequence[Finding]
) -> Iterator[Finding]:
    """The findings about the project in ``files`` (tracked paths) and ``code``: project.tests, ci, lock, lint, readme,
    license, environment (``settings``: where the code reads it), and security.secret of settings that were committed.
    ``read`` is asked for a few files."""
    files = sorted(files)
    yield from _tests(code)
    yield from _ci(files, read)
    yield from _lock(files, read)
    yield from _lint(files, read)
    yield from _readme(files, read)
    yield from (
        Finding(goal="project.license", path=path, line=0, text=path) for path in files if _LICENCES.fullmatch(path)
    )
    yield from _settings(files, settings)
    for path in files:
        if _COMMITTED.fullmatch(path) and role_of(path) == "code":
            yield from secrets_in_settings(path, _text(read, path))


def _tests(code: ProjectReader) -> Iterator[Finding]:
    """Tests count where most of them assert something."""
    if not code.tests or not code.asserting:
        return
    path, line, name = code.tests[0]
    text = f"{len(code.tests)} tests, {code.asserting} of them assert something; the first is {name}"
    sure = 1.0 if 2 * code.asserting >= len(code.tests) else 0.5
    yield Finding(goal="project.tests", path=path, line=line, text=clean(text), confidence=sure)


def _ci(files: Sequence[str], read: Read) -> Iterator[Finding]:
    """Workflows; 0.7 for one in which no test or linter can be seen, and for what runs only where it is called."""
    for path in files:
        if not _WORKFLOWS.fullmatch(path):
            continue
        text = _text(read, path)
        checks = [word for word in ("pytest", "tox", "nox", "unittest", "ruff", "mypy", "make", "test") if word in text]
        local = path in {"noxfile.py", "tox.ini"}
        says = f"{path} runs {', '.join(checks[:4])}" if checks else path
        yield Finding(
            goal="project.ci", path=path, line=0, text=says, confidence=0.5 if local else 0.95 if checks else 0.7
        )


def _lock(files: Sequence[str], read: Read) -> Iterator[Finding]:
    """Lock files; requirements count where nine of ten lines pin one version."""
    for path in files:
        if not _LOCKS.fullmatch(path):
            continue
        if path.rpartition("/")[2].startswith("requirements") and path.endswith(".txt"):
            text = _text(read, path)
            pinned, named = len(_PINNED.findall(text)), len(_NAMED.findall(text))
            if not pinned or 10 * pinned < 9 * named:
                continue
            yield Finding(goal="project.lock", path=path, line=0, text=f"{pinned} of {named} pinned", confidence=0.8)
        else:
            yield Finding(goal="project.lock", path=path, line=0, text=path)


def _lint(files: Sequence[str], read: Read) -> Iterator[Finding]:
    for path in files:
        if path in _LINTERS:
            yield Finding(goal="project.lint", path=path, line=0, text=f"{_LINTERS[path]} is configured")
        elif path in {"pyproject.toml", "setup.cfg", "tox.ini"}:
            text = _text(read, path)
            for match in _SECTIONS.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                says = f"{match[1] or match[2]} is configured"
                yield Finding(goal="project.lint", path=path, line=line, text=says)
                break


def _readme(files: Sequence[str], read: Read) -> Iterator[Finding]:
    """A README at the top that says by what command it is run."""
    for path in files:
        if _READMES.fullmatch(path):
            text = _text(read, path)
            match = _RUNNING.search(text)
            if not match and (usage := _USAGE.search(text)):
                line = text.count("\n", 0, usage.start()) + 1
                yield Finding(goal="project.readme", path=path, line=line, text="shows its use in code", confidence=0.7)
            if match:
                line = text.count("\n", 0, match.start(1)) + 1
                text = clean(f"says how to run it: {match[1].strip()[:200]}")
                yield Finding(goal="project.readme", path=path, line=line, text=text, confidence=0.9)


def _settings(files: Sequence[str], reads: Sequence[Finding]) -> Iterator[Finding]:
    """The environment is read, and an example of it is there; either alone is half."""
    examples = [path for path in files if _EXAMPLES.fullmatch(path)]
    if examples and reads:
        places = ", ".join(f"{one.path}:{one.line}" for one in reads[:5])
        text = f"{examples[0]} names settings; the environment is read at {places}"
        yield Finding(goal="project.environment", path=examples[0], line=0, text=clean(text))
    elif reads:
        one = reads[0]
        text = f"the environment is read, no example names its variables\n{one.text}"
        yield Finding(goal="project.environment", path=one.path, line=one.line, text=text[:2_000], confidence=0.5)
    elif examples:
        text = f"{examples[0]} names settings; no code was found that reads the environment"
        yield Finding(goal="project.environment", path=examples[0], line=0, text=text, confidence=0.5)


def _text(read: Read, path: str) -> str:
    return (read(path) or b"")[:_READ_MAX].decode("utf-8", "replace")
