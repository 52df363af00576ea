#!/usr/bin/env python3
"""make_sampling_goldens.py: writes tests/golden/sampling.json.xz, what Transformers' own processors and warpers keep.

Runs them in float64 on fixed logits, in the order in which generate() applies them, and records the ids that are left
with their probabilities. Needs torch and transformers (tests/requirements.txt)."""
import json
import pathlib
import random

import torch
import transformers
from transformers.generation import logits_process as lp

import packed

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/sampling.json.xz"
VOCABULARY = 96
CASES = [
    {"temperature": 0.7},
    {"temperature": 1.8},
    {"top_k": 1},
    {"top_k": 7},
    {"top_k": 7, "decimals": 0},  # Rounded logits: many are equal to the k-th.
    {"top_k": 20, "decimals": 0},
    {"top_k": 500},
    {"top_p": 0.95},
    {"top_p": 0.5},
    {"top_p": 0.01},
    {"top_p": 0.999999},
    {"min_p": 0.05},
    {"min_p": 0.5},
    {"min_p": 1.0},
    {"repetition_penalty": 1.3},
    {"repetition_penalty": 0.6},
    {"temperature": 0.6, "top_p": 0.95},
    {"temperature": 0.6, "top_k": 20, "top_p": 0.95},
    {"temperature": 1.5, "top_k": 50, "top_p": 0.9, "min_p": 0.1},
    {"temperature": 0.8, "top_k": 30, "top_p": 0.8, "min_p": 0.02, "repetition_penalty": 1.2},
]


def warpers(case):
    if "repetition_penalty" in case:
        yield lp.RepetitionPenaltyLogitsProcessor(penalty=case["repetition_penalty"])
    if "temperature" in case:
        yield lp.TemperatureLogitsWarper(case["temperature"])
    if "top_k" in case:
        yield lp.TopKLogitsWarper(top_k=case["top_k"])
    if "top_p" in case:
        yield lp.TopPLogitsWarper(top_p=case["top_p"])
    if "min_p" in case:
        yield lp.MinPLogitsWarper(min_p=case["min_p"])


def require_clear_edge(scores, top_p):
    """A case whose nucleus ends within rounding of top_p would test the rounding, not the rule."""
    mass = torch.sort(scores, descending=False)[0].softmax(-1).cumsum(-1)
    assert (mass - (1 - top_p)).abs().min() > 1e-7, top_p


def run(number, case):
    case = dict(case)
    decimals = case.pop("decimals", 3)
    source = random.Random(1000 + number)
    logits = [round(source.gauss(0, 3), decimals) + 0.0 for _ in range(VOCABULARY)]
    context = [source.randrange(VOCABULARY) for _ in range(24)]
    # The floats that a float32 engine sees, exactly.
    scores = torch.tensor([logits], dtype=torch.float32).to(torch.float64)
    ids = torch.tensor([context])
    for warper in warpers(case):
        if isinstance(warper, lp.TopPLogitsWarper):
            require_clear_edge(scores, case["top_p"])
        scores = warper(ids, scores)
    probabilities = scores.softmax(-1)[0]
    kept = [i for i in range(VOCABULARY) if scores[0, i] != -float("inf")]
    return {"params": case, "logits": logits, "context": context, "kept": kept,
            "probabilities": [float(probabilities[i]) for i in kept]}


def main():
    made_with = {"torch": torch.__version__, "transformers": transformers.__version__}
    cases = [run(number, case) for number, case in enumerate(CASES)]
    text = '{"made_with": %s,\n "cases": [\n%s\n]}\n' % (json.dumps(made_with), ",\n".join(map(json.dumps, cases)))
    packed.write_xz(GOLDEN, text.encode())


main()
