"""The main job on the example workspace, with the commands that a person would type (``make demo``).

A copy of ``examples/workspace`` is made in ``.demo/``, and beside it the repository and the report that are audited, so
the checkout stays clean. Every line that begins with ``$``
is a real command; the demo ends with 0 only if each of them ended as it says beside it.
"""

from __future__ import annotations

import http.cookiejar
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "workspace"
DEMO = ROOT / ".demo"
WORKSPACE = DEMO / "workspace"
AUDITED = DEMO / "depcheck"
REPORT = DEMO / "depcheck.pdf"
ENVIRONMENT = {**os.environ, "XDG_STATE_HOME": str(DEMO / "state")}
"""The registry of what is trusted is the demo's own."""
PMAGENT = [sys.executable, "-I", "-m", "pmagent", "--workspace", str(WORKSPACE)]
READY_SECONDS = 30.0


def say(text: str) -> None:
    """A heading."""
    print(f"\n-- {text}", flush=True)


def pmagent(*arguments: str, expect: int = 0, show: bool = True) -> str:
    """Run a command and show it as a person would type it; its stdout. Ends the demo when the exit code differs."""
    print(f"$ pmagent {' '.join(arguments)}", flush=True)
    done = subprocess.run(
        [*PMAGENT, *arguments], cwd=ROOT, check=False, text=True, capture_output=True, env=ENVIRONMENT
    )
    if done.stderr.strip():  # what was told meanwhile, then the answer
        print(done.stderr, end="", file=sys.stderr, flush=True)
    if show:
        print(done.stdout, end="", flush=True)
    if done.returncode != expect:
        print(f"demo: this ended with {done.returncode}, not {expect}", file=sys.stderr)
        raise SystemExit(1)
    return done.stdout


def start_daemon() -> subprocess.Popen[bytes]:
    """Start ``pmagent up`` and return when it answers."""
    print("$ pmagent up &", flush=True)
    with (DEMO / "daemon.stderr").open("wb") as errors:
        daemon = subprocess.Popen([*PMAGENT, "up"], stdout=errors, stderr=errors, env=ENVIRONMENT)
    deadline = time.monotonic() + READY_SECONDS
    while not (WORKSPACE / ".pmagent" / "data" / "run" / "daemon.sock").exists():
        if daemon.poll() is not None or time.monotonic() > deadline:
            print((DEMO / "daemon.stderr").read_text("utf-8"), file=sys.stderr)
            print("demo: the daemon did not start", file=sys.stderr)
            raise SystemExit(1)
        time.sleep(0.02)
    return daemon


