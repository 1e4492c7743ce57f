"""An authority of a test's, and certificates for its servers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Authority:
    """An authority whose certificate is ``root``."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.root = folder / "ca.crt"
        self._folder = folder
        self._openssl("req", "-x509", *_KEY, "-days", "2", "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.crt")

    def certify(self, host: str, place: Path, owner: str = "") -> tuple[Path, Path]:
        """Write a certificate for ``host`` (``DNS:name`` or ``IP:address``) and its key into ``place``."""
        request = ("-subj", "/CN=server", "-addext", f"subjectAltName={host}", "-keyout", "key", "-out", "request")
        self._openssl("req", *_KEY, *request)
        signing = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-copy_extensions", "copy", "-days", "2")
        self._openssl("x509", "-req", "-in", "request", *signing, "-out", "certificate")
        name = host.rpartition(":")[2]
        made = place / f"{name}.crt", place / f"{name}.key"
        for source, target in zip(("certificate", "key"), made, strict=True):
            shutil.copy(self._folder / source, target)
            target.chmod(0o600)
            if owner and os.getuid() == 0:
                shutil.chown(target, owner)
        return made

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], cwd=self._folder, check=True, capture_output=True, timeout=60)
