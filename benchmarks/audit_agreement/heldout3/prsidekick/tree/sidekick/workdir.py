"""Checkout of the pull request, so that tools can look around."""
import os
import shutil
import subprocess
import tempfile


def checkout(clone_url, sha):
    path = tempfile.mkdtemp(prefix="sidekick-")
    subprocess.run(["git", "init", "-q", path], check=True)
    subprocess.run(["git", "-C", path, "fetch", "-q", "--depth", "1", clone_url, sha], check=True, timeout=180)
    subprocess.run(["git", "-C", path, "checkout", "-q", "FETCH_HEAD"], check=True)
    return path


def cleanup(path):
    shutil.rmtree(path, ignore_errors=True)


def inside(path, name):
    """Absolute path of a file in the checkout, or None if it lies outside."""
    full = os.path.realpath(os.path.join(path, name))
    return full if full.startswith(os.path.realpath(path) + os.sep) else None
