"""An engine in one process, which shuffles lists in an arbitrary order."""

import json
import random

import pyarrow as pa

from arose import _arose
from arose.cluster import MESSAGES, NOTE, start_of, work


class LocalEngine:
    """Tables are lists of messages."""

    def __init__(self, options, n_partitions, seed, chunk_folder=None):
        self.chunk_folder = chunk_folder
        self.options = json.dumps(options)
        self.n_partitions = n_partitions
        self.random = random.Random(seed)
        self.tables = {}
        self.rows = {}
        #: Kept records, by source.
        self.kept = {}

    def read(self, parts):
        chunks = []
        for number, part in enumerate(parts):
            for chunk in _arose.read_part(
                number, part, self.options, _arose.__version__, self.chunk_folder
            ):
                chunks += pa.record_batch(chunk).to_pylist()
        self.tables["read"] = chunks

    def chunks(self, kind, bytes, more=None):
        return [
            (chunk["part"], kind, chunk["seq"], chunk[bytes], more and chunk[more])
            for chunk in self.tables["read"]
        ]

    def stored(self, name, *kinds):
        return [message for message in self.tables[name] if message[1] in kinds]

    def map(self, tables, step, context):
        messages = self._shuffled_anyhow(tables)
        half = len(messages) // 2
        parts = [messages[:half], messages[half:]]
        return [m for part in parts for m in self._run(part, step, context, False)]

    def reduce(self, tables, step, context):
        return [m for part in self._parts(tables) for m in self._run(part, step, context, False)]

    def store(self, name, table):
        self.tables[name] = table

    def store_rows(self, name, steps):
        rows = []
        for how, tables, step, context in steps:
            parts = [sum(tables, [])] if how == "map" else self._parts(tables)
            for part in parts:
                rows += self._run(part, step, context, True)
        self.rows[name] = rows

    def store_kept(self, tables, step, context):
        for part in self._parts(tables):
            for row in self._run(part, step, context, True):
                self.kept.setdefault(row["source"], []).append(row)
        return {"kept_in": None, "lost": []}

    def notes(self, name):
        if name == "read":
            return [chunk["note"] for chunk in self.tables[name] if chunk["note"]]
        return [message[3].decode() for message in self.tables[name] if message[1] == NOTE]

    def shards(self):
        shards = {}
        for chunk in self.tables["read"]:
            n_docs, n_tokens = shards.get(chunk["part"], (0, 0))
            shards[chunk["part"]] = (n_docs + chunk["n_docs"], n_tokens + chunk["n_tokens"])
        return [(part, *counts) for part, counts in shards.items()]

    def places(self):
        chunks = self.tables["read"]
        return [(chunk["part"], chunk["seq"], start_of(chunk["sketches"])) for chunk in chunks]

    def _shuffled_anyhow(self, tables):
        messages = sum(tables, [])
        self.random.shuffle(messages)
        return messages

    def _parts(self, tables):
        parts = [[] for _ in range(self.n_partitions)]
        for message in self._shuffled_anyhow(tables):
            parts[hash(message[0]) % self.n_partitions].append(message)
        return [sorted(part, key=lambda message: message[:3]) for part in parts]

    def _run(self, messages, step, context, rows):
        columns = zip(*messages) if messages else [[]] * 5
        columns = [pa.array(list(c), t) for c, t in zip(columns, MESSAGES.types)]
        batch = pa.record_batch(columns, schema=MESSAGES)
        cut = self.random.randrange(1, 9)
        batches = (batch.slice(at, cut) for at in range(0, len(batch), cut))
        found = []
        for out in work(batches, step, self.options, context, rows):
            found += out.to_pylist() if rows else [tuple(row.values()) for row in out.to_pylist()]
        return found


class Memory:
    """Completed stages, for the duration of the test."""

    def __init__(self):
        self.notes = {}

    def done(self, name):
        return self.notes.get(name)

    def finish(self, name, note):
        self.notes[name] = note
