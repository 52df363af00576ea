"""The lines of next_words.jsonl as lm-eval takes them."""
import json
import pathlib

import datasets


def dataset(**_):
    text = pathlib.Path(__file__).with_suffix(".jsonl").read_text(encoding="utf-8")
    return {"test": datasets.Dataset.from_list([json.loads(line) for line in text.splitlines()])}
