"""Where the console keeps what it needs (docs/design.md §18.1)."""

from __future__ import annotations

from pmagent.workspace.layout import Layout


class ConsolePaths:
    """The paths of one workspace's console. Only this user may look into any of them."""

    def __init__(self, layout: Layout) -> None:
        self.folder = layout.run / "console"
        self.address = self.folder / "address.json"
        """Where it is reached, and by which process it is served; what it says of a port is taken again at the next
        start."""
        self.invites = self.folder / "invites"
        self.sessions = self.folder / "sessions.json"
        self.socket = self.folder / "console.sock"
        self.saved_filters = self.folder / "filters.json"
        self.operators = layout.home / "operators.json"

    def prepare(self) -> None:
        """Make the folders, closed to others. Raises OSError."""
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.folder, self.invites):
            folder.mkdir(mode=0o700, exist_ok=True)
            folder.chmod(0o700)
