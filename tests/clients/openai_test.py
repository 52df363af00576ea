#!/usr/bin/env python3
"""PyPI's `openai` against the server: answers, streams, tools, errors. Expected texts are Transformers'.

    openai_test.py --bin DIR --bundle FILE [unittest's own arguments]
"""
import asyncio
import json
import re

import openai
from client_case import Case, main
from served_model import GOLDENS, MODEL, chat_golden, chat_request, completion_request


def as_sdk(request):
    """What the SDK has no argument for goes into its extra_body."""
    request = dict(request)
    extra = {name: request.pop(name) for name in ("date", "chat_template_kwargs") if name in request}
    return request | {"extra_body": extra}


class OpenAiCase(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = openai.OpenAI(base_url=cls.server.url + "/v1", api_key="none", max_retries=0, timeout=60)
        cls.addClassCleanup(cls.client.close)

    def chat(self, name, **more):
        return self.client.chat.completions.create(**as_sdk(chat_request(name, **more)))


class Models(OpenAiCase):
    def test_models_are_listed_and_found(self):
        self.assertEqual([model.id for model in self.client.models.list()], [MODEL])
        self.assertEqual(self.client.models.retrieve(MODEL).object, "model")

    def test_a_model_that_is_not_there_is_an_exception_of_its_own(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.models.retrieve("other")
        self.assertEqual((caught.exception.code, caught.exception.param), ("model_not_found", "model"))


class Chat(OpenAiCase):
    def test_answers_are_transformers(self):
        for name in ("capital", "two_turns", "system", "sum_with_reasoning", "tool_result_without_tools"):
            with self.subTest(name):
                answer = self.chat(name)
                content, reasoning, prompt_tokens, tokens = chat_golden(name)
                choice, = answer.choices
                self.assertEqual(choice.message.content.strip(), content)
                self.assertEqual((getattr(choice.message, "reasoning_content", None) or "").strip(), reasoning or "")
                self.assertEqual((choice.message.role, choice.index), ("assistant", 0))
                self.assertEqual(choice.finish_reason, "stop" if GOLDENS["conversations"][name]["stopped"] else "length")
                self.assertEqual((answer.object, answer.model), ("chat.completion", MODEL))
                self.assertEqual((answer.usage.prompt_tokens, answer.usage.completion_tokens), (prompt_tokens, tokens))
                self.assertEqual(answer.usage.total_tokens, prompt_tokens + tokens)

    def test_a_streams_pieces_are_the_answer(self):
        for name in ("capital", "sum_with_reasoning"):
            with self.subTest(name):
                content, reasoning, prompt_tokens, tokens = chat_golden(name)
                chunks = list(self.chat(name, stream=True, stream_options={"include_usage": True}))
                *pieces, usage = chunks
                deltas = [chunk.choices[0].delta for chunk in pieces]
                self.assertEqual(deltas[0].role, "assistant")
                self.assertEqual("".join(delta.content or "" for delta in deltas).strip(), content)
                thoughts = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
                self.assertEqual(thoughts.strip(), reasoning or "")
                finishes = [chunk.choices[0].finish_reason for chunk in pieces]
                self.assertEqual(finishes, [None] * (len(pieces) - 1) + ["stop"])
                self.assertEqual((usage.choices, usage.usage.prompt_tokens, usage.usage.completion_tokens),
                                 ([], prompt_tokens, tokens))
                self.assertEqual({chunk.id for chunk in chunks}, {chunks[0].id})
                self.assertTrue(all(chunk.usage is None for chunk in pieces))

    def test_the_sdks_own_accumulator_gives_the_whole_answer(self):
        with self.client.chat.completions.stream(**as_sdk(chat_request("capital"))) as stream:
            stream.until_done()
            message = stream.get_final_completion().choices[0].message
        self.assertEqual(message.content.strip(), chat_golden("capital")[0])

    def test_n_greedy_answers_are_equal_and_each_counted(self):
        answer = self.chat("capital", n=3)
        content, _, prompt_tokens, tokens = chat_golden("capital")
        self.assertEqual([choice.message.content.strip() for choice in answer.choices], [content] * 3)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2])
        self.assertEqual((answer.usage.prompt_tokens, answer.usage.completion_tokens), (prompt_tokens, 3 * tokens))

    def test_logprobs_name_the_tokens_of_the_answer(self):
        choice, = self.chat("capital", logprobs=True, top_logprobs=2).choices
        content = choice.logprobs.content
        self.assertEqual(b"".join(bytes(token.bytes) for token in content).decode(), choice.message.content)
        for token in content:
            self.assertEqual(len(token.top_logprobs), 2)
            self.assertEqual(token.top_logprobs[0].token, token.token)  # Greedy.
            self.assertLessEqual(token.logprob, 0)

    def test_a_stop_text_ends_the_answer_before_it(self):
        content = chat_golden("capital")[0]
        before, stop, _ = content.partition("France")
        choice, = self.chat("capital", stop=stop).choices
        self.assertEqual((choice.message.content, choice.finish_reason), (before, "stop"))

    def test_a_limit_ends_the_answer(self):
        answer = self.chat("capital", max_tokens=3)
        self.assertEqual((answer.choices[0].finish_reason, answer.usage.completion_tokens), ("length", 3))
        self.assertTrue(chat_golden("capital")[0].startswith(answer.choices[0].message.content))

    def test_a_seed_repeats(self):
        texts = [self.chat("capital", temperature=1.5, seed=seed, max_tokens=24).choices[0].message.content
                 for seed in (7, 7, 8)]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_answers_of_many_at_a_time_are_their_own(self):
        async def ask_all():
            names = ["capital", "two_turns", "system", "sum_with_reasoning"] * 8
            async with openai.AsyncOpenAI(base_url=self.server.url + "/v1", api_key="none", max_retries=0) as client:
                answers = await asyncio.gather(*(client.chat.completions.create(**as_sdk(chat_request(name)))
                                                 for name in names))
            return [(name, answer.choices[0].message.content.strip()) for name, answer in zip(names, answers)]

        for name, text in asyncio.run(ask_all()):
            self.assertEqual(text, chat_golden(name)[0])


