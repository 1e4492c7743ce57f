import argparse
import logging
import sys

from .config import Config, ConfigError
from .job import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="ledger-etl")
    parser.add_argument("command", choices=["run"])
    parser.add_argument("--dry-run", action="store_true")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        outcome = run(Config.from_env(), dry=args.dry_run)
    except ConfigError as error:
        print(f"ledger-etl: {error}", file=sys.stderr)
        return 2
    print(f"{outcome.loaded} loaded, {outcome.rejected} rejected, {outcome.bad_files} bad files")
    return outcome.exit_code


if __name__ == "__main__":
    sys.exit(main())
