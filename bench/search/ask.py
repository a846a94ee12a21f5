"""Sends mixed queries from two clients; prints median, p99 and maximum latency in milliseconds."""

import http.client
import json
import sys
import threading
import time
import urllib.parse

from words import queries


def client(address, asked, times):
    connection = http.client.HTTPConnection(address)
    for query in asked:
        begin = time.perf_counter()
        connection.request("GET", "/api/search?q=" + urllib.parse.quote(query))
        answer = connection.getresponse()
        body = answer.read()
        times.append(1000 * (time.perf_counter() - begin))
        assert answer.status == 200 and "documents" in json.loads(body), (query, body)


def main():
    address, pages = sys.argv[1:3]
    asked = queries(pages, 10000)
    times = []
    clients = [threading.Thread(target=client, args=(address, asked[i::2], times)) for i in range(2)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    times.sort()
    at = lambda share: times[min(len(times) - 1, int(share * len(times)))]
    print(f"{len(times)} queries: median {at(0.5):.2f} ms, p99 {at(0.99):.2f} ms, slowest {times[-1]:.2f} ms")


main()
