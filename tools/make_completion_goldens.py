#!/usr/bin/env python3
"""make_completion_goldens.py: writes tests/golden/smollm3-tiny/completions.json, what the completions of the embedded
model have to be.

For each text, by Transformers in float32 on a CPU: its ids, the log-probability of every token after those before it
with the most likely ones beside it, where each token begins in the text, and the same of the tokens that continue it
greedily. Python counts texts in code points, as the API does.
"""
import json
import pathlib

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODEL = ROOT / "models/smollm3-tiny"
TEXTS = [
    "Once upon a time, there was a little",
    "The capital of France is",
    "Tea ☕ and cake 🍰, naïve façade, 東京",
    "Hello",
]
MOST_LIKELY = 5
CONTINUATION = 12


def likelihood(logits, token):
    """The token's log-probability, and the most likely tokens with theirs."""
    logprobs = torch.log_softmax(logits.double(), -1)
    top = torch.topk(logprobs, MOST_LIKELY)
    return {"logprob": round(logprobs[token].item(), 6),
            "top": [[int(i), round(p, 6)] for i, p in zip(top.indices.tolist(), top.values.tolist())]}


def offsets(tokenizer, text):
    return [start for start, _ in tokenizer(text, return_offsets_mapping=True).offset_mapping]


def golden(model, tokenizer, text):
    ids = tokenizer(text).input_ids
    ids_with_answer = model.generate(torch.tensor([ids]), max_new_tokens=CONTINUATION, do_sample=False,
                                     eos_token_id=-1)[0].tolist()
    logits = model(torch.tensor([ids_with_answer])).logits[0]
    scores = [likelihood(logits[i], token) for i, token in enumerate(ids_with_answer[1:])]
    answer = ids_with_answer[len(ids):]
    return {"text": text, "ids": ids, "offsets": offsets(tokenizer, text), "scores": scores[:len(ids) - 1],
            "answer_ids": answer, "answer_scores": scores[len(ids) - 1:],
            "answer": tokenizer.decode(answer, clean_up_tokenization_spaces=False)}


def main():
    transformers.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
    model = transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32)
    with torch.no_grad():
        cases = [golden(model, tokenizer, text) for text in TEXTS]
    about = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    text = json.dumps(about)[:-1] + f', "cases": [\n{lines}\n]}}\n'
    (ROOT / "tests/golden/smollm3-tiny/completions.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
