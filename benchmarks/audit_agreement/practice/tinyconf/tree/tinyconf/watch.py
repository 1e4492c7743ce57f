"""Reload when the file changes."""
import os
import time


class Watcher:
    def __init__(self, path, callback, interval=1.0):
        self.path = path
        self.callback = callback
        self.interval = interval
        self._last = None

    def poll(self):
        try:
            now = os.stat(self.path).st_mtime_ns
        except FileNotFoundError:
            return False
        changed = self._last is not None and now != self._last
        self._last = now
        if changed:
            self.callback(self.path)
        return changed

    def run(self):
        while True:
            self.poll()
            time.sleep(self.interval)
