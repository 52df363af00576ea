#!/usr/bin/env python3
"""Records which special tokens Transformers passes to a chat template, and what the template makes of them.

    make_special_tokens_goldens.py > tests/golden/special_tokens.json

Each case is a checkpoint's tokenizer_config.json and special_tokens_map.json (null: no such file).
"""
import json
import pathlib
import tempfile

import transformers
from tokenizers import Tokenizer, models

TEMPLATE = ("{{ bos_token }}|{{ eos_token }}|{{ pad_token }}|{{ unk_token }}|{{ image_token }}|"
            "{{ bos_token is defined }}|{% for m in messages %}{{ m['content'] }}{% endfor %}{{ eos_token }}")
ADDED = {"0": {"content": "<s>", "lstrip": False, "normalized": False, "rstrip": False,
               "single_word": False, "special": True}}
TOKEN = {"content": "<s>", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
CASES = [
    ("llama", {"bos_token": "<s>", "eos_token": "</s>", "pad_token": None, "added_tokens_decoder": ADDED}, None),
    ("none", {}, None),
    ("an object", {"bos_token": {"__type": "AddedToken", **TOKEN}, "eos_token": "</s>"}, None),
    ("the map alone", {}, {"bos_token": TOKEN, "eos_token": "</s>", "unk_token": "<unk>"}),
    ("the map over the configuration", {"bos_token": "<a>", "pad_token": "<p>"}, {"bos_token": "<b>"}),
    ("the map beside added_tokens_decoder", {"bos_token": "<a>", "added_tokens_decoder": ADDED},
     {"bos_token": "<b>", "eos_token": "</s>"}),
    ("no configuration", None, {"bos_token": "<s>"}),
    ("tokens of their own name", {"image_token": "<image>", "add_bos_token": True, "eos_token": "</s>"}, None),
    ("extra tokens by name", {"extra_special_tokens": {"image_token": "<image>", "boi": "<boi>"}}, None),
    ("extra tokens in a list", {"extra_special_tokens": ["<x>"], "bos_token": "<s>"}, None),
    ("additional tokens", {"additional_special_tokens": ["<x>"], "bos_token": "<s>"}, None),
    ("all seven", {f"{name}_token": f"<{name}>" for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask")},
     None),
    ("an empty one", {"bos_token": "", "eos_token": "</s>"}, None),
    ("extra tokens of the map", {"bos_token": "<s>"}, {"extra_special_tokens": {"boi": "<boi>"}}),
    ("a token of its own name in the map", {}, {"image_token": "<image>"}),
]
KWARGS = {"bos_token": "<mine>"}


def record(name, config, special):
    messages = [{"role": "user", "content": "Hi"}]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        Tokenizer(models.BPE()).save(str(path / "tokenizer.json"))
        for file, content in (("tokenizer_config.json", config), ("special_tokens_map.json", special)):
            if content is not None:
                (path / file).write_text(json.dumps(content))
        tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(path)

    def render(**more):
        return tokenizer.apply_chat_template(messages, chat_template=TEMPLATE, tokenize=False, **more)

    return {"name": name, "tokenizer_config": config, "special_tokens_map": special,
            "special_tokens": dict(sorted(tokenizer.special_tokens_map.items())),
            "rendered": render(), "rendered_with_kwargs": render(**KWARGS)}


def main():
    goldens = {"transformers": transformers.__version__, "template": TEMPLATE, "kwargs": KWARGS,
               "cases": [record(*case) for case in CASES]}
    print(json.dumps(goldens, indent=1))


if __name__ == "__main__":
    main()
