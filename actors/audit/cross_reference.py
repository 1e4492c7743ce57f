r"""Holds the paths that a report names against the files of the repository (docs/design.md §15.5); pure.

| a claimed path, ``./`` and ``\`` made plain                        | is                        |
|--------------------------------------------------------------------|---------------------------|
| absolute, or with ``..``, or empty                                 | hallucinated              |
| a file's path, letter for letter                                   | verified                  |
| a folder's path: some file's path goes on after it with ``/``      | verified                  |
| the end, at a ``/``, of just one file's (or folder's) path         | verified                  |
| the end of several                                                 | hallucinated, ambiguous   |
| anything else: a part of a path, another case                      | hallucinated              |

With ``/`` behind it, a claim can only be a folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypedDict

FILES: Final = "files"
"""The key of the evidence under which the repository's paths are."""


class CrossReferenced(TypedDict):
    """Each claimed path is in one of ``verified`` and ``hallucinated``, as it was claimed, in the order of the claims.
    ``ambiguous`` are those of the hallucinated that end several paths, so that none can be said to be meant."""

    verified: list[str]
    hallucinated: list[str]
    ambiguous: list[str]


def cross_reference(claimed_paths: Iterable[str], repo_evidence: Mapping[str, Iterable[str]]) -> CrossReferenced:
    """Which of the claimed paths exist. ``repo_evidence["files"]``: the repository's paths, with / between names;
    KeyError where there is no such entry."""
    files = _Ends(repo_evidence[FILES])
    result = CrossReferenced(verified=[], hallucinated=[], ambiguous=[])
    for claimed in dict.fromkeys(claimed_paths):
        count = files.meant(claimed)
        result["verified" if count == 1 else "hallucinated"].append(claimed)
        if count > 1:
            result["ambiguous"].append(claimed)
    return result


class _Ends:
    """Paths, to be found by their ends."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._files = {path for path in paths if path}
        self._folders = {path[:at] for path in self._files for at, letter in enumerate(path) if letter == "/" and at}
        self._by_name: dict[str, list[tuple[str, bool]]] = {}
        for path in self._files:
            self._by_name.setdefault(path.rpartition("/")[2], []).append((path, True))
        for path in self._folders:
            self._by_name.setdefault(path.rpartition("/")[2], []).append((path, False))

    def meant(self, claimed: str) -> int:
        """How many paths the claim may mean; an exact one is the only one."""
        path = claimed.strip().replace("\\", "/")
        if path.startswith("/") or path[1:2] == ":":
            return 0
        names = [name for name in path.split("/") if name not in {"", "."}]
        if not names or ".." in names:
            return 0
        only_folder = path.endswith("/")
        path = "/".join(names)
        if path in self._folders or (path in self._files and not only_folder):
            return 1
        end = f"/{path}"
        found = [is_file for each, is_file in self._by_name.get(names[-1], ()) if each.endswith(end)]
        return sum(not is_file for is_file in found) if only_folder else len(found)
