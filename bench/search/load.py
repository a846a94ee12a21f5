"""Runs wrk against the search at full speed for a minute while ratings are saved; prints counts and
errors of both."""

import http.client
import re
import subprocess
import sys
import tempfile
import threading
import urllib.parse

from words import queries

SCRIPT = """
local paths = { %s }
local i = 0
request = function()
  i = i %% #paths + 1
  return wrk.format("GET", paths[i])
end
"""


def rate(address, stop, counts):
    """Rates pairs until it is stopped."""
    rater = 0
    while not stop.is_set():
        rater += 1
        while not stop.is_set():
            connection = http.client.HTTPConnection(address)
            connection.request("GET", f"/rate?rater=load{rater}")
            page = connection.getresponse().read().decode()
            found = re.search(r'name="a" value="(\d+)".*?name="b" value="(\d+)"', page, re.S)
            if not found:
                break
            form = f"rater=load{rater}&by=b&a={found[1]}&b={found[2]}&verdict=undecided"
            head = {"Content-Type": "application/x-www-form-urlencoded"}
            connection = http.client.HTTPConnection(address)
            connection.request("POST", "/rate", form, head)
            counts["rated" if connection.getresponse().status == 303 else "failed"] += 1


def main():
    address, pages = sys.argv[1:3]
    # A query is repeated only after 10,000 others.
    asked = list(dict.fromkeys(queries(pages, 15000)))[:10000]
    paths = ("/?q=" + urllib.parse.quote(query) for query in asked)
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(SCRIPT % ", ".join(f'"{path}"' for path in paths))
        script.flush()
        stop, counts = threading.Event(), {"rated": 0, "failed": 0}
        rater = threading.Thread(target=rate, args=(address, stop, counts))
        rater.start()
        subprocess.run(["wrk", "-t1", "-c8", "-d60", "-s", script.name, f"http://{address}"], check=True)
        stop.set()
        rater.join()
        print(counts)


main()
