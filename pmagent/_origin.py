"""The code that is about to run: ours, or that of the directory we were started in (docs/design.md §10).

We run inside repositories that agents write. A ``msgspec.py`` there would be imported instead of what we depend on by
``python -m pmagent`` or ``PYTHONPATH=. pmagent``. So this module, which imports nothing but what the interpreter has
loaded already, runs before any other of ours.

It cannot see two things: the name ``pmagent`` itself (this file would not run), and standard modules that were
shadowed before it. Both are ruled out by ``python -I``, which is how we start every process.
"""

from __future__ import annotations

import os
import sys

PACKAGES = ("actors", "contracts", "events", "firmware", "projections", "replay")
"""The packages below ``pmagent`` that are folders of their own in the repository: links lead to them there."""

EXIT_SECURITY = 7
"""Security violation (docs/design.md §11.4). Stated here too: no other module of ours may be imported yet."""

PLACE = os.path.dirname(os.path.abspath(__file__))
"""Where the package lies."""

ROOT = os.path.dirname(os.path.realpath(PLACE))
"""The folder that holds it: ``site-packages``, or the source tree of an editable install."""


def missing(place: str = PLACE) -> list[str]:
    """The packages that are not there: a checkout without symbolic links has files in their place."""
    return [package for package in PACKAGES if not os.path.isfile(os.path.join(place, package, "__init__.py"))]


def check() -> None:
    """Exit with 7 and one clear message if a package of ours is not there.

    Afterwards the directory we were started in is no place to import from: a ``msgspec.py`` there is not what
    we depend on.
    """
    if absent := missing():
        sys.stderr.write(f"pmagent: not started: {', '.join(absent)} not found in {PLACE!a}\n")
        sys.stderr.write("pmagent: install it anew; a checkout needs symbolic links (git config core.symlinks true)\n")
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
