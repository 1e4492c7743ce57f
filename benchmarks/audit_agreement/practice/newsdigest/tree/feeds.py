import glob
import os
import xml.etree.ElementTree as ET

import config


def load_all():
    items = []
    for path in glob.glob(os.path.join(config.FEED_DIR, "*.xml")):
        try:
            root = ET.parse(path).getroot()
            for item in root.iter("item"):
                items.append({
                    "title": item.findtext("title"),
                    "link": item.findtext("link"),
                    "date": item.findtext("pubDate"),
                    "text": item.findtext("description") or "",
                    "feed": os.path.basename(path),
                })
        except:
            pass
    return items
