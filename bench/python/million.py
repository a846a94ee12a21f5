r"""A million short strings through arose.dedup: CPU beside clock time, by stage, and memory.

    A/bin/python bench/python/million.py [list|generator|pandas|arrow] [--texts N] [--words N] \
        [--policy NAME]
"""

import argparse
import random
import resource
import time


def texts(n, n_words):
    draw = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(draw.choices(letters, k=draw.randint(3, 9))) for _ in range(20_000)]
    return [" ".join(draw.choices(words, k=n_words)) for _ in range(n)]


def input_of(kind, made):
    if kind == "generator":
        return (text for text in made)
    if kind == "pandas":
        import pandas

        return pandas.DataFrame({"text": made})
    if kind == "arrow":
        import pyarrow

        return pyarrow.array(made)
    return made


def peak_kib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main():
    parser = argparse.ArgumentParser()
    kinds = ["list", "generator", "pandas", "arrow"]
    parser.add_argument("kind", nargs="?", default="list", choices=kinds)
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--words", type=int, default=8)
    parser.add_argument("--policy", help="default: that of arose.dedup")
    options = parser.parse_args()
    import arose

    policy = {"policy": options.policy} if options.policy else {}

    made = texts(options.texts, options.words)
    data = input_of(options.kind, made)
    arose.dedup(["once, so that everything is loaded"], **policy)
    stages = []

    def told(stage, done, total):
        if not stages or stages[-1][0] != stage:
            stages.append((stage, time.monotonic(), time.process_time()))

    before, begin, begin_cpu = peak_kib(), time.monotonic(), time.process_time()
    found = arose.dedup(data, progress=told, **policy)
    stages.append(("end", time.monotonic(), time.process_time()))
    wall, cpu = stages[-1][1] - begin, stages[-1][2] - begin_cpu
    n_bytes = sum(map(len, made))
    print(
        f"{options.kind}: {wall:.2f} s, {cpu:.2f} s of CPU, {cpu / wall:.2f} cores; "
        f"{n_bytes / 1e6:.0f} MB of text, {(peak_kib() - before) * 1024 / 1e6:.0f} MB above it"
    )
    for (stage, start, start_cpu), (_, end, end_cpu) in zip(stages, stages[1:]):
        print(f"  {stage:10} {end - start:6.2f} s, CPU {end_cpu - start_cpu:6.2f} s")
    print(found)


if __name__ == "__main__":
    main()
