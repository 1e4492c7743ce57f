"""Whose code is about to run: ours, or that of the directory we were started in (docs/design.md §10).

Our packages have common names, and we run inside repositories that agents write. A folder ``events/`` there
would be imported instead of ours by ``python -m pmagent`` or ``PYTHONPATH=. pmagent``. So this module, which
imports nothing but what the interpreter has loaded already, runs before any other of ours.

What it cannot see: the name ``pmagent`` itself (this file would not run), and standard modules that were
shadowed before it. Both are ruled out by ``python -I``, which is how we start every process.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import NamedTuple

FIRST_PARTY = ("pmagent", "actors", "contracts", "events", "firmware", "projections", "replay")
"""Every top-level package of this distribution."""

EXIT_SECURITY = 7
"""Security violation (docs/design.md §11.4). Stated here too: no other module of ours may be imported yet."""

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
"""Where this distribution's packages lie: ``site-packages``, or the source tree of an editable install."""


class Misplaced(NamedTuple):
    """A first-party package that would not come from ``ROOT``; ``found`` is None when there is none."""

    package: str
    found: str | None


def misplaced(root: str = ROOT) -> list[Misplaced]:
    """First-party packages that Python would take from elsewhere than ``root``. Imports none of them."""
    wrong = []
    for package in FIRST_PARTY:
        found = _location(package)
        if found != os.path.join(root, package):
            wrong.append(Misplaced(package, found))
    return wrong


def check() -> None:
    """Exit with 7 and one clear message if a first-party package would come from elsewhere.

    Afterwards the directory we were started in is no place to import from: a ``msgspec.py`` there is not what
    we depend on either.
    """
    wrong = misplaced()
    if wrong:
        for package, found in wrong:
            where = "is missing" if found is None else f"would come from {found!a}"
            sys.stderr.write(f"pmagent: security: package {package!r} {where}, not from {ROOT!a}\n")
        sys.stderr.write("pmagent: not started; use `python -I -m pmagent`, and unset PYTHONPATH\n")
        raise SystemExit(EXIT_SECURITY)
    sys.path[:] = trusted(sys.path, os.getcwd())


def trusted(path: list[str], directory: str) -> list[str]:
    """``path`` without the entries for ``directory`` that come before the standard library.

    Those were put there by ``-m``, ``-c`` or PYTHONPATH. The root of an editable install stays: it is ours.
    """
    here = os.path.realpath(directory)
    if here == ROOT:
        return path
    standard = os.path.dirname(os.path.realpath(os.__file__))
    kept, before_standard = [], True
    for entry in path:
        place = os.path.realpath(entry or directory)
        before_standard = before_standard and place != standard
        if not (before_standard and place == here):
            kept.append(entry)
    return kept


def _location(package: str) -> str | None:
    """The real directory that ``import package`` would use, or None. A plain module counts as its file."""
    try:
        spec = find_spec(package)
    except ValueError:  # already imported, by something that gave it no spec: not by Python's own import
        return None
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or [])
    if len(places) == 1 and spec.origin and os.path.basename(spec.origin) == "__init__.py":
        return os.path.realpath(places[0])
    # A namespace package has no file, and may be spread over several places: name the first.
    return os.path.realpath(spec.origin or places[0]) if (spec.origin or places) else None
