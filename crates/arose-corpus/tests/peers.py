"""Write corpora with other tools, and record what those tools read from them.

    python peers.py DIR ROWS [ARCHIVE...]

Writes one file per tool and kind into DIR, each with ROWS documents, and `truth.jsonl`: for each file
the fields to ask for and the documents that a tool other than arose reads from it. Web archives given
as further arguments are read by warcio in place. Needs pyarrow, pandas, polars, datasets and warcio;
archives of wget are left out where wget is not installed.
"""

import bz2
import csv
import datetime
import gzip
import http.server
import io
import json
import lzma
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

import datasets
import pandas
import polars
import pyarrow
import pyarrow.parquet as parquet
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

START = datetime.datetime(2024, 5, 18, 1, 58, 10, tzinfo=datetime.timezone.utc)


def rows(n):
    """Return the documents: texts in several scripts, with quotes, line ends, tabs and backslashes."""
    texts = [
        'A rose is a rose, "is" a rose.',
        "Zwei Zeilen:\nüber Rosen \\ und Dornen,\tmit Tab.",
        "一朵玫瑰就是一朵玫瑰。🌹",
        "{ not: an object }, [nor an array]",
        "роза это роза\r\n",
    ]
    for i in range(n):
        yield {
            "id": f"doc-{i}",
            "url": f"https://example.org/{i % 7}/{i}",
            "text": f"{i}: {texts[i % 5]}" + " rose" * (i % 50),
            "lang": ["en", "de", "zh"][i % 3],
            "score": i / 8,
            "date": START + datetime.timedelta(minutes=i),
        }


class Truth:
    """The contents of the files."""

    def __init__(self, folder):
        self.folder = folder
        self.lines = []

    def add(self, name, documents, tool, **fields):
        line = {"file": str(name), "tool": tool, "fields": fields, "documents": list(documents)}
        self.lines.append(json.dumps(line, ensure_ascii=False))

    def table(self, name, tool, **fields):
        """Add what pyarrow reads from a Parquet file, by paths."""
        names = {"text": "text", "id": "id", "url": "url"} | fields
        found = []
        for row in parquet.read_table(self.folder / name).to_pylist():
            found.append({role: plain(step(row, path)) for role, path in names.items()})
        self.add(name, [row for row in found if row["text"] is not None], tool, **fields)

    def objects(self, name, objects, tool, **fields):
        names = {"text": "text", "id": "id", "url": "url"} | fields
        found = [{role: plain(step(row, path)) for role, path in names.items()} for row in objects]
        self.add(name, found, tool, **fields)


def step(row, path):
    if path in row:
        return row[path]
    for name in path.split("."):
        row = row.get(name) if isinstance(row, dict) else None
    return row


def plain(value):
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    return value if value is None else str(value)


def write_pyarrow(truth, n):
    table = pyarrow.Table.from_pylist(list(rows(n)))
    folder = truth.folder
    parquet.write_table(table, folder / "pyarrow.parquet")
    truth.table("pyarrow.parquet", "pyarrow", priority="score", fetched="date")

    encoded = table
    for name in ["url", "text", "lang", "id"]:
        column = encoded[name].dictionary_encode()
        encoded = encoded.set_column(encoded.column_names.index(name), name, column)
    parquet.write_table(encoded, folder / "pyarrow-dictionary.parquet")
    truth.table("pyarrow-dictionary.parquet", "pyarrow", priority="score")

    views = table.set_column(2, "text", table["text"].cast(pyarrow.string_view()))
    parquet.write_table(views, folder / "pyarrow-string-view.parquet", compression="zstd")
    truth.table("pyarrow-string-view.parquet", "pyarrow")

    large = table.set_column(2, "text", table["text"].cast(pyarrow.large_string()))
    large = large.set_column(1, "url", table["url"].cast(pyarrow.large_binary()))
    large = large.set_column(4, "score", table["score"].cast(pyarrow.decimal128(12, 3)))
    parquet.write_table(large, folder / "pyarrow-large.parquet", compression="gzip")
    truth.table("pyarrow-large.parquet", "pyarrow")

    nested = [
        {
            "id": i,
            "data": None if i % 5 == 4 else {"text": row["text"], "lang": row["lang"]},
            "meta": {"page": {"url": row["url"]}, "score": row["score"], "date": row["date"]},
        }
        for i, row in enumerate(rows(n))
    ]
    table = pyarrow.Table.from_pylist(nested)
    parquet.write_table(table, folder / "pyarrow-nested.parquet", compression="brotli")
    paths = {"text": "data.text", "url": "meta.page.url", "priority": "meta.score"}
    truth.table("pyarrow-nested.parquet", "pyarrow", **paths, fetched="meta.date")


