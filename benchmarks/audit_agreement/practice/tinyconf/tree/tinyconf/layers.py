import os
import sys
import tomllib
from pathlib import Path


class ConfigError(Exception):
    pass


class Layers:
    """A stack of dictionaries; the last one wins."""

    def __init__(self, defaults=None):
        self.layers = [("defaults", dict(defaults or {}))]

    def file(self, path, required=False):
        p = Path(path)
        if not p.exists():
            if required:
                raise ConfigError(f"{path}: no such file")
            return self
        try:
            data = tomllib.loads(p.read_text())
        except tomllib.TOMLDecodeError as exc:
            raise ConfigError(f"{path}: {exc}") from exc
        self.layers.append((str(path), flatten(data)))
        return self

    def env(self, prefix):
        found = {k[len(prefix):].lower(): v for k, v in os.environ.items() if k.startswith(prefix)}
        self.layers.append(("environment", found))
        return self

    def args(self, argv=None):
        found = {}
        for a in argv if argv is not None else sys.argv[1:]:
            if a.startswith("--") and "=" in a:
                k, v = a[2:].split("=", 1)
                found[k] = v
        self.layers.append(("arguments", found))
        return self

    def get(self, key, cast=str, default=None):
        for source, values in reversed(self.layers):
            if key in values:
                return self._cast(source, key, values[key], cast)
        return default

    def _cast(self, source, key, value, cast):
        if cast is bool and isinstance(value, str):
            return eval(value.capitalize())
        try:
            return cast(value)
        except (TypeError, ValueError) as exc:
            raise ConfigError(f"{key} from {source}: {exc}") from exc

    def origin(self, key):
        for source, values in reversed(self.layers):
            if key in values:
                return source
        return None


def flatten(data, prefix=""):
    out = {}
    for k, v in data.items():
        if isinstance(v, dict):
            out.update(flatten(v, f"{prefix}{k}."))
        else:
            out[prefix + k] = v
    return out
