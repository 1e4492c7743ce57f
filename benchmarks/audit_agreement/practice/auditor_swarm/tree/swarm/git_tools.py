import subprocess
import tempfile
from urllib.parse import urlsplit


class GitError(Exception):
    pass


def check_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme == "" and url.startswith("/"):
        return url
    if parts.scheme != "https" or not parts.hostname or parts.username:
        raise GitError(f"only https addresses without a user are accepted: {url}")
    return url


def git(*args: str, cwd: str | None = None, timeout: float = 60) -> str:
    try:
        done = subprocess.run(["git", *args], cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise GitError(f"git {args[0]} took more than {timeout:.0f} s") from None
    if done.returncode:
        reason = "authentication failed" if "Authentication" in done.stderr else done.stderr.strip()
        raise GitError(f"git {args[0]}: {reason}")
    return done.stdout


class Clone:
    """A clone that lives as long as the with-block."""

    def __init__(self, url: str):
        self.url = check_url(url)
        self._tmp = tempfile.TemporaryDirectory(prefix="swarm-")

    def __enter__(self) -> str:
        git("clone", "--", self.url, self._tmp.name + "/repo", timeout=180)
        return self._tmp.name + "/repo"

    def __exit__(self, *exc):
        self._tmp.cleanup()