def write_groups(truth, n):
    """Row groups without rows between others, version 2 pages and a page index."""
    table = pyarrow.Table.from_pylist(list(rows(n)))
    name = "pyarrow-empty-groups.parquet"
    options = {"data_page_version": "2.0", "write_page_index": True, "data_page_size": 256}
    with parquet.ParquetWriter(truth.folder / name, table.schema, **options) as writer:
        writer.write_table(table.slice(0, 0))
        for start in range(0, n, max(n // 3, 1)):
            writer.write_table(table.slice(start, max(n // 3, 1)), row_group_size=2000)
            writer.write_table(table.slice(0, 0))
    truth.table(name, "pyarrow", priority="score")


def write_pandas(truth, n):
    frame = pandas.DataFrame(rows(n))
    folder = truth.folder
    frame["lang"] = frame["lang"].astype("category")
    frame["url"] = frame["url"].astype("category")
    frame["id"] = pandas.array(range(n), dtype="Int64")
    frame.to_parquet(folder / "pandas.parquet", index=True)
    truth.table("pandas.parquet", "pandas", priority="score", fetched="date")

    frame = pandas.DataFrame(rows(n)).drop(columns="date")
    records = frame.to_dict(orient="records")
    for name, options in {
        "pandas-array.json": {"orient": "records"},
        "pandas-indented.json": {"orient": "records", "indent": 2},
        "pandas-lines.json": {"orient": "records", "lines": True},
        "pandas-lines.json.bz2": {"orient": "records", "lines": True, "force_ascii": False},
        "pandas-array.json.xz": {"orient": "records"},
    }.items():
        frame.to_json(folder / name, **options)
        truth.objects(name, records, "pandas", priority="score")
    for name in ["pandas.csv", "pandas.csv.xz"]:
        frame.to_csv(folder / name, index=False)
        found = pandas.read_csv(folder / name, dtype=str, keep_default_na=False)
        truth.objects(name, found.to_dict(orient="records"), "pandas")
    # Without characters that would need quotes, which tab-separated values do not have.
    frame["text"] = frame["text"].str.replace(r'[\s"\\]+', " ", regex=True)
    frame.to_csv(folder / "pandas.tsv", sep="\t", index=False, quoting=csv.QUOTE_NONE)
    truth.objects("pandas.tsv", frame.to_dict(orient="records"), "pandas")


def write_polars(truth, n):
    frame = polars.DataFrame(list(rows(n)))
    folder = truth.folder
    coded = frame.with_columns(polars.col("url", "lang").cast(polars.Categorical))
    coded.write_parquet(folder / "polars.parquet")
    truth.table("polars.parquet", "polars", priority="score", fetched="date")
    nested = frame.select("id", "score", polars.struct("url", "lang").alias("meta"), "text")
    nested.write_parquet(folder / "polars-nested.parquet", compression="lz4", row_group_size=2)
    truth.table("polars-nested.parquet", "polars", url="meta.url", priority="score")
    frame = nested.unnest("meta")
    frame.write_json(folder / "polars.json")
    truth.objects("polars.json", json.loads((folder / "polars.json").read_text()), "polars")
    frame.write_ndjson(folder / "polars-lines.json")
    truth.objects("polars-lines.json", frame.to_dicts(), "polars", priority="score")


def write_datasets(truth, n):
    table = list(rows(n))
    columns = {
        "id": [row["id"] for row in table],
        "text": [row["text"] for row in table],
        "meta": [{"url": row["url"], "tags": [row["lang"], "x"]} for row in table],
        "label": [i % 3 for i in range(n)],
    }
    features = datasets.Features(
        {
            "id": datasets.Value("string"),
            "text": datasets.Value("large_string"),
            "meta": {"url": datasets.Value("string"), "tags": datasets.List(datasets.Value("string"))},
            "label": datasets.ClassLabel(names=["en", "de", "zh"]),
        }
    )
    made = datasets.Dataset.from_dict(columns, features=features)
    made.to_parquet(truth.folder / "datasets.parquet")
    truth.table("datasets.parquet", "datasets", url="meta.url", priority="label")
    made.to_json(truth.folder / "datasets.json")
    truth.objects("datasets.json", list(made), "datasets", url="meta.url")


def write_lines(truth, n):
    """The layouts of two well-known corpora."""
    table = list(rows(n))
    c4 = [{"text": r["text"], "timestamp": f"{r['date']:%Y-%m-%dT%H:%M:%SZ}", "url": r["url"]} for r in table]
    with gzip.open(truth.folder / "c4-train.00000-of-01024.json.gz", "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in c4)
    truth.objects("c4-train.00000-of-01024.json.gz", c4, "json", fetched="timestamp")
    dolma = [
        {
            "id": r["id"],
            "text": r["text"],
            "source": "common-crawl",
            "added": "2024-06-01T00:00:00.000Z",
            "created": f"{r['date']:%Y-%m-%dT%H:%M:%S.000Z}",
            "metadata": {"url": r["url"], "length": len(r["text"]), "ids": [[0, 1, 0.5]]},
        }
        for r in table
    ]
    paths = {"url": "metadata.url", "fetched": "created", "priority": "metadata.length"}
    for name, opened in {"dolma.json.xz": lzma.open, "dolma.jsonl.bz2": bz2.open}.items():
        with opened(truth.folder / name, "wt", encoding="utf-8") as out:
            out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in dolma)
        truth.objects(name, dolma, "json", **paths)
    with open(truth.folder / "dolma-indented.json", "w", encoding="utf-8") as out:
        out.writelines(json.dumps(row, indent=4) + "\n" for row in dolma)
    truth.objects("dolma-indented.json", dolma, "json", **paths)


def archived(path):
    """The documents that warcio finds in an archive: text where it is plain."""
    # warcio invents IDs, which ARC does not have.
    has_ids = ".arc" not in pathlib.Path(path).name
    with open(path, "rb") as stream:
        for record in ArchiveIterator(stream, arc2warc=True):
            headers = record.http_headers or record.rec_headers
            kind = (headers.get_header("Content-Type") or "").split(";")[0].strip()
            payload = record.content_stream().read()
            if record.rec_type not in ("response", "resource", "conversion") or kind == "text/dns":
                continue
            if not (kind.startswith("text/") or kind.endswith(("xml", "json"))) or kind == "text/css":
                continue
            yield {
                "url": record.rec_headers.get_header("WARC-Target-URI"),
                "id": record.rec_headers.get_header("WARC-Record-ID").strip("<>") if has_ids else None,
                "text": payload.decode() if kind == "text/plain" else None,
                "fetched": record.rec_headers.get_header("WARC-Date"),
            }


def write_archives(truth, n):
    for name, is_packed in {"warcio.warc": False, "heritrix.warc.gz": True}.items():
        with open(truth.folder / name, "wb") as out:
            writer = WARCWriter(out, gzip=is_packed, warc_version="1.0" if is_packed else "1.1")
            fields = {"software": "Heritrix/3.4.0", "format": "WARC File Format 1.0"}
            writer.write_record(writer.create_warcinfo_record(name, fields))
            if is_packed:
                dns = io.BytesIO(b"20240518015810\nexample.org.\t300\tIN\tA\t192.0.2.1\n")
                headers = {"WARC-IP-Address": "192.0.2.53"}
                writer.write_record(
                    writer.create_warc_record("dns:example.org", "response", payload=dns,
                                              warc_content_type="text/dns", warc_headers_dict=headers)
                )
            for i, row in enumerate(rows(n)):
                write_visit(writer, i, row)
        truth.add(name, archived(truth.folder / name), "warcio")
    wet = truth.folder / "wet.warc.gz"
    with open(wet, "wb") as out:
        writer = WARCWriter(out, gzip=True, warc_version="1.0")
        for i, row in enumerate(rows(n)):
            text = row["text"] + ("\v\b" if i % 2 else "")
            record = writer.create_warc_record(row["url"], "conversion", payload=io.BytesIO(text.encode()),
                                               warc_content_type="text/plain")
            writer.write_record(record)
    truth.add("wet.warc.gz", archived(wet), "warcio")


def write_visit(writer, i, row):
    """A response, its request and its metadata; every third body in chunks, the others plain."""
    body = row["text"].encode()
    headers = [("Content-Type", "text/plain; charset=utf-8")]
    if i % 3 == 0:
        headers.append(("Transfer-Encoding", "chunked"))
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:9], body[9:])) + b"0\r\n\r\n"
    elif i % 3 == 1:
        headers.append(("Content-Encoding", "gzip"))
        body = gzip.compress(body, mtime=0)
    else:
        headers.append(("Content-Length", str(len(body))))
    http_headers = StatusAndHeaders("200 OK", headers, protocol="HTTP/1.1")
    response = writer.create_warc_record(row["url"], "response", payload=io.BytesIO(body), http_headers=http_headers)
    request = StatusAndHeaders("GET / HTTP/1.0", [("Host", "example.org")], is_http_request=True)
    request = writer.create_warc_record(row["url"], "request", http_headers=request)
    writer.write_request_response_pair(request, response)
    links = io.BytesIO(b"outlink: https://example.org/ L a/@href\r\n")
    kind = "application/warc-fields"
    writer.write_record(writer.create_warc_record(row["url"], "metadata", payload=links, warc_content_type=kind))


class Site(http.server.BaseHTTPRequestHandler):
    """A few pages, texts and an image."""

    n = 0

    def do_GET(self):
        number = self.path.rsplit("/", 1)[-1]
        if self.path == "/":
            links = "".join(f'<a href="/text/{i}">{i}</a><img src="/image/{i}">' for i in range(self.n))
            kind, body = "text/html", f"<title>Roses</title><p>{links}".encode()
        elif self.path.startswith("/text/") and int(number) < self.n:
            kind, body = "text/plain; charset=utf-8", list(rows(int(number) + 1))[-1]["text"].encode()
        elif self.path.startswith("/image/"):
            kind, body = "image/gif", b"GIF89a\x01\x00\x01\x00"
        else:
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def write_wget(truth, n):
    if shutil.which("wget") is None:
        return
    Site.n = min(n, 30)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    with tempfile.TemporaryDirectory() as folder:
        command = ["wget", "--quiet", "--recursive", "--page-requisites", "--no-proxy", "--warc-file=wget"]
        subprocess.run([*command, "-e", "robots=off", address], cwd=folder, check=True)
        shutil.copy(pathlib.Path(folder) / "wget.warc.gz", truth.folder / "wget.warc.gz")
    server.shutdown()
    # The log and the arguments of wget are separate resources.
    truth.add("wget.warc.gz", archived(truth.folder / "wget.warc.gz"), "warcio")


def main():
    folder, n = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    truth = Truth(folder)
    for write in [write_pyarrow, write_groups, write_pandas, write_polars, write_datasets, write_lines,
                  write_archives, write_wget]:
        write(truth, n)
    for path in sys.argv[3:]:
        truth.add(pathlib.Path(path).resolve(), archived(path), "warcio")
    (folder / "truth.jsonl").write_text("".join(line + "\n" for line in truth.lines), encoding="utf-8")


main()
