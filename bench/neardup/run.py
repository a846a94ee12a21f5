"""Compares `arose dedup` with other engines on one corpus: time, memory, recall, precision.

    python3 bench/neardup/run.py --corpus FILE.jsonl --truth TRUTH.tsv

README.md in this directory explains how to make the environments, a corpus and its truth. The
command is $AROSE, or `arose` on the path.
"""

import argparse
import datetime
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import measure
import score

HERE = Path(__file__).resolve().parent
BENCH = HERE.parent
AROSE = os.environ.get("AROSE", "arose")

# Runs of `arose dedup`: one as usual, one that lists every pair so that pairs can be scored, and one
# that writes no copies of the kept documents, as the other engines.
OWN = {"arose": [], "arose-pairs": ["--pairs", "all"], "arose-ids": ["--ids-only"]}

# Other engines: the module to import, and the name of the package.
OTHERS = {
    "daft": ("daft", "daft"),
    "gaoya": ("gaoya", "gaoya"),
    "rensa": ("rensa", "rensa"),
    "FastSketchLSH": ("FastSketchLSH", "FastSketchLSH"),
    "datasketch": ("datasketch", "datasketch"),
    "text-dedup": ("text_dedup", "text-dedup"),
    "datatrove": ("datatrove", "datatrove"),
}

PROBE = """
import importlib, importlib.metadata, sys
importlib.import_module(sys.argv[1])
print(importlib.metadata.version(sys.argv[2]))
"""


@dataclass
class Engine:
    """An engine and its measurements."""

    name: str
    python: str
    version: str = ""
    trouble: str = ""
    """Why it has no row in the tables; empty if it has one."""
    costs: list = field(default_factory=list)
    score: dict | None = None

    def median(self, quantity):
        return statistics.median(getattr(cost, quantity) for cost in self.costs)


def main():
    options = arguments()
    load = measure.load()
    engines = [Engine(name, options.python.get(name, sys.executable)) for name in options.engines]
    for engine in engines:
        probe(engine)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    measure.adopt_orphans()
    options.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        measure_all(engines, options, Path(work))
    text = report(engines, options, load)
    print(text)
    if options.record:
        options.record.write_text(text)
    if any(engine.trouble.startswith("failed") for engine in engines):
        sys.exit(1)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="JSON lines with id and text")
    parser.add_argument("--truth", type=Path, required=True, help="lines of id, id, similarity")
    parser.add_argument("--engines", type=names, default=[*OWN, *OTHERS], metavar="NAME,...")
    parser.add_argument("--python", type=interpreter, action="append", default=[],
                        metavar="NAME,...=PATH",
                        help="interpreter of these engines; that of arose reads its tables")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument("--threads", type=int, default=1, help="cores that every engine may use")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds for one run")
    parser.add_argument("--work", type=Path, default=BENCH / "work", help="scratch folder")
    parser.add_argument("--record", type=Path, help="file to write; a bare name goes to records/")
    options = parser.parse_args()
    options.python = {name: path for chosen, path in options.python for name in chosen}
    if options.rounds < 1 or options.threads < 1:
        parser.error("rounds and threads are at least 1")
    if options.record and options.record.parent == Path("."):
        options.record = BENCH / "records" / options.record
    return options


def names(text):
    known = [*OWN, *OTHERS]
    chosen = text.split(",")
    for name in chosen:
        if name not in known:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
    return chosen


def interpreter(text):
    chosen, separator, path = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PATH")
    return names(chosen), path


def probe(engine):
    """Records the version, or that the engine is not installed."""
    if engine.name in OWN:
        command = [AROSE, "--version"]
    else:
        command = [engine.python, "-c", PROBE, *OTHERS[engine.name]]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        engine.version = done.stdout.split()[-1]
    except OSError as error:
        engine.trouble = f"not installed ({error.strerror})"
    except subprocess.CalledProcessError as error:
        engine.trouble = f"not installed ({error.stderr.strip().splitlines()[-1]})"
    if engine.trouble:
        say(f"{engine.name}: {engine.trouble}")


def measure_all(engines, options, work):
    """Runs all engines in each round, starting with a different one, so that none has an advantage."""
    ids = work / "ids"
    subprocess.run([sys.executable, HERE / "score.py", "ids", options.corpus, ids], check=True)
    for number in range(options.rounds):
        first = number % len(engines)
        for engine in engines[first:] + engines[:first]:
            if not engine.trouble:
                measure_one(engine, options, work, ids)


def measure_one(engine, options, work, ids):
    folder, log = work / "out", work / "log"
    if engine.name not in OWN:
        folder.mkdir()
    cost = measure.run(command(engine, options, folder), log, environment(options), options.timeout)
    say(f"{engine.name}: {cost.cpu:.2f} CPU s, code {cost.code}, load {measure.load()}")
    if cost.code == 0:
        engine.costs.append(cost)
        if engine.score is None:
            score_one(engine, options, folder, ids)
    else:
        engine.trouble = f"failed with code {cost.code}"
        say(log.read_text(errors="replace")[-2000:])
    shutil.rmtree(folder, ignore_errors=True)


