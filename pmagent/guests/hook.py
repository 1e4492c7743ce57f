"""pmagent-hook: tells pmagent's daemon what an agent does, and the agent what the daemon says (docs/guests.md).

    python3 -I -S /path/to/hook.py HARNESS EVENT observe|enforce WAIT DATA

An agent's harness starts it at ``EVENT``, with one JSON object on stdin. ``DATA`` is the workspace's folder
``.pmagent/data``; the daemon may hold its answer for ``WAIT`` seconds while operators decide.

The daemon's answer is printed as it is. Where there is none, ``enforce`` refuses: nothing on stdout, a line on stderr,
exit code 2. ``observe`` leaves the fact in the spool, from which the daemon takes it later, and holds nothing up; so
does an event that only tells what has happened.

The file stands alone and imports only modules that are written in C: with ``socket`` and ``json`` a start would take
2.7 times as long as that of an empty program, with these it takes 1.1 times. Each error of its own must end here: many
harnesses let a tool run when its hook crashes. It writes its environment nowhere, for harnesses pass tokens in it;
only Claude Code's version is taken from there.
"""

import sys

try:
    import _socket
    import posix
    import select
    import time
    from _json import encode_basestring_ascii as quoted
    from _json import make_scanner
except ImportError as missing:
    sys.stderr.write(f"pmagent-hook cannot run under this Python ({missing}): run pmagent connect again\n")
    sys.exit(0 if "observe" in sys.argv else 2)

TOLD = frozenset((
    "SessionStart", "SessionEnd", "PostToolUse", "PostToolUseFailure", "SubagentStart", "SubagentStop", "AfterTool",
    "sessionStart", "sessionEnd", "postToolUse", "postToolUseFailure", "subagentStart", "subagentStop",
    "afterShellExecution", "afterMCPExecution", "tool.execute.after", "session.created", "session.ended",
))  # fmt: skip
"""Events that tell what has happened: nobody waits for a verdict. Every other one is a gate."""
ENDS = frozenset(("SessionEnd", "sessionEnd", "session.ended"))
"""The daemon may long read a transcript then. Told a second time, it would end a session that goes on meanwhile."""
TAKEN_SECONDS = 2.0
"""How long the harness may take to say what happens, and then the daemon to say that it has heard it."""
ANSWER_SECONDS = 5.0
"""How long the daemon may take beyond ``WAIT``."""
INPUT_BYTES = 20 << 20
ANSWER_BYTES = 1 << 20


class Failed(Exception):
    """There is no answer. The text says why."""


class Late(Failed):
    """The daemon has the line, and takes longer with it than anybody waits."""


class Strict:
    """How an answer is read: as ``json.loads`` reads it."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = None
    memo: dict[str, str] = {}


def main(harness: str, event: str, mode: str, wait: str, data: str) -> int:
    """Ask, print, and return the exit code. Raises Failed and whatever goes wrong: a gate is closed then."""
    gate = mode != "observe" and event not in TOLD
    said = posix.environ.get(b"AI_AGENT", b"").split(b"_")  # claude-code_2-1-330_harness
    version = said[1].decode("ascii", "replace").replace("-", ".") if len(said) == 3 and harness == "claude" else ""
    words = b',"v":1,"harness":%s,"event":%s,"mode":%s,"wait":%s,"version":%s' % tuple(
        word.encode() for word in (quoted(harness), quoted(event), quoted(mode), repr(float(wait)), quoted(version))
    )
    line = b'{"payload":' + received() + words  # ours stand behind the payload: of two equal keys, the last one counts
    try:
        code, out, err = asked(data, line + b"}\n", float(wait) if gate else 0.0)
    except (Failed, OSError) as error:
        if gate:
            raise
        if type(error) is not Late or event not in ENDS:
            spooled(data, line + b',"seen":%s}\n' % quoted(moment()).encode())
        return 0
    if mode == "observe":
        return 0
    written(1, out.encode())
    written(2, err.encode())
    return code


def received() -> bytes:
    """The harness's message, as one line. Raises Failed, OSError."""
    parts, size, end = [], 0, time.monotonic() + TAKEN_SECONDS
    while True:
        if not select.select([0], [], [], max(0.0, end - time.monotonic()))[0]:
            raise Failed("the harness does not say in time what happens")
        part = posix.read(0, 1 << 16)
        if not part:
            break
        parts.append(part)
        size += len(part)
        if size > INPUT_BYTES:
            raise Failed(f"the call is longer than {INPUT_BYTES} bytes")
    payload = b"".join(parts).replace(b"\n", b" ").replace(b"\r", b" ").strip()
    if payload[:1] != b"{" or payload[-1:] != b"}":
        raise Failed("the harness sent no JSON object")
    return payload


