# move old digests away, cron: 0 1 * * *
import datetime
import os
import shutil

import config


def archive():
    day = datetime.date.today().isoformat()
    target = os.path.join(os.path.dirname(config.OUT), "archive", day + ".html")
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.exists(config.OUT):
        shutil.copy(config.OUT, target)
        print("archived", target)
    else:
        print("no digest to archive")


if __name__ == "__main__":
    archive()
