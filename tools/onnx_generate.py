#!/usr/bin/env python3
"""Answers a prompt with what `trtmc export` wrote, by onnxruntime on the CPU: greedily, with keys and values from
step to step.

    onnx_generate.py DIR [PROMPT] [--prompt-ids '[1, 2]'] [--max-tokens N] [--json]

The prompt is used as it is, without the chat template; `trtmc prompt BUNDLE` renders one. Prints what
`trtmc run BUNDLE --raw --temperature 0` prints. Needs onnxruntime and, for text, tokenizers (tests/requirements.txt).
"""
import argparse
import json
import pathlib
import sys

import numpy as np
import onnxruntime


class OnnxModel:
    """A session, and the shapes that its caches begin with."""

    def __init__(self, folder, file="model.onnx"):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        # Products with weights of few bits as they are, not with activations of 8 bits.
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
        # Else weights are in memory twice.
        options.add_session_config_entry("session.disable_prepacking", "1")
        self.session = onnxruntime.InferenceSession(str(pathlib.Path(folder) / file), options,
                                                    providers=["CPUExecutionProvider"])
        self.caches = [i for i in self.session.get_inputs() if i.name.startswith("past_key_values.")]
        self.outputs = [o.name for o in self.session.get_outputs()]

    def empty_past(self, batch):
        kinds = {"tensor(float16)": np.float16, "tensor(float)": np.float32}
        return {c.name: np.zeros((batch, c.shape[1], 0, c.shape[3]), kinds[c.type]) for c in self.caches}

    def run(self, ids, attention_mask=None, position_ids=None, past=None):
        """Logits [batch, sequence, vocabulary] and the past of the next step. By default every token counts, and
        follows those of the past."""
        ids = np.asarray(ids, np.int64)
        past = past or self.empty_past(len(ids))
        before = next(iter(past.values())).shape[2] if past else 0
        total = before + ids.shape[1]
        if attention_mask is None:
            attention_mask = np.ones((len(ids), total), np.int64)
        if position_ids is None:
            position_ids = np.tile(np.arange(before, total), (len(ids), 1))
        results = self.session.run(self.outputs, {
            "input_ids": ids, "attention_mask": np.asarray(attention_mask, np.int64),
            "position_ids": np.asarray(position_ids, np.int64), **past})
        presents = zip(self.outputs[1:], results[1:])
        return results[0], {name.replace("present.", "past_key_values."): value for name, value in presents}

    def greedy(self, prompt_ids, max_tokens, stop_ids=()):
        """Up to `max_tokens` tokens; a stop id ends them and is left out."""
        out, step, past = [], list(prompt_ids), None
        while len(out) < max_tokens:
            logits, past = self.run([step], past=past)
            token = int(logits[0, -1].argmax())
            if token in stop_ids:
                break
            out.append(token)
            step = [token]
        return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("prompt", nargs="?")
    parser.add_argument("--prompt-ids", type=json.loads)
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--json", action="store_true", help="the ids as one JSON array, not the text")
    args = parser.parse_args()
    if (args.prompt is None) == (args.prompt_ids is None):
        parser.error("give a prompt or --prompt-ids")
    ids, tokenizer = args.prompt_ids, None
    if ids is None or not args.json:
        import tokenizers  # pylint: disable=import-outside-toplevel
        tokenizer = tokenizers.Tokenizer.from_file(str(args.folder / "tokenizer.json"))
    if ids is None:
        ids = tokenizer.encode(args.prompt, add_special_tokens=False).ids
    stops = json.loads((args.folder / "generation_config.json").read_text()).get("eos_token_id", [])
    answer = OnnxModel(args.folder).greedy(ids, args.max_tokens, stops)
    sys.stdout.write(json.dumps(answer) + "\n" if args.json else tokenizer.decode(answer, skip_special_tokens=True))


if __name__ == "__main__":
    main()