class Tools(OpenAiCase):
    def check_call(self, call):
        self.assertEqual((call.type, call.function.name, json.loads(call.function.arguments)),
                         ("function", "get_weather", {"city": "Paris"}))
        self.assertRegex(call.id, "^call_")

    def test_a_call_goes_out_and_its_result_comes_back(self):
        choice, = self.chat("tool_call").choices
        self.assertEqual((choice.finish_reason, choice.message.content), ("tool_calls", None))
        call, = choice.message.tool_calls
        self.check_call(call)
        # The golden's second turn, with the answer as the SDK itself gives it back and the id of this call.
        request = chat_request("tool_result")
        request["messages"] = [request["messages"][0], choice.message,
                               request["messages"][2] | {"tool_call_id": call.id}]
        answer = self.client.chat.completions.create(**as_sdk(request))
        self.check_call(answer.choices[0].message.tool_calls[0])
        self.assertEqual(answer.usage.prompt_tokens, chat_golden("tool_result")[2])

    def test_a_streamed_call_says_who_it_is_once(self):
        chunks = [chunk.choices[0] for chunk in self.chat("tool_call", stream=True)]
        calls = [choice.delta.tool_calls[0] for choice in chunks if choice.delta.tool_calls]
        self.assertEqual({call.index for call in calls}, {0})
        self.assertEqual([call.function.name for call in calls if call.function.name], ["get_weather"])
        self.assertEqual(len([call.id for call in calls if call.id]), 1)
        self.assertEqual(json.loads("".join(call.function.arguments or "" for call in calls)), {"city": "Paris"})
        self.assertEqual("".join(choice.delta.content or "" for choice in chunks).strip(), "")
        self.assertEqual(chunks[-1].finish_reason, "tool_calls")

    def test_without_a_choice_of_tools_the_text_stays_text(self):
        choice, = self.chat("tool_call", tool_choice="none").choices
        self.assertIsNone(choice.message.tool_calls)


class Completions(OpenAiCase):
    def complete(self, index, **more):
        return self.client.completions.create(**completion_request(index, **more))

    def test_texts_are_transformers(self):
        for index, golden in enumerate(GOLDENS["prompts"]):
            answer = self.complete(index)
            self.assertEqual(answer.choices[0].text, golden["answer"])
            self.assertEqual(answer.choices[0].finish_reason, "stop" if golden["stopped"] else "length")
            self.assertEqual(answer.usage.prompt_tokens, len(golden["ids"]))
            self.assertEqual(answer.object, "text_completion")

    def test_prompts_as_ids_and_several_at_a_time(self):
        for prompts in ([golden["ids"] for golden in GOLDENS["prompts"]], [golden["text"] for golden in GOLDENS["prompts"]]):
            answer = self.complete(0, prompt=prompts)
            self.assertEqual([choice.index for choice in answer.choices], list(range(len(prompts))))
            self.assertEqual([choice.text for choice in answer.choices], [golden["answer"] for golden in GOLDENS["prompts"]])

    def test_a_stream_is_the_same_text(self):
        text = "".join(chunk.choices[0].text for chunk in self.complete(1, stream=True))
        self.assertEqual(text, GOLDENS["prompts"][1]["answer"])

    def test_echo_shows_the_prompt_and_where_each_token_stands(self):
        golden = GOLDENS["prompts"][0]
        choice, = self.complete(0, echo=True, logprobs=1, max_tokens=4).choices
        self.assertEqual(choice.text, golden["text"] + "".join(golden["pieces"][:4]))
        logprobs = choice.logprobs
        self.assertEqual("".join(logprobs.tokens), choice.text)
        self.assertEqual(logprobs.tokens[len(golden["ids"]):], golden["pieces"][:4])
        for token, offset in zip(logprobs.tokens, logprobs.text_offset):
            self.assertTrue(choice.text[offset:].startswith(token))
        self.assertIsNone(logprobs.token_logprobs[0])
        self.assertEqual(len(logprobs.token_logprobs), len(golden["ids"]) + 4)

    def test_echo_of_no_tokens_is_the_prompt(self):
        answer = self.complete(0, echo=True, max_tokens=0)
        self.assertEqual((answer.choices[0].text, answer.usage.completion_tokens), (GOLDENS["prompts"][0]["text"], 0))


