"""Runs git so that it does what it is told and nothing else; blocking.

Nothing of the machine's or the user's git configuration holds, no hook, filter, prompt or helper runs, and no protocol
but the one of the address is spoken. The processes that git starts (ssh, index-pack) are ended with it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.repository.address import Protocol
from pmagent.actors.sandbox.reader.pipes import Conversation

STDERR_BYTES: Final = 16 * 1024
"""So much of the end of standard error is kept."""

_CONFIG: Final = """\
[safe]
	directory = *
[core]
	hooksPath = /dev/null
	fsmonitor = false
	symlinks = false
	askPass =
	attributesFile = /dev/null
	excludesFile = /dev/null
	protectNTFS = true
	protectHFS = true
	packedGitWindowSize = 32m
	packedGitLimit = 256m
[credential]
	helper =
[gc]
	auto = 0
[maintenance]
	auto = false
[transfer]
	unpackLimit = 1
	bundleURI = false
[fetch]
	recurseSubmodules = false
	writeCommitGraph = false
[submodule]
	recurse = false
[http]
	followRedirects = initial
	lowSpeedLimit = 1
	lowSpeedTime = 60
[pack]
	threads = 2
[i18n]
	logOutputEncoding = UTF-8
[log]
	showSignature = false
	mailmap = false
[advice]
	detachedHead = false
[init]
	defaultBranch = main
[protocol]
	version = 2
"""
"""In a file of its own, not in ``-c``: that does not reach the half of git that runs in a local source."""

_HELD: Final = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false")
"""Settings that a repository's own configuration may not change: they would start programs."""

_SSH: Final = (
    "ssh -o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=15 -o ServerAliveCountMax=4"
    " -o ForwardAgent=no -o ForwardX11=no -o ClearAllForwardings=yes -o PermitLocalCommand=no"
)

_PASSED: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO", "http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy",
)  # fmt: skip

_LOOK_SECONDS: Final = 0.05


class Ended(msgspec.Struct, frozen=True):
    """A call of git that ended by itself."""

    code: int
    stdout: bytes
    stderr: bytes


class Git(msgspec.Struct, frozen=True):
    """How git is called: ``config`` the file with its configuration, ``deadline`` (of time.monotonic) for all calls
    together, ``memory_bytes`` of address space and ``file_bytes`` of one file for each process, ``stop`` ends it."""

    config: str
    deadline: float
    memory_bytes: int
    file_bytes: int
    stop: threading.Event | None = None

    def run(
        self,
        arguments: Sequence[str],
        *,
        protocol: Protocol | None = None,
        stdin: bytes = b"",
        output_bytes: int = 2**20,
        watch: Callable[[], None] | None = None,
    ) -> Ended:
        """Call git. ``protocol`` is the one that it may speak (None: none). ``watch`` is called all the time, and ends
        git by raising. Raises SourceFailed: timed_out, cancelled, too_large (its output), git (there is no git)."""
        program = shutil.which("git")
        if program is None:
            raise SourceFailed("git", "git is not installed", "install git (2.39 or newer)")
        try:
            process = subprocess.Popen(
                (*_bound(), program, "--no-pager", *_HELD, *arguments),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=environment(self.config, protocol, os.environ), cwd="/", start_new_session=True, bufsize=0,
            )  # fmt: skip
        except OSError as error:
            raise SourceFailed("git", "git could not be started", "look at the limits of processes here") from error
        with Conversation(process, stdin, STDERR_BYTES) as talk:
            self._limit(process.pid)
            while talk.goes_on(_LOOK_SECONDS):
                self._go_on(watch)
                _bounded(talk, output_bytes)
            _bounded(talk, output_bytes)
        return Ended(process.returncode, bytes(talk.output), bytes(talk.stderr_tail))

    def _limit(self, pid: int) -> None:
        """Its limits; what it starts from now on has them too."""
        limits = {
            resource.RLIMIT_AS: self.memory_bytes, resource.RLIMIT_FSIZE: self.file_bytes, resource.RLIMIT_CORE: 0,
        }  # fmt: skip
        with contextlib.suppress(ProcessLookupError):
            for which, most in limits.items():
                hard = resource.prlimit(pid, which)[1]
                bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
                resource.prlimit(pid, which, (bound, bound))

    def _go_on(self, watch: Callable[[], None] | None) -> None:
        if self.stop is not None and self.stop.is_set():
            raise SourceFailed("cancelled", "fetching the repository was cancelled", "ask again if it is still wanted")
        if time.monotonic() >= self.deadline:
            raise SourceFailed(
                "timed_out", "fetching the repository took longer than its time limit", "raise clone_seconds"
            )
        if watch is not None:
            watch()


@functools.cache
def _bound() -> tuple[str, ...]:
    """The words to put before git so that it ends with the thread that started it; none where the machine lacks the
    program. Processes that git started then find their pipes closed."""
    program = shutil.which("setpriv")
    if program is None:
        return ()
    bound = (program, "--pdeathsig", "KILL", "--")
    try:
        asked = subprocess.run(
            (*bound, "true"),
            stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=30, start_new_session=True,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return bound if asked.returncode == 0 else ()


def configured(folder: str) -> str:
    """Write the configuration that git gets into ``folder``; its path."""
    path = Path(folder) / "gitconfig"
    path.write_text(_CONFIG, encoding="ascii")
    return str(path)


def environment(config: str, protocol: Protocol | None, ours: Mapping[str, str]) -> dict[str, str]:
    """The environment of git. ssh finds its keys and known hosts in the user's HOME; all other settings are ours."""
    return {
        **{name: ours[name] for name in _PASSED if name in ours},
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": config,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "GIT_SSH_COMMAND": _SSH,
        "GIT_SSH_VARIANT": "ssh",
        "GIT_ALLOW_PROTOCOL": protocol or "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }


def _bounded(talk: Conversation, most: int) -> None:
    if len(talk.output) > most:
        raise SourceFailed(
            "too_large", f"the repository lists more than {most} bytes of names or commits", "audit a smaller one"
        )
