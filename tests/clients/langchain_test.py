#!/usr/bin/env python3
"""PyPI's `langchain-openai` against the server. Expected texts are Transformers'.

    langchain_test.py --bin DIR --bundle FILE [unittest's own arguments]
"""
from client_case import Case, main
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI
from langchain_openai import OpenAI as TextOpenAI
from served_model import GOLDENS, MODEL, chat_golden


class LangChain(Case):
    def model(self, think=False, **more):
        return ChatOpenAI(base_url=self.server.url + "/v1", api_key="none", model=MODEL, temperature=0, max_retries=0,
                          max_tokens=GOLDENS["max_tokens"],
                          extra_body={"date": GOLDENS["date"], "chat_template_kwargs": {"enable_thinking": think}}, **more)

    def question(self, name):
        return GOLDENS["conversations"][name]["request"]["messages"][0]["content"]

    def test_invoke(self):
        answer = self.model().invoke(self.question("capital"))
        content, _, prompt_tokens, tokens = chat_golden("capital")
        self.assertEqual(answer.content.strip(), content)
        self.assertEqual((answer.usage_metadata["input_tokens"], answer.usage_metadata["output_tokens"]),
                         (prompt_tokens, tokens))
        self.assertEqual(answer.response_metadata["finish_reason"], "stop")

    def test_a_system_message(self):
        system, user = GOLDENS["conversations"]["system"]["request"]["messages"]
        answer = self.model().invoke([SystemMessage(system["content"]), HumanMessage(user["content"])])
        self.assertEqual(answer.content.strip(), chat_golden("system")[0])

    def test_stream(self):
        chunks = list(self.model(stream_usage=True).stream(self.question("capital")))
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole += chunk
        content, _, prompt_tokens, tokens = chat_golden("capital")
        self.assertEqual(whole.content.strip(), content)
        self.assertGreater(len(chunks), tokens // 2)
        self.assertEqual((whole.usage_metadata["input_tokens"], whole.usage_metadata["output_tokens"]),
                         (prompt_tokens, tokens))

    def test_reasoning_is_no_content(self):
        answer = self.model(think=True).invoke(self.question("sum_with_reasoning"))
        self.assertEqual(answer.content.strip(), chat_golden("sum_with_reasoning")[0])

    def test_batch(self):
        questions = [self.question("capital"), self.question("capital")] * 4
        answers = self.model().batch(questions, config={"max_concurrency": 8})
        self.assertEqual([answer.content.strip() for answer in answers], [chat_golden("capital")[0]] * 8)

    def test_a_tool_is_called_and_answered(self):
        bound = self.model().bind_tools(GOLDENS["conversations"]["tool_call"]["request"]["tools"])
        question = HumanMessage(self.question("tool_call"))
        answer = bound.invoke([question])
        call, = answer.tool_calls
        self.assertEqual((call["name"], call["args"]), ("get_weather", {"city": "Paris"}))
        result = GOLDENS["conversations"]["tool_result"]["request"]["messages"][2]["content"]
        again = bound.invoke([question, answer, ToolMessage(result, tool_call_id=call["id"])])
        self.assertEqual(again.usage_metadata["input_tokens"], chat_golden("tool_result")[2])
        self.assertEqual(again.tool_calls[0]["args"], {"city": "Paris"})

    def test_a_streamed_call(self):
        bound = self.model().bind_tools(GOLDENS["conversations"]["tool_call"]["request"]["tools"])
        whole = None
        for chunk in bound.stream(self.question("tool_call")):
            whole = chunk if whole is None else whole + chunk
        call, = whole.tool_calls
        self.assertEqual((call["name"], call["args"]), ("get_weather", {"city": "Paris"}))

    def test_text_completion(self):
        model = TextOpenAI(base_url=self.server.url + "/v1", api_key="none", model=MODEL, temperature=0, max_retries=0,
                           max_tokens=GOLDENS["max_tokens"])
        golden = GOLDENS["prompts"][1]
        self.assertEqual(model.invoke(golden["text"]), golden["answer"])
        self.assertEqual("".join(model.stream(golden["text"])), golden["answer"])


if __name__ == "__main__":
    main(__doc__)
