"""Tools of the specialists."""
import sqlite3

import requests
from langchain_core.tools import tool

from .config import DB_PATH, PARTS_URL


def _rows(sql: str, args: tuple = ()) -> list:
    conn = sqlite3.connect(DB_PATH)
    try:
        return conn.execute(sql, args).fetchall()
    finally:
        conn.close()


@tool
def lookup_policy(number: str) -> str:
    """Return cover, deductible and limit of a policy."""
    rows = _rows("SELECT holder, cover, deductible, limit_eur FROM policies WHERE number = ?", (number,))
    if not rows:
        return f"no policy {number}"
    holder, cover, deductible, limit = rows[0]
    return f"holder {holder}; covers {cover}; deductible {deductible} EUR; limit {limit} EUR"


@tool
def claim_history(number: str) -> str:
    """Return earlier claims of a policy."""
    rows = _rows("SELECT year, amount, cause FROM history WHERE number = ?", (number,))
    return "; ".join(f"{year}: {amount} EUR for {cause}" for year, amount, cause in rows) or "no earlier claims"


@tool
def part_price(part: str, model: str = "") -> str:
    """Look up the price of a spare part or a standard repair."""
    try:
        r = requests.get(f"{PARTS_URL}/price?part={part}&model={model}")
        return r.text[:500]
    except Exception as e:
        return f"price service failed: {e}"


@tool
def weather_on(day: str, town: str) -> str:
    """Check whether it hailed or stormed on a day in a town."""
    return f"No weather data for {town} on {day}."
