"""Tests of scoring pages of a crawl with a Python function."""

import json
import subprocess
import sys


def answers(folder, text, pages):
    (folder / "mymodule.py").write_text(text)
    run = subprocess.run(
        [sys.executable, "-m", "arose.score", "mymodule:score"],
        cwd=folder,
        input="".join(json.dumps(page) + "\n" for page in pages),
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in run.stdout.splitlines()], run.stderr


def test_issue_27_a_function_scores_pages(tmp_path):
    text = 'def score(page):\n    print("noise")\n    return 1 / len(page["text"])\n'
    pages = [{"id": n, "url": "http://a/", "title": "", "text": "x" * n} for n in (4, 0, 2)]
    scores, errors = answers(tmp_path, text, pages)
    assert scores == [{"id": 4, "score": 0.25}, {"id": 0, "score": None}, {"id": 2, "score": 0.5}]
    assert "ZeroDivisionError" in errors and "noise" in errors


def test_issue_27_a_scorer_without_a_function_says_how(tmp_path):
    run = subprocess.run([sys.executable, "-m", "arose.score"], capture_output=True, text=True)
    assert run.returncode == 2
    assert "MODULE:FUNCTION" in run.stderr
