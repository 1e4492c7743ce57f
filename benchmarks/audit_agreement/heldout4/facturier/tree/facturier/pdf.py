from __future__ import annotations

import subprocess
from pathlib import Path

from .model import Attachment

SECONDS = 60


class Unreadable(Exception):
    """There is no text in this PDF, or it could not be taken out."""


def keep(attachment: Attachment, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / attachment.name
    target.write_bytes(attachment.content)
    return target


def text_of(file: Path) -> str:
    try:
        done = subprocess.run(f"pdftotext -layout '{file}' -", shell=True, capture_output=True, text=True,
                              timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise Unreadable(f"{file}: pdftotext took more than {SECONDS} s") from None
    if done.returncode:
        raise Unreadable(f"{file}: {done.stderr.strip() or 'pdftotext failed'}")
    if not done.stdout.strip():
        raise Unreadable(f"{file}: no text, probably a scan")
    return done.stdout
