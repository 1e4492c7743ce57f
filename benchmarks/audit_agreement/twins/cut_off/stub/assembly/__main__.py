import sys

from .flow import make_flow

end = make_flow().invoke({"url": sys.argv[1]})
print(end.get("verdict") or end["trouble"])