def asked(data: str, line: bytes, wait: float) -> tuple[int, str, str]:
    """The daemon's exit code, stdout and stderr for a line. Raises Failed, OSError, and what decoding raises."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.settimeout(TAKEN_SECONDS)
    folder = posix.open(data + "/run", posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
    connection.connect(f"/proc/self/fd/{folder}/guest.sock")  # a path may be longer than a socket's address
    connection.sendall(line)
    buffer, taken, end = b"", False, time.monotonic() + TAKEN_SECONDS
    while True:
        first, newline, rest = buffer.partition(b"\n")
        if not newline:
            connection.settimeout(max(0.001, end - time.monotonic()))
            try:
                part = connection.recv(1 << 16)
            except TimeoutError:
                if taken:
                    raise Late("pmagent's daemon takes too long") from None
                raise
            buffer += part
            if not part or len(buffer) > ANSWER_BYTES:
                raise Failed("pmagent's daemon went away before its answer")
            continue
        buffer, text = rest, first.decode()
        answer, length = make_scanner(Strict)(text, 0)  # type: ignore[arg-type]  # any object with these attributes
        if "exit" in answer:
            code, out, err = answer["exit"], answer["stdout"], answer["stderr"]
            if length != len(text) or type(code) is not int or type(out) is not str or type(err) is not str:
                raise Failed("pmagent's daemon gave an answer that is not understood")
            return code, out, err
        if not taken:
            taken, end = True, time.monotonic() + wait + ANSWER_SECONDS


def spooled(data: str, line: bytes) -> None:
    """Leave a line for the daemon to take in later. Raises OSError."""
    folder = data + "/spool"
    try:
        posix.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    name = f"{folder}/{time.time_ns():020d}-{posix.getpid()}"
    file = posix.open(name + ".new", posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC, 0o600)
    try:
        written(file, line)
        posix.rename(name + ".new", name + ".json")
    except OSError:  # the disk is full: half a line is nobody's
        posix.unlink(name + ".new")
        raise
    finally:
        posix.close(file)


def moment() -> str:
    """The time, RFC 3339, UTC."""
    seconds, rest = divmod(time.time_ns(), 10**9)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest // 1000:06d}Z"


def written(file: int, data: bytes) -> None:
    """Write all of it. Raises OSError."""
    while data:
        data = data[posix.write(file, data) :]


def run(arguments: list[str]) -> int:
    """The exit code, whatever happens: 2 from a gate that has no answer, with a line on stderr."""
    try:
        return main(*arguments)
    except BaseException as error:
        why = str(error) if type(error) is Failed else f"pmagent's daemon cannot be asked ({error!r})"
        where = "".join(arguments[4:5]).rpartition("/.pmagent")[0]
        sys.stderr.write(f"{why}: run pmagent up in {where}; pmagent doctor looks closer\n")
        sys.stderr.flush()
        return 0 if "observe" in arguments[2:3] or TOLD.intersection(arguments[1:2]) else 2


if __name__ == "__main__":
    posix._exit(run(sys.argv[1:]))
