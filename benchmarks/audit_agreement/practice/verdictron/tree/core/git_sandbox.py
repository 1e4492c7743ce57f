import subprocess
import tempfile


def sandboxed_clone(url):
    """TemporaryDirectory sandbox."""
    raise NotImplementedError("coming soon")


def run_git(args):
    return subprocess.run(["git", *args], capture_output=True, text=True, timeout=30, check=True)
