#!/usr/bin/env python3
"""PyPI's `lm-eval` against the server, by its model `local-completions`: likelihoods have to be Transformers'.

    lm_eval_test.py --bin DIR --bundle FILE [unittest's own arguments]
"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

# Nothing here asks a hub.
os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false",
               "HF_HUB_DISABLE_TELEMETRY": "1"}

from client_case import OPTIONS, Case, main  # noqa: E402  pylint: disable=wrong-import-position
from lm_eval import simple_evaluate  # noqa: E402  pylint: disable=wrong-import-position
from lm_eval.api.instance import Instance  # noqa: E402  pylint: disable=wrong-import-position
from lm_eval.models.openai_completions import LocalCompletionsAPI  # noqa: E402  pylint: disable=wrong-import-position
from lm_eval.tasks import TaskManager  # noqa: E402  pylint: disable=wrong-import-position
from served_model import GOLDENS, MODEL, ROOT, floats, golden_file  # noqa: E402  pylint: disable=wrong-import-position

CHECKPOINT = ROOT / "models/smollm3-tiny"
BOUND = 1e-3  # Nats.
TASKS = pathlib.Path(__file__).resolve().parent / "tasks"


class LmEval(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.logits = golden_file("smollm3-tiny/logits.json")
        cls.reference = golden_file("smollm3-tiny/reference.json")
        cls.model = cls.client()

    @classmethod
    def client(cls, **more):
        return LocalCompletionsAPI(base_url=cls.server.url + "/v1/completions", model=MODEL, tokenizer=str(CHECKPOINT),
                                   tokenizer_backend="huggingface", max_retries=1, **more)

    def next_tokens(self):
        """Of every recorded prompt: its text, and the log-probabilities of all tokens after it."""
        for case, prompt in zip(self.logits["cases"], self.reference["prompts"]):
            row = floats(case["float32"]["logits"])
            self.assertEqual((case["prompt_ids"], case["full_positions"]), (prompt["input_ids"], [len(case["prompt_ids"]) - 1]))
            total = floats(case["float32"]["logsumexp"])[-1]
            yield prompt, [logit - total for logit in row]

    def likelihoods(self, model, pairs):
        requests = [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(pairs)]
        return model.loglikelihood(requests, disable_tqdm=True)

    def test_likelihoods_of_next_tokens_are_transformers(self):
        pairs, expected = [], []
        for prompt, logprobs in self.next_tokens():
            best = max(range(len(logprobs)), key=logprobs.__getitem__)
            for token in prompt["float32"]["top10_ids"][:4]:
                text = self.model.tokenizer.decode([token])
                # lm-eval tokenizes both texts as one: only where that gives these tokens, and no blank moves.
                if self.model._encode_pair(prompt["text"], text) != (prompt["input_ids"], [token]):  # pylint: disable=protected-access
                    continue
                pairs.append((prompt["text"], text))
                expected.append((logprobs[token], token == best))
        self.assertGreater(len(pairs), 20)
        for model in (self.model, self.client(num_concurrent=4, batch_size=3), self.client(tokenized_requests=False)):
            for pair, (logprob, is_greedy), (golden, best) in zip(pairs, self.likelihoods(model, pairs), expected):
                self.assertAlmostEqual(logprob, golden, delta=BOUND, msg=pair)
                self.assertEqual(is_greedy, best, pair)

    def test_likelihoods_of_a_long_text_are_transformers(self):
        perplexity = self.logits["perplexity"]
        size, requests = perplexity["window"], []
        for window in range(4):
            ids = perplexity["ids"][window * size:(window + 1) * size]
            requests.append((None, ids[:1], ids[1:]))
        answers = self.model._loglikelihood_tokens(requests)  # pylint: disable=protected-access
        for (logprob, _), nll in zip(answers, perplexity["nll"]):
            self.assertAlmostEqual(logprob / (size - 1), -nll / (size - 1), delta=BOUND)
            self.assertAlmostEqual(logprob / -nll, 1, delta=1e-4)

    def test_a_text_scores_what_trtmc_score_says(self):
        text = "The capital of France is Paris."
        done = subprocess.run([OPTIONS.bin / "trtmc", "score", OPTIONS.bundle, "--json", "--per-token", "--kv-type", "f32"],
                              input=text.encode(), capture_output=True, check=True, timeout=60)
        score = json.loads(done.stdout)
        (logprob, _), = self.model._loglikelihood_tokens([(None, score["ids"][:1], score["ids"][1:])])  # pylint: disable=protected-access
        self.assertAlmostEqual(logprob, score["logprob_sum"], delta=BOUND)

    def test_texts_end_where_lm_eval_asks(self):
        golden = GOLDENS["prompts"][1]
        sentence = golden["answer"].partition(".")[0]
        for until, max_tokens, expected in [(["."], 64, sentence), ([], GOLDENS["max_tokens"], golden["answer"])]:
            request = Instance("generate_until", {}, (golden["text"], {"until": until, "max_gen_toks": max_tokens}), 0)
            self.assertEqual(self.model.generate_until([request], disable_tqdm=True), [expected])


class Evaluation(Case):
    def test_a_task_of_multiple_choice_is_scored(self):
        """Capitals that the model knows, of which its card says 24 of 24; and the texts of `generate_until`."""
        with tempfile.TemporaryDirectory() as folder:
            os.environ["HF_DATASETS_CACHE"] = folder
            results = simple_evaluate(
                model="local-completions",
                model_args={"base_url": self.server.url + "/v1/completions", "model": MODEL, "tokenizer": str(CHECKPOINT),
                            "tokenizer_backend": "huggingface", "num_concurrent": 2},
                tasks=["trtmc_next_words"], task_manager=TaskManager(include_path=str(TASKS), include_defaults=False),
                bootstrap_iters=0, verbosity="ERROR")
        self.assertEqual(results["results"]["trtmc_next_words"]["acc,none"], 1.0)
        self.assertEqual(len(results["samples"]["trtmc_next_words"]), 6)


if __name__ == "__main__":
    main(__doc__)
