"""Which repository is meant, and what its report is called (docs/design.md §15.4)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.repository.address import Address, address
from pmagent.actors.audit.sources.repository.clone import opened
from pmagent.contracts.audit_events import AuditLimits
from pmagent.events.errors import PmagentError
from pmagent.projections.audits.front import ORIGIN

SLUG_CHARS_MAX: Final = 50
_NO_WORD: Final = re.compile(r"[^A-Za-z0-9]+")


class BadAudit(PmagentError, exit_code=2):
    """The request is no valid audit; nothing was recorded."""


def source_of(given: str, folder: Path) -> str:
    """The repository as it can be cloned from anywhere: a URL as it stands, a local path made absolute (it is relative
    to ``folder``). Raises BadAudit, whose text shows no URL: it may hold a secret."""
    found = _address(given)
    if found.protocol != "file":
        return found.location
    path = Path(os.path.abspath(folder / os.path.expanduser(found.location)))
    if not path.exists():
        raise BadAudit(f"there is no repository at {path}", "give a path of this machine, or a URL")
    return given if given.startswith("file:") else str(path)


def check_folder(repo_url: str) -> None:
    """Look whether the repository, if it lies on this machine, is one: a folder in which git keeps its files, there or
    in ``.git``. Raises BadAudit."""
    found = _address(repo_url)
    if found.protocol != "file":
        return
    path = Path(found.location)
    if not path.is_dir():
        raise BadAudit(f"{path} is no folder, so no repository", "give the top folder of a repository, or a URL")
    if _is_repository(path):
        return
    around = next((one for one in path.parents if os.path.lexists(one / ".git")), None)
    if around is not None:
        raise BadAudit(f"{path} is a folder in the repository {around}, not a repository itself", f"give {around}")
    raise BadAudit(f"{path} is no git repository", "give the top folder of one; or git init there, and commit")


def _is_repository(path: Path) -> bool:
    bare = ("objects", "refs")
    return os.path.lexists(path / ".git") or all((path / name).is_dir() for name in bare)


def origin_of(repo_url: str) -> str:
    """Where browsers find a repository of this machine: at its remote ``origin``, if that is on a host whose addresses
    are known, and its address holds no password or token; else ""."""
    found = _address(repo_url)
    if found.protocol != "file":
        return ""
    with TemporaryDirectory(prefix="pmagent-origin-") as folder:
        try:
            clone = opened(found.location, AuditLimits(), folder)
            told = clone.git.run(("--git-dir", clone.git_dir, "config", "--get", "remote.origin.url"))
        except SourceFailed:
            return ""
    remote = told.stdout.decode("utf-8", "replace").strip()
    return remote if ORIGIN.fullmatch(remote) else ""


def is_address(repo_url: str, workspace: Path) -> bool:
    """Whether the repository is named by an address (https, ssh, git@, file://) that does not lead into the workspace,
    so that an audit of it need not go by the workspace's configuration."""
    try:
        found = address(repo_url)
    except SourceFailed:
        return False
    if found.protocol != "file":
        return True
    inside = Path(os.path.realpath(found.location)).is_relative_to(os.path.realpath(workspace))
    return repo_url.startswith("file:") and not inside


def lies_here(workspace: Path, arguments: Mapping[str, Any]) -> bool:
    """Whether the audit that is asked for goes by the workspace's configuration (``is_address``)."""
    return not is_address(str(arguments.get("repo_url")), workspace)


def check_source(repo_url: str) -> None:
    """Look whether the repository may stand in a request, whoever sent it. Raises BadAudit."""
    found = _address(repo_url)
    if found.protocol == "file" and not os.path.isabs(found.location):
        raise BadAudit("the repository's path is not absolute", "give it from / on")


def slug(repo_url: str) -> str:
    """The name of this repository's report: owner and name of a URL, or a folder's name, in letters, digits and
    underscores."""
    is_url = "://" in repo_url
    local = not is_url and _address(repo_url).protocol == "file"
    path = unquote(urlsplit(repo_url).path) if is_url else repo_url if local else repo_url.rpartition(":")[2]
    names = [part for part in path.split("/") if part not in ("", ".", "..")]
    if len(names) > 1 and names[-1] == ".git":
        names.pop()
    count = 1 if local or repo_url.startswith("file:") else 2
    joined = "_".join(names[-count:]).removesuffix(".git")
    return _NO_WORD.sub("_", joined).strip("_")[:SLUG_CHARS_MAX].strip("_") or "repository"


def _address(repo_url: str) -> Address:
    try:
        return address(repo_url)
    except SourceFailed as failed:
        raise BadAudit(failed.message, failed.hint) from failed
