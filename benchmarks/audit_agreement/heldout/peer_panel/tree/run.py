import sys
from dotenv import load_dotenv

load_dotenv()

from panel.workflow import app

if __name__ == "__main__":
    url = sys.argv[1]
    final = app.invoke({"url": url, "facts": [], "opinions": [], "transcript": ""})
    print("Report:", final["report_path"])
