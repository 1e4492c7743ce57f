"""``orchestra.config.yaml``: read strictly, joined with the command's flags, and written back
(docs/design.md §14.4)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pmagent.actors.orchestra.planning.placeholders import named
from pmagent.actors.sandbox.egress.rules import ContactRefused, rules
from pmagent.contracts.oa_documents import Document
from pmagent.contracts.orchestra_config import OrchestraConfig, PathSettings, PathText, Retries, Workers
from pmagent.contracts.shape import Misfit, fit, nearest
from pmagent.contracts.text import decoded, from_yaml
from pmagent.events.errors import PmagentError

FILE: Final = "orchestra.config.yaml"
BYTES_MAX: Final = 256 * 1024

PLACEHOLDERS: Final[dict[str, tuple[str, ...]]] = {
    "llm.prompts.planner": ("intent", "constraints", "whitelist_tools"),
    "llm.prompts.summarizer": ("tasks_summary", "artifacts_list"),
    "paths.runs": (),
    "paths.logs": ("run_id",),
    "paths.artifacts": ("run_id",),
    "paths.report": ("run_id",),
}
"""The placeholders that a run fills in, by setting."""


class BadConfig(PmagentError, exit_code=2):
    """A configuration or flag that is not understood: the message names the path and what was found."""


class Flags(Document, frozen=True, kw_only=True):
    """Flags of a command that override the file; None: not given. ``out`` is the folder for runs."""

    concurrency: Workers | None = None
    retries: Retries | None = None
    out: PathText | None = None


def read_config(text: str | bytes, where: str = FILE) -> OrchestraConfig:
    """The configuration in a file's content; ``where`` names the file in messages. A missing key has the
    specification's value; ``version`` is required.

    Raises BadText where it is no YAML that we read, BadConfig where it says what it may not.
    """
    value = from_yaml(decoded(text, where, BYTES_MAX), where)
    try:
        config = fit(value, OrchestraConfig)
        _check_placeholders(config)
    except Misfit as misfit:
        raise BadConfig(f"{where}: {misfit.message}", misfit.hint) from misfit
    _check_network(config, where)
    if doubled := _doubled(config.whitelist_tools):
        raise BadConfig(f"{where}: whitelist_tools names {doubled} twice", "keep one of the two")
    return config


def effective(config: OrchestraConfig, flags: Flags) -> OrchestraConfig:
    """The effective configuration of a run: the file's values, overridden by flags. Paths below the file's ``runs``
    move below ``out``; the folders that tasks may write do not change. Raises BadConfig for a flag's value that may not
    be."""
    try:
        given = fit(msgspec.to_builtins(flags), Flags)
        out = given.out
        if out is not None and named(out):
            raise Misfit(f"out holds {{{named(out)[0]}}}", "no placeholders may stand there")
    except Misfit as misfit:
        raise BadConfig(f"--{misfit.message}", misfit.hint) from misfit
    changes: dict[str, Any] = {}
    if given.concurrency is not None:
        changes["concurrency"] = msgspec.structs.replace(config.concurrency, max_workers=given.concurrency)
    if given.retries is not None:
        changes["retries"] = msgspec.structs.replace(config.retries, max=given.retries)
    if out is not None:
        changes["paths"] = _moved(config.paths, out)
    return msgspec.structs.replace(config, **changes)


def _moved(paths: PathSettings, out: str) -> PathSettings:
    old, new = paths.runs.rstrip("/") + "/", out.rstrip("/") + "/"

    def moved(path: str) -> str:
        return new + path[len(old) :] if path.startswith(old) else path

    made = PathSettings(runs=out, logs=moved(paths.logs), artifacts=moved(paths.artifacts), report=moved(paths.report))
    try:
        return fit(msgspec.to_builtins(made), PathSettings, "paths")
    except Misfit as misfit:  # a long --out before a long path
        raise BadConfig(f"--out: {misfit.message}", misfit.hint) from misfit


def _check_placeholders(config: OrchestraConfig) -> None:
    for path, known in PLACEHOLDERS.items():
        value: Any = config
        for name in path.split("."):
            value = getattr(value, name)
        for placeholder in named(value):
            if placeholder not in known:
                braced = [f"{{{name}}}" for name in known]
                hint = nearest(f"{{{placeholder}}}", braced) if known else "no placeholders may stand there"
                raise Misfit(f"{path} holds the unknown placeholder {{{placeholder[:60]}}}", hint)


def _check_network(config: OrchestraConfig, where: str) -> None:
    """Refuse network settings that the proxy would refuse: an address instead of a name, a header that it writes
    itself."""
    for at, domain in enumerate(config.security.net.allow_domains):
        _check_rules(f"{where}: security.net.allow_domains[{at}]", domain, "X-Id")
    _check_rules(f"{where}: telemetry.trace_id_header", "example.org", config.telemetry.trace_id_header)


def _check_rules(where: str, domain: str, header: str) -> None:
    try:
        rules([domain], (header, "id"))
    except ContactRefused as refused:
        raise BadConfig(f"{where}: {refused.message}", refused.hint) from refused


def _doubled(names: list[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""
