import os
from dataclasses import dataclass
from pathlib import Path


class ConfigError(Exception):
    pass


@dataclass(frozen=True)
class Config:
    inbox: Path
    db: Path
    rejects: Path

    @classmethod
    def from_env(cls) -> "Config":
        try:
            inbox = Path(os.environ["LEDGER_INBOX"])
            db = Path(os.environ["LEDGER_DB"])
        except KeyError as missing:
            raise ConfigError(f"{missing.args[0]} is not set, see .env.example") from None
        if not inbox.is_dir():
            raise ConfigError(f"LEDGER_INBOX: {inbox} is not a folder")
        return cls(inbox, db, Path(os.environ.get("LEDGER_REJECTS", "rejects.csv")))