class RawResponses(OpenAiCase):
    def test_headers_are_there(self):
        raw = self.client.chat.completions.with_raw_response.create(**as_sdk(chat_request("capital")),
                                                                    extra_headers={"X-Request-Id": "mine-1"})
        self.assertEqual(raw.status_code, 200)
        self.assertEqual(raw.headers["content-type"], "application/json")
        self.assertEqual(raw.headers["x-request-id"], "mine-1")
        self.assertEqual(raw.parse()._request_id, "mine-1")  # pylint: disable=protected-access
        raw = self.client.models.with_raw_response.list()
        self.assertTrue(raw.headers["x-request-id"])

    def test_a_stream_is_a_stream_of_events(self):
        with self.client.chat.completions.with_streaming_response.create(
                **as_sdk(chat_request("capital", stream=True))) as raw:
            self.assertRegex(raw.headers["content-type"], "^text/event-stream")
            self.assertEqual(raw.headers["cache-control"], "no-cache")
            lines = [line for line in raw.iter_lines() if line]
        self.assertEqual(lines[-1], "data: [DONE]")


class Errors(OpenAiCase):
    def refused(self, kind, param, call, *arguments, **more):
        with self.assertRaises(kind) as caught:
            call(*arguments, **more)
        self.assertEqual(caught.exception.param, param, caught.exception)
        self.assertTrue(caught.exception.type)
        self.assertTrue(re.search(r"[a-z]", caught.exception.body["message"]))
        return caught.exception

    def test_what_is_wrong_is_a_bad_request_that_names_the_field(self):
        chat = self.client.chat.completions.create
        hello = [{"role": "user", "content": "Hello"}]
        for param, request in [
                ("messages", {"messages": []}),
                ("messages[0].role", {"messages": [{"role": "king", "content": "x"}]}),
                ("messages[0].content", {"messages": [{"role": "user", "content": 7}]}),
                ("messages[0].content[0].type", {"messages": [{"role": "user", "content": [
                    {"type": "image_url", "image_url": {"url": "data:,"}}]}]}),
                ("temperature", {"messages": hello, "temperature": -1}),
                ("max_tokens", {"messages": hello, "max_tokens": -1}),
                ("logit_bias.99999", {"messages": hello, "logit_bias": {"99999": 1}}),
                ("stop", {"messages": hello, "stop": ["a", "b", "c", "d", "e"]}),
                ("n", {"messages": hello, "n": 0}),
                ("top_logprobs", {"messages": hello, "top_logprobs": 3}),
                ("tools[0].function.name", {"messages": hello, "tools": [{"type": "function", "function": {"name": ""}}]})]:
            with self.subTest(param):
                error = self.refused(openai.BadRequestError, param, chat, **({"model": MODEL} | request))
                self.assertEqual(error.type, "invalid_request_error")

    def test_unsupported_meaning_is_refused_by_name(self):
        complete = self.client.completions.create
        for param, value in [("best_of", 3), ("suffix", "x")]:
            self.refused(openai.BadRequestError, param, complete, model=MODEL, prompt="x", **{param: value})

    def test_unknown_harmless_fields_are_ignored(self):
        answer = self.chat("capital", user="me", metadata={"a": "b"}, store=False, service_tier="auto")
        self.assertEqual(answer.choices[0].message.content.strip(), chat_golden("capital")[0])

    def test_a_model_that_is_not_there(self):
        error = self.refused(openai.NotFoundError, "model", self.client.completions.create, model="other", prompt="x")
        self.assertEqual(error.code, "model_not_found")

    def test_a_prompt_beyond_the_context(self):
        error = self.refused(openai.BadRequestError, "prompt", self.client.completions.create, model=MODEL,
                             prompt=[300] * 5000)
        self.assertEqual(error.code, "context_length_exceeded")


if __name__ == "__main__":
    main(__doc__)
