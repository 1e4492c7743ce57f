"""A program that keeps the command-line contract of ``claude -p --output-format json``, or breaks it as it is told to.

It is put on PATH as ``claude`` by ``tests.support.planners``, and knows nothing but the folder that it lies in: in
``told.json`` stands what to do, one entry a call; of each call it leaves ``call-N.json``. It is strict about how it is
called: whatever else than the contract ends it with 64.
"""

import base64
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FLAGS = [
    "--print", "--output-format=json", "--max-turns=1", "--tools=", "--strict-mcp-config", "--setting-sources=",
    "--safe-mode", "--disable-slash-commands", "--no-session-persistence",
]  # fmt: skip
MAY_HAVE = {
    "HOME", "PATH", "LANG", "TERM", "PWD", "LC_CTYPE",  # the last two are not given: bubblewrap and Python set them
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
}  # fmt: skip
USAGE = {"input_tokens": 100, "output_tokens": 20, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 4}


def report(**fields: Any) -> bytes:
    """A result object with these fields instead of those of a success."""
    plain: dict[str, Any] = {
        "type": "result", "subtype": "success", "is_error": False, "duration_ms": 12, "duration_api_ms": 10,
        "num_turns": 1, "result": "", "session_id": "b7b6c0de-0000-4000-8000-000000000001", "total_cost_usd": 0.0125,
        "usage": USAGE, "modelUsage": {}, "permission_denials": [],
    }  # fmt: skip
    return json.dumps(plain | fields).encode() + b"\n"


def claim() -> int:
    """The number of this call, which no other gets; 0 is the first."""
    number = 0
    while True:
        try:
            os.close(os.open(HERE / f"claimed-{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            number += 1
        else:
            return number


def wrong(prompt: bytes) -> list[str]:
    """The faults in how it was called."""
    models = [argument for argument in sys.argv[1:] if argument.startswith("--model=")]
    rest = [argument for argument in sys.argv[1:] if argument not in models]
    found = [f"argument {one}" for one in set(rest) ^ set(FLAGS)]
    found += [] if len(models) == 1 and len(rest) == len(set(rest)) else ["arguments given twice, or no model"]
    found += [] if prompt else ["no prompt on standard input"]
    found += [f"file {name}" for name in os.listdir(".")]
    found += [] if os.stat(".").st_mode & 0o777 == 0o700 else ["a folder that others may look into"]
    found += [
        f"variable {name}" for name in os.environ
        if name not in MAY_HAVE and not name.startswith(("ANTHROPIC_", "CLAUDE_"))
    ]
    found += [] if os.environ.get("CLAUDE_CODE_DISABLE_ATTACHMENTS") == "1" else ["attachments"]
    found += [] if os.environ.get("TERM") == "dumb" else ["a terminal"]
    found += [] if os.getsid(0) else ["a session of others"]  # 0: its leader is in another namespace
    return found


def write(content: bytes) -> None:
    """All of it, to standard output."""
    while content:
        content = content[os.write(1, content) :]


def misbehave(how: dict[str, Any]) -> None:
    """Do as it is told besides answering, or instead of it."""
    if "grandchild" in how:
        subprocess.Popen([sys.executable, "-I", __file__, "linger"], start_new_session=True)
    if "version" in how:
        option = next(argument for argument in sys.argv if argument.startswith("--safe"))
        sys.stderr.write(f"error: unknown option '{option}'\n")
        sys.exit(1)
    if "stderr" in how:
        sys.stderr.write(how["stderr"])
    if "raw" in how:
        write(base64.b64decode(how["raw"]))
    if "megabytes" in how:
        for _ in range(how["megabytes"]):
            write(b"[" * 1_000_000)
    while "endless" in how:
        write(b"x" * 65_536)
    if "kill" in how:
        os.kill(os.getpid(), how["kill"])
    if "hang" in how:
        if how["hang"] == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        Path(HERE / "hanging").open("w").close()  # a fifo: this waits for the one who wants to know
        while True:
            signal.pause()


def main() -> None:
    """One call."""
    if sys.argv[1:] == ["linger"]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            signal.pause()
    number = claim()
    told = json.loads((HERE / "told.json").read_text())
    how = told[min(number, len(told) - 1)]
    prompt = b"" if "unread" in how else sys.stdin.buffer.read()
    call = {"argv": sys.argv[1:], "prompt": prompt.decode(), "folder": os.getcwd(), "environ": dict(os.environ)}
    (HERE / f"call-{number}.json").write_text(json.dumps(call))
    faults = [] if "unread" in how else wrong(prompt)
    if faults:
        sys.stderr.write(f"stand-in: {'; '.join(faults)}\n")
        sys.exit(64)
    misbehave(how)
    if "say" in how or "report" in how:
        write(report(**{"result": how.get("say", ""), **how.get("report", {})}))
    sys.exit(how.get("exit", 0))


if __name__ == "__main__":
    main()
