"""A guest's call, what a policy says of it, and the verdict (docs/policy.md).

Everything that depends on the machine (links, case, branch, local hour, the parse of a command line) is looked up once,
before the call is recorded; it stands in ``Call``, and the verdict depends on nothing else.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

Harness = Literal["claude", "codex", "gemini", "cursor", "copilot", "opencode", "script"]
"""The program whose agent calls; ``script``: anything started by ``pmagent exec``."""
Kind = Literal["shell", "read", "write", "edit", "fetch", "search", "mcp", "agent", "other"]
"""A tool by its action, whatever its harness calls it. ``read``: also looking for files and in
them; ``search``: searching the web."""
Answer = Literal["allow", "ask", "deny"]
ANSWERS: Final[tuple[Answer, ...]] = ("allow", "ask", "deny")
"""The stricter one stands further behind."""
LayerName = Literal["built-in", "user", "project", "session"]
Label = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_-]{0,31}(?![\s\S])")]
"""Of what a session has seen; ``private`` and ``untrusted`` together keep it from acting outward."""


LOOKED_FOR: Final = (
    ".env", ".env.*", ".env.local", ".env.*.local", ".env.production", ".env.staging", ".envrc", "*.pem", "*.key",
    "*.p12", "*.pfx", "*.kdbx", "*.keystore", "id_rsa", "id_ed25519", "id_ecdsa", ".netrc", ".npmrc", ".pypirc",
    ".git-credentials", ".pgpass", ".htpasswd", "credentials", "credentials.json", "secrets.json", "secrets.yaml",
    "secrets.yml", "secrets.toml", "*.tfstate", "*.tfvars", ".claude", ".codex", ".gemini",
    ".cursor", ".opencode", ".git", ".pmagent", "**/.pmagent/data/key",
)  # fmt: skip
"""Names for which a folder is searched that is read or written with all below it. A rule for another name holds such a
call up: nobody has looked."""


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of the parts of a payload: immutable and strict."""


class Command(Shape, frozen=True, kw_only=True):
    """One program that a command line would start, wherever it stands in it. ``words``: its name and arguments, without
    quoting; None where it is known only when the line runs which words stand there, if any. ``sets``: names of
    variables that are set for it."""

    words: list[str | None]
    sets: list[str] = []


class Opinion(Shape, frozen=True, kw_only=True):
    """Answer of another engine's policies to a call, and which of them; ``engine``: with its version."""

    answer: Answer
    rules: list[str]
    engine: str


class Call(Shape, frozen=True, kw_only=True):
    """A call of a tool, as a verdict needs it. ``tool`` is the harness's name of it, ``agent`` the id of the subagent
    that calls ("": the session's own), ``agent_type`` its kind, ``cwd`` and ``root`` the folder it works in and the
    workspace. ``commands``: what a command line would start; ``reads``, ``writes``: absolute paths, links resolved;
    ``trees``: those of them that are taken with all that lies below, of which the files named as in ``LOOKED_FOR``
    stand there too; ``mentions``: paths that it names, of which nobody knows whether they are read or written;
    ``spelled``: all these paths as they were written, made absolute, where they differ. ``hosts``: whom it would reach;
    ``outward``: whether it may send something out of this machine; ``starts``: the kind of agent that it would start.
    ``unclear``: why it is not wholly understood: such a call is never allowed by a rule. ``branch`` and ``hour``: the
    git branch, and the local hour (0-23). ``parser``: the parser of command lines, with its version;
    ``opinion``: of policies that another engine reads, which was asked then."""

    harness: Harness
    session: str
    tool: str
    kind: Kind
    agent: str = ""
    agent_type: str = ""
    server: str = ""
    cwd: str = ""
    root: str = ""
    commands: list[Command] = []
    reads: list[str] = []
    writes: list[str] = []
    trees: list[str] = []
    mentions: list[str] = []
    spelled: list[str] = []
    hosts: list[str] = []
    outward: bool = False
    starts: str = ""
    unclear: list[str] = []
    branch: str = ""
    hour: int = 0
    parser: str = ""
    opinion: Opinion | None = None


class When(Shape, frozen=True, kw_only=True):
    """Where a rule holds; an empty list or text: everywhere. ``hours``: local, from the first to before the second."""

    mode: list[str] = []
    harness: list[str] = []
    agent: list[str] = []
    subagent: bool | None = None
    branch: list[str] = []
    hours: list[int] = []
    labels: list[Label] = []


class Rule(Shape, frozen=True, kw_only=True):
    """A rule: calls that ``match`` (``Bash(git push *)``) get ``answer``. ``id`` names it in verdicts: layer and line,
    or its name in the file. ``approvals``: how many operators have to approve. ``expires``: from this moment on it
    holds no more (RFC 3339, UTC). ``label``: what a session has seen that made such a call. ``remediation``: it mends
    the workspace, and needs no person in mode DEGRADED."""

    id: str
    match: str
    answer: Answer | None = None
    when: When = When()
    approvals: int = 1
    expires: str = ""
    reason: str = ""
    label: Label | None = None
    remediation: bool = False


class Layer(Shape, frozen=True, kw_only=True):
    """The rules of one file. ``sha256`` is that of its bytes ("" for the built-in layer and a file that is not there);
    ``problem``: why it cannot be used. While one layer has a problem, everything but reading is refused."""

    name: LayerName
    path: str = ""
    sha256: str = ""
    default: Answer | None = None
    rules: list[Rule] = []
    problem: str = ""


class Policy(Shape, frozen=True, kw_only=True):
    """All layers, in order; ``digest`` is the SHA-256 over their canonical JSON."""

    layers: list[Layer]
    digest: str


class Definition(Shape, frozen=True, kw_only=True):
    """Something that a harness goes by: an MCP server, a hook of somebody else's, a plugin, a file's own rules.
    ``digest``: SHA-256 of what it says, without the values of variables; ``text``: its command or address."""

    kind: Literal["server", "hook", "plugin", "rules"]
    name: str
    path: str
    digest: str
    text: str = ""


class Change(Shape, frozen=True, kw_only=True):
    """A definition that is not as it was. ``widens``: something may run, or be told to the model, that was not there
    before, or a hook is gone that may have held something up."""

    kind: Literal["server", "hook", "plugin", "rules"]
    name: str
    path: str
    how: Literal["added", "changed", "removed"]
    widens: bool
    text: str = ""


class Situation(Shape, frozen=True, kw_only=True):
    """Inputs of a verdict besides call and policy: the kernel's mode ("": not known yet), the labels of the
    session and its parents, the time of the call (RFC 3339, UTC)."""

    mode: str
    labels: list[Label] = []
    time: str = ""


class Verdict(Shape, frozen=True, kw_only=True):
    """``rules``: the ids of the rules that decided; ``policy``: the policy's digest; ``reasons`` are for the agent and
    people; ``mend`` says what would change the answer. ``approvals``: how many operators an ``ask`` needs. ``gains``:
    the labels that the session has from this call on, if it is made."""

    answer: Answer
    rules: list[str]
    policy: str
    reasons: list[str]
    mend: list[str] = []
    approvals: int = 1
    gains: list[Label] = []
