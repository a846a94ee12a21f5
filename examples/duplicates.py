"""A walk through arose in Python, from two texts to a deduplicated corpus.

Run it from the root of the repository: python examples/duplicates.py
"""

# %% Two texts
import arose

draft = "Once upon a midnight dreary, while I pondered, weak and weary"
final = "Once upon a midnight dreary, while I pondered, weak and tired"
print(arose.compare(draft, final, w=3))

# %% A page
page = arose.extract(open("examples/page.html").read(), "content")
print(page.title, "-", page.text[:60], "...")

# %% Documents out of files
reader = arose.read("examples/pages.jsonl")
table = reader.read_all()
print(table)

# %% Sketches of a column, without a copy
sketcher = arose.Sketcher("jaccard")
sketches = sketcher.sketch(table.to_pyarrow()["text"]).to_pyarrow()
one, other = sketches["samples"][0].as_py(), sketches["samples"][1].as_py()
print("estimated similarity of the first two pages:", sketcher.estimate(one, other))

# %% The whole job
found = arose.dedup("examples/pages.jsonl")
counts = found.summary["counts"]
print(f"{counts['read']} pages, {counts['kept']} kept, {counts['pairs']} pairs")

# %% What was dropped, and why
documents = found.documents.to_pandas()
dropped = documents[~documents.kept]
print(dropped[["id", "kept_doc", "rule", "similarity"]].head(5).to_string(index=False))
