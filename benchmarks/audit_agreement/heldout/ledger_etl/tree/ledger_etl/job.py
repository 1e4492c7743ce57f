import csv
import logging
from dataclasses import dataclass

from . import extract
from .config import Config
from .load import known, ledger, load
from .rows import Booking

log = logging.getLogger("ledger_etl")


@dataclass
class Outcome:
    loaded: int = 0
    rejected: int = 0
    bad_files: int = 0

    @property
    def exit_code(self) -> int:
        if self.loaded == 0 and (self.rejected or self.bad_files):
            return 1
        return 3 if self.rejected or self.bad_files else 0


def run(config: Config, dry: bool = False) -> Outcome:
    outcome = Outcome()
    rejects: list[tuple[str, int, str]] = []
    with ledger(config.db) as db:
        for path in sorted(config.inbox.glob("*.csv")):
            digest = extract.digest(path)
            if known(db, digest):
                log.info("%s was loaded before", path.name)
                continue
            good: list[Booking] = []
            try:
                for line, row in extract.rows(path):
                    if isinstance(row, Booking):
                        good.append(row)
                    else:
                        rejects.append((path.name, line, row))
            except (extract.BadFile, UnicodeDecodeError) as error:
                log.error("%s", error)
                outcome.bad_files += 1
                continue
            outcome.loaded += len(good) if dry else load(db, digest, path.name, good)
            if not dry:
                done = config.inbox / "done"
                done.mkdir(exist_ok=True)
                path.rename(done / path.name)
    outcome.rejected = len(rejects)
    if rejects:
        with config.rejects.open("a", newline="") as f:
            csv.writer(f).writerows(rejects)
    return outcome
