import sqlite3
import sys

import pandas as pd


def main(path):
    df = pd.read_csv(path, sep=";", decimal=",", parse_dates=["zeit"])
    df = df.rename(columns={"zeit": "ts", "zaehler": "meter", "kwh": "kwh"})
    df["ts"] = df["ts"].dt.strftime("%Y-%m-%d %H:%M")
    with sqlite3.connect("meters.db") as db:
        df[["meter", "ts", "kwh"]].to_sql("readings", db, if_exists="append", index=False)
    print(len(df), "rows")


if __name__ == "__main__":
    main(sys.argv[1])