def command(engine, options, folder):
    threshold = str(options.threshold)
    if engine.name in OWN:
        threads = str(options.threads)
        return [AROSE, "dedup", options.corpus, "-o", folder, "--policy", "jaccard",
                "--threshold", threshold, "--threads", threads, *OWN[engine.name]]
    program = HERE / "engines" / f"with_{OTHERS[engine.name][0]}.py"
    return [engine.python, program, options.corpus, folder, "--threshold", threshold]


def environment(options):
    threads = ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    quiet = {"DAFT_PROGRESS_BAR": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    return os.environ | dict.fromkeys(threads, str(options.threads)) | quiet


def score_one(engine, options, folder, ids):
    """Scores the first result, in a separate process, so that this one stays small."""
    python = engine.python if engine.name in OWN else sys.executable
    program = [python, HERE / "score.py", "links", ids, options.truth, folder]
    done = subprocess.run([*program, str(options.threshold)], capture_output=True, text=True)
    if done.returncode == 0:
        engine.score = json.loads(done.stdout)
    else:
        engine.trouble = "failed to be scored"
        say(done.stderr)


def report(engines, options, load):
    measured = [engine for engine in engines if not engine.trouble]
    # arose first, since the others are given as multiples of it, and slow ones last.
    measured.sort(
        key=lambda engine: (engine.name != "arose", engine.name not in OWN, engine.median("cpu"))
    )
    parts = [heading(engines, options, load), *cost_table(measured), "", *bin_table(measured)]
    parts += [f"\n{engine.name}: {engine.trouble}" for engine in engines if engine.trouble]
    return "\n".join(parts) + "\n"


def heading(engines, options, load):
    versions = ", ".join(f"{engine.name} {engine.version}" for engine in engines if engine.version)
    megabytes = options.corpus.stat().st_size / 1e6
    return f"""# Near duplicates, {datetime.date.today()}

Command: `{command_line()}`

Machine: {measure.machine()}; {platform.system()} {platform.release()}, \
Python {platform.python_version()}. Load average {load} before, {measure.load()} after.

Versions: {versions}.

Corpus: {options.corpus.name}, {megabytes:.1f} MB; truth: {options.truth.name}. Rounds: \
{options.rounds}; median, and least to most. \
Threads: {options.threads}. Threshold: {options.threshold}.
"""


def command_line():
    """Returns the command line with each path reduced to its file name."""
    def short(word):
        name, separator, path = word.rpartition("=")
        return name + separator + os.path.basename(path.rstrip("/"))

    return " ".join(["python3 bench/neardup/run.py", *map(short, sys.argv[1:])])


def cost_table(engines):
    yield ("| engine | CPU s | times arose | wall s | times arose | peak MB | documents R / P "
           "| pairs R / P | clusters R / P |")
    yield "|---|---|---|---|---|---|---|---|---|"
    base = next((engine for engine in engines if engine.name == "arose"), None)
    for engine in engines:
        cells = [engine.name]
        for quantity in ("cpu", "wall"):
            cells += [spread(engine, quantity), ratio(engine, base, quantity)]
        cells.append(f"{engine.median('megabytes'):.0f}")
        cells += [share(engine.score.get(kind)) for kind in ("documents", "pairs", "clusters")]
        yield f"| {' | '.join(cells)} |"


def spread(engine, quantity):
    values = [getattr(cost, quantity) for cost in engine.costs]
    middle = f"{statistics.median(values):.2f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.2f}-{max(values):.2f})"


def ratio(engine, base, quantity):
    return f"{engine.median(quantity) / base.median(quantity):.1f}" if base else "-"


def share(value):
    return f"{value['recall']:.4f} / {value['precision']:.4f}" if value else "-"


def bin_table(engines):
    """Returns recall by true similarity: of pairs if the engine lists them, otherwise of clusters."""
    bounds = [f"{low:.2f}-{high:.2f}" for low, high in score.BINS]
    yield f"| recall | links | {' | '.join(bounds)} |"
    yield "|---|---|" + "---|" * len(bounds)
    for number, engine in enumerate(engines):
        bins = engine.score["bins"]
        if number == 0:
            yield f"| pairs in the truth | | {' | '.join(str(one['pairs']) for one in bins)} |"
        recalls = ["-" if one["recall"] is None else f"{one['recall']:.4f}" for one in bins]
        links = "pairs" if "pairs" in engine.score else "clusters"
        yield f"| {engine.name} | {links} | {' | '.join(recalls)} |"


def say(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
