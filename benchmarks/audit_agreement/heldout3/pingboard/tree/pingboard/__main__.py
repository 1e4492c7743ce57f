from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import sys
import time
from pathlib import Path

import httpx

from . import history, page
from .config import Config, ConfigError, load
from .probe import round_of

DAYS = 30


async def once(config: Config, client: httpx.AsyncClient, connection: sqlite3.Connection) -> int:
    samples = await round_of(config, client)
    history.add(connection, samples)
    for sample in samples:
        if not sample.up:
            print(f"{sample.target} is down: {sample.note}", file=sys.stderr)
    draw(config, connection)
    return 0 if all(sample.up for sample in samples) else 1


def draw(config: Config, connection: sqlite3.Connection) -> None:
    now = time.time()
    found = [history.summary(connection, target.name, now - DAYS * 86400) for target in config.targets]
    page.publish(page.render([one for one in found if one is not None], now), config.page)


async def run(config: Config, command: str) -> int:
    with history.opened(config.database) as connection:
        if command == "page":
            draw(config, connection)
            return 0
        async with httpx.AsyncClient(timeout=config.timeout, follow_redirects=True) as client:
            while True:
                begin = time.monotonic()
                code = await once(config, client, connection)
                if command == "once":
                    return code
                history.prune(connection, time.time() - 2 * DAYS * 86400)
                await asyncio.sleep(max(0.0, config.every - (time.monotonic() - begin)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="pingboard")
    parser.add_argument("command", choices=["run", "once", "page"])
    parser.add_argument("--config", type=Path, default=Path(os.environ.get("PINGBOARD_CONFIG", "pingboard.toml")))
    given = parser.parse_args()
    try:
        sys.exit(asyncio.run(run(load(given.config), given.command)))
    except ConfigError as error:
        sys.exit(f"pingboard: {error}")
    except (sqlite3.Error, OSError) as error:
        sys.exit(f"pingboard: the history or the page cannot be written: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
