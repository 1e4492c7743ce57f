"""Settings from a TOML file, checked before anything runs."""
from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit


class ConfigError(Exception):
    """The settings are wrong; the message says where."""


@dataclass(frozen=True)
class Target:
    name: str
    url: str = ""
    host: str = ""
    port: int = 0
    expect: int = 200

    @property
    def is_web(self) -> bool:
        return bool(self.url)


@dataclass(frozen=True)
class Config:
    every: float
    timeout: float
    database: Path
    page: Path
    targets: tuple[Target, ...]


def _target(number: int, given: dict[str, object]) -> Target:
    try:
        target = Target(**given)  # type: ignore[arg-type]
    except TypeError as error:
        raise ConfigError(f"target {number}: {error}") from error
    if not target.name:
        raise ConfigError(f"target {number} has no name")
    if target.is_web:
        if urlsplit(target.url).scheme not in ("http", "https"):
            raise ConfigError(f"{target.name}: only http and https addresses are watched")
    elif not target.host or not 0 < target.port < 65536:
        raise ConfigError(f"{target.name}: either url, or host and port are needed")
    return target


def load(path: Path) -> Config:
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    targets = tuple(_target(number, one) for number, one in enumerate(data.get("target", []), 1))
    if not targets:
        raise ConfigError(f"{path}: there is no target")
    names = [target.name for target in targets]
    if len(set(names)) < len(names):
        raise ConfigError(f"{path}: two targets have the same name")
    every, timeout = data.get("every", 60), data.get("timeout", 10)
    if not (isinstance(every, int | float) and isinstance(timeout, int | float)) or every < 5 or not 0 < timeout < every:
        raise ConfigError(f"{path}: every must be at least 5 s, and timeout less than that")
    return Config(
        every=every, timeout=timeout, database=Path(data.get("database", "history.sqlite")),
        page=Path(data.get("page", "status.html")), targets=targets,
    )
