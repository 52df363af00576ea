#!/usr/bin/env python3
"""Runs what `trtmc export` wrote by onnxruntime on the CPU and holds it to a case's gates, for `model_ci prove`.

    onnx_verify.py DIR --manifest FILE --golden FILE --dtype f32|f16      against Transformers' recorded results
    onnx_verify.py DIR --manifest FILE --answers FILE                     against `reference` on the same bundle

FILE of answers: [{"name", "prompt_ids", "ids", "logprobs"}], of greedy text. Prints the checks as `trtmc verify --json`
does. Needs numpy and onnxruntime (tests/requirements.txt).
"""
import argparse
import base64
import json
import pathlib

import numpy as np

from onnx_generate import OnnxModel
import packed
from text_gates import check, text_checks


def unpack(array):
    raw = base64.b64decode(array["data"])
    if array["dtype"] == "f32":
        return np.frombuffer(raw, np.float32).reshape(array["shape"])
    return (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(array["shape"])


def relative_l2(actual, expected):
    """Of each row."""
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    return np.linalg.norm(actual - expected, axis=-1) / np.linalg.norm(expected, axis=-1)


def cosine(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return (a * b).sum(-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))


def greedy_answers(model, golden):
    """Of each case its name, the model's tokens and Transformers' in float32."""
    return [(case["name"], model.greedy(case["prompt_ids"], len(case["float32"]["continuation"])),
             case["float32"]["continuation"]) for case in golden["cases"]]


def float32_checks(model, golden, gates):
    """As `trtmc verify --goldens` judges float32, but for hidden states, which an export does not show."""
    l2, cosines, sums = [], [], []
    for case in golden["cases"]:
        expected, rows = case["float32"], case["float32"]["positions"]
        logits = model.run([case["prompt_ids"]])[0][0]
        for actual, wanted in ((logits[case["full_positions"]], unpack(expected["logits"])),
                               (logits[rows][:, golden["columns"]], unpack(expected["columns"]))):
            l2 += list(relative_l2(actual, wanted))
            cosines += list(cosine(actual, wanted))
        ours = np.logaddexp.reduce(logits[rows].astype(np.float64), axis=-1)
        sums += list(np.abs(ours - unpack(expected["logsumexp"])))
    answers = greedy_answers(model, golden)
    wrong = sum(a != b for _, tokens, expected in answers for a, b in zip(tokens, expected, strict=True))
    return [check("float32: logits, relative L2, worst position", np.max(l2), gates["logits_relative_l2"]),
            check("float32: logits, cosine, worst position", np.min(cosines), gates["logits_cosine"], at_most=False),
            check("float32: log-sum-exp, difference", np.max(sums), gates["logsumexp_difference"]),
            check("float32: greedy tokens that differ", wrong, gates["greedy_mismatches"],
                  note=f"of {sum(len(tokens) for _, tokens, _ in answers)}")]


def half_checks(model, golden, gates):
    """A float of 16 bits against float32's results, by the gates of bfloat16."""
    l2, cosines, agreed = [], [], []
    for case in golden["cases"]:
        expected, rows = case["float32"], case["float32"]["positions"]
        logits = model.run([case["prompt_ids"]])[0][0].astype(np.float32)
        columns = logits[rows][:, golden["columns"]]
        l2 += list(relative_l2(columns, unpack(expected["columns"])))
        cosines += list(cosine(columns, unpack(expected["columns"])))
        decided = unpack(expected["margins"]) >= gates["argmax_margin"]
        agreed += list((logits[rows].argmax(-1) == np.array(expected["argmax"]))[decided])
    return [check("16 bits: logits, relative L2, 95th percentile", np.percentile(l2, 95), gates["relative_l2_p95"]),
            check("16 bits: logits, cosine, 5th percentile", np.percentile(cosines, 5), gates["cosine_p5"],
                  at_most=False),
            check("16 bits: argmax agreement where decided", np.mean(agreed), gates["argmax_agreement"], at_most=False,
                  note=f"{len(agreed)} positions")]


def choices_along(model, case, margin):
    """What the model says after each piece of the oracle's own text, where the oracle did not say the same within
    `margin`: a text left to itself after such a tie says no more about the model (decision 11)."""
    expected = case["float32"]
    text, firsts = expected["continuation"], expected["continuation_first"]
    rows = model.run([case["prompt_ids"] + text])[0][0, len(case["prompt_ids"]) - 1:-1]
    judged = []
    for token, wanted, first, logits in zip(rows.argmax(-1), text, firsts, unpack(expected["continuation_logits"])):
        tie = int(token) in first and logits[0] - logits[first.index(int(token))] < margin
        judged.append(wanted if tie else int(token))
    return judged


def half_texts(model, golden, margin):
    """Answers that are not the oracle's are judged token by token."""
    cases = {case["name"]: case for case in golden["cases"]}
    return [(name, tokens if tokens == expected else choices_along(model, cases[name], margin), expected)
            for name, tokens, expected in greedy_answers(model, golden)]


def golden_checks(model, golden, dtype, manifest):
    gates, texts = manifest["thresholds"], manifest["onnx"]["thresholds"]
    if dtype == "f32":
        return float32_checks(model, golden, gates["float32"]) + text_checks(greedy_answers(model, golden), texts)
    return (half_checks(model, golden, gates["bfloat16"])
            + text_checks(half_texts(model, golden, gates["bfloat16"]["argmax_margin"]), texts))


def answer_checks(model, answers, gates):
    """Log-probabilities along the other's text, and text left to itself."""
    differences, texts = [], []
    for answer in answers:
        prompt, ids = answer["prompt_ids"], answer["ids"]
        rows = model.run([prompt + ids])[0][0, len(prompt) - 1:-1].astype(np.float64)
        logprobs = (rows - np.logaddexp.reduce(rows, -1, keepdims=True))[np.arange(len(ids)), ids]
        differences += list(np.abs(logprobs - answer["logprobs"]))
        texts.append((answer["name"], model.greedy(prompt, len(ids)), ids))
    return [check("log-probabilities, worst difference from `reference`", np.max(differences),
                  gates["logprob_difference"], note=f"{len(differences)} tokens")] + text_checks(texts, gates)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--manifest", type=pathlib.Path, required=True)
    parser.add_argument("--golden", type=pathlib.Path)
    parser.add_argument("--answers", type=pathlib.Path)
    parser.add_argument("--dtype", choices=("f32", "f16"), default="f32")
    args = parser.parse_args()
    manifest, model = json.loads(args.manifest.read_text()), OnnxModel(args.folder)
    if args.answers:
        checks = answer_checks(model, json.loads(args.answers.read_text()), manifest["onnx"]["thresholds"])
    else:
        checks = golden_checks(model, json.loads(packed.read_text(args.golden)), args.dtype, manifest)
    print(json.dumps({"checks": checks, "passed": all(each["passed"] for each in checks)}))


if __name__ == "__main__":
    main()
