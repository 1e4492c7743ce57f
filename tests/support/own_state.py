"""Where this test process, and all that it starts, keeps the registry of trusted logs and configurations: never in the
home of whoever runs the tests. Importing this is enough; it happens once in a process."""

from __future__ import annotations

import os
import tempfile

STATE = tempfile.TemporaryDirectory(prefix="pmagent-state-", ignore_cleanup_errors=True)
os.environ["XDG_STATE_HOME"] = STATE.name
