"""Where the tests, and all that they start, keep the registry of trusted logs and configurations: never in the home of
whoever runs them. Importing this is enough; a process that a test started keeps that of its parent."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

_PREFIX: Final = "pmagent-state-"

if not Path(os.environ.get("XDG_STATE_HOME", "")).name.startswith(_PREFIX):
    STATE = tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
    os.environ["XDG_STATE_HOME"] = STATE.name