def visit(address: str) -> None:
    """Look at the console's pages as a browser does that was given the one-time address."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    browser.open(address, timeout=READY_SECONDS).close()
    origin = address.partition("/enter")[0]
    for page in ("/", "/approvals", "/runs", "/audits", "/sessions", "/log", "/integrity"):
        with browser.open(origin + page, timeout=READY_SECONDS) as answer:
            title = re.search(r"<title>(.*?) ·", answer.read().decode())
            print(f"  {answer.status}  {page:<12} {title[1] if title else ''}", flush=True)


def make_repository() -> None:
    """The workspace as a git repository of its own, with what it holds committed."""
    git = ["git", "-C", str(WORKSPACE), "-c", "user.name=demo", "-c", "user.email=demo@localhost"]
    for command in (["init", "--quiet", "--initial-branch=main"], ["add", "."], ["commit", "--quiet", "-m", "Begin"]):
        subprocess.run([*git, *command], check=True)


def change_surface() -> None:
    """Let a check fail, as a tool that writes the reality summary would: in place, not atomically."""
    path = WORKSPACE / "share" / "REALITY_GREEN_SUMMARY.json"
    summary = json.loads(path.read_text("utf-8"))
    summary["reality_green"] = False
    summary["checks"][0].update(passed=False, message="two folders have no notes")
    path.write_text(json.dumps(summary, indent=2), "utf-8")


def make_audited() -> None:
    """Make the audited project: a small agent project with its history, and the report that tells of it."""
    for script, made in (("make_repository.py", AUDITED), ("make_report.py", REPORT)):
        subprocess.run([sys.executable, "-I", str(ROOT / "examples" / "audited" / script), str(made)], check=True)


def run_audit() -> None:
    """Audit a repository and its report, without a key and without a network."""
    say("an audit: detectives read a repository and its report, three judges score it, fixed rules decide")
    pmagent("audit", str(AUDITED.relative_to(ROOT)), str(REPORT.relative_to(ROOT)))
    pmagent("audits")
    report = (WORKSPACE / "audit" / "report_depcheck.md").read_text("utf-8")
    print(report.partition("## Criterion Breakdown")[0], flush=True)


def main() -> None:
    """Run it all."""
    shutil.rmtree(DEMO, ignore_errors=True)
    shutil.copytree(EXAMPLE, WORKSPACE)
    make_repository()
    make_audited()

    say("what may be done here? nothing runs before this user has accepted it")
    pmagent("trust", "--yes")

    say("a daemon on the example workspace")
    daemon = start_daemon()
    try:
        run_live()
    finally:
        daemon.terminate()
        code = daemon.wait(30)
    if code != 0:
        raise SystemExit(f"demo: the daemon ended with {code}")
    print("(stopped the daemon with SIGTERM)")

    say("the log proves what happened, and reproduces it")
    pmagent("log", "verify")
    pmagent("replay")
    pmagent("rebuild", "--check")
    say("a lab machine's keyboard, under approval: a session on a device to try things with, in a workspace of its own")
    pmagent("pla", "demo")
    say("where everything lies")
    for what, path in (
        ("workspace", WORKSPACE),
        ("log", WORKSPACE / ".pmagent" / "data" / "log"),
        ("OA state", WORKSPACE / "share" / "orchestrator_assistant" / "STATE.json"),
        ("runs", WORKSPACE / "runs"),
        ("audits", WORKSPACE / "audit"),
        ("daemon's messages", DEMO / "daemon.stderr"),
    ):
        print(f"{what:>18}  {path.relative_to(ROOT)}")


def run_live() -> None:
    """The commands that run beside a daemon."""
    say("the OA's state from the kernel surfaces, and a session")
    pmagent("oa", "snapshot", "--format", "text")
    pmagent("boot", "oa", "--format", "text")
    pmagent("oa", "guard", "--mode", "STRICT")

    say("reasoning: is it safe, how is it done, may the next phase begin")
    pmagent("oa", "decision", "Write the notes of the next phase", "--format", "text", expect=8)  # on conditions
    pmagent("oa", "decision", "Publish it with git push", "--constraint", "no_git_push", "--format", "text", expect=1)
    pmagent("oa", "generate", "Run the guards", "--format", "text")
    pmagent("oa", "transition", "2", "--criterion", "notes written=yes", "--format", "text")

    say("a plan of nine tasks, each in a sandbox: joins, retries, and a branch that is meant to fail")
    pmagent("run", "summarise this repository", "--plan", "examples/plan.yaml", expect=1)
    pmagent("runs")
    (report,) = WORKSPACE.glob("runs/*/report.md")
    print("".join(report.read_text("utf-8").partition("## Time")[1:]).partition("## Failures")[0], flush=True)

    run_audit()

    say("the operator console: an address that lets one person in, once; and the stop switch")
    visit(pmagent("console").strip())
    pmagent("operators", "list")
    pmagent("pause", "--reason", "to show it")
    pmagent("resume")

    say("a kernel surface changes: the mode change travels through the log")
    position = json.loads(pmagent("status", "--format", "json", show=False))["log"]["position"]
    change_surface()
    seen = pmagent(
        "log", "tail", "--follow", "--after", str(position), "--exit-on", "oa.escalated", "--timeout", "20",
        "--format", "json", show=False,
    )
    events = [json.loads(line) for line in seen.splitlines()]
    pmagent("log", "tail", "--after", str(position), "-n", "20")
    pmagent("log", "why", str(events[-1]["position"]))
    pmagent("status")

    say("reality is not green: diagnostic mode, only the interpreter of guard failures runs")
    pmagent("oa", "decision", "Write the notes of the next phase", "--format", "text", expect=1)
    report = WORKSPACE.parent / "guard.json"
    report.write_text(pmagent("oa", "guard", "--mode", "HINT", show=False), "utf-8")
    pmagent("oa", "interpret", str(report), "--format", "text")


if __name__ == "__main__":
    main()
