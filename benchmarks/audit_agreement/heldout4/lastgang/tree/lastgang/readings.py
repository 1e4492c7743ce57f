"""Load curves from the database."""
import sqlite3
from dataclasses import dataclass


@dataclass
class Curve:
    meter: str
    day: str
    kwh: list  # 96 quarter hours

    @property
    def total(self):
        return sum(self.kwh)

    @property
    def base(self):
        """Mean of the hours between 1 and 4, when nobody is in the building."""
        night = self.kwh[4:16]
        return sum(night) / len(night) if night else 0.0


def curve(meter, day):
    db = sqlite3.connect("meters.db")
    rows = db.execute(
        f"select kwh from readings where meter = '{meter}' and ts like '{day}%' order by ts"
    ).fetchall()
    return Curve(meter, day, [r[0] for r in rows])


def similar_days(meter, day, n=10):
    """The same weekday of the weeks before."""
    db = sqlite3.connect("meters.db")
    days = db.execute(
        f"select distinct date(ts) from readings where meter = '{meter}' and date(ts) < '{day}' "
        f"and strftime('%w', ts) = strftime('%w', '{day}') order by 1 desc limit {n}"
    ).fetchall()
    return [curve(meter, d[0]) for d in days]
