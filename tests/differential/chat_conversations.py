"""Conversations for chat templates of every style: a fixed list for the goldens, and random ones like them."""
import copy

import jinja_cases

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather at a place.",
    "parameters": {"type": "object", "properties": {
        "place": {"type": "string", "description": "City, as in \"Zürich\""}, "days": {"type": "integer", "description": " How many. "},
        "units": {"type": ["string", "integer"]}, "hours": {"type": "array", "items": {"type": "number"}}}, "required": ["place"]},
    "return": {"type": "object", "additionalProperties": {"type": "boolean"}}}}
CLOCK = {"type": "function", "function": {"name": "clock", "description": "It's the time.", "parameters": {"type": "object", "properties": {}}}}

SYSTEM = {"role": "system", "content": " You are terse. "}
HELLO = {"role": "user", "content": "Hello!"}
ANSWER = {"role": "assistant", "content": "\nHi, what is it?\n"}
QUESTION = {"role": "user", "content": " How warm is it?\n"}


def call(name, arguments, number="call00001"):
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*made, content=""):
    return {"role": "assistant", "content": content, "tool_calls": list(made)}


def result(content, number="call00001"):
    return {"role": "tool", "tool_call_id": number, "name": "get_weather", "content": content}


def parts(*texts):
    return [{"type": "text", "text": text} for text in texts]


CALL = calls(call("get_weather", {"place": "Zürich", "days": 2, "hours": [1.0, 2.5], "units": None}))
CONVERSATIONS = {
    "user": {"messages": [HELLO]},
    "no_prompt": {"messages": [HELLO, ANSWER], "add_generation_prompt": False},
    "system": {"messages": [SYSTEM, HELLO]},
    "turns": {"messages": [SYSTEM, HELLO, ANSWER, QUESTION, ANSWER, HELLO]},
    "tools": {"messages": [SYSTEM, QUESTION], "tools": [WEATHER, CLOCK]},
    "tools_no_system": {"messages": [QUESTION], "tools": [CLOCK]},
    "tool_call": {"messages": [QUESTION, CALL, result('{"warm": true}')], "tools": [WEATHER]},
    "tool_answered": {"messages": [SYSTEM, QUESTION, CALL, result("25 °C & <sun>"), {"role": "assistant", "content": "Warm."}, HELLO], "tools": [WEATHER]},
    "two_calls": {"messages": [QUESTION, calls(call("clock", {}), call("get_weather", {"place": "日本"}, "call00002"), content="Let me see."), result("12:00"), result({"c": 7, "b": "ok"}, "call00002")],
                  "tools": [WEATHER, CLOCK], "add_generation_prompt": False},
    "bad_call_id": {"messages": [QUESTION, calls(call("clock", {}, "1")), result("noon", "1")], "tools": [CLOCK]},
    "text_arguments": {"messages": [QUESTION, calls(call("clock", "{\"zone\": \"CET\"}"))], "tools": [CLOCK], "add_generation_prompt": False},
    "tools_in_system": {"messages": [SYSTEM, HELLO], "tools": [CLOCK], "tools_in_user_message": False, "date_string": "1 May 2030"},
    "builtin_tools": {"messages": [QUESTION, calls(call("search", {"query": "x"}))], "builtin_tools": ["search", "interpreter"]},
    "reasoning": {"messages": [HELLO, {"role": "assistant", "reasoning_content": "\nGreets.\n", "content": "Hi."}, QUESTION, {"role": "assistant", "reasoning_content": "Hmm.", "content": "Ask."}]},
    "think_tags": {"messages": [HELLO, {"role": "assistant", "content": "<think>\nGreets.\n</think>\n\nHi."}, QUESTION, {"role": "assistant", "content": "<think>\nMore</think>Yes."}],
                   "add_generation_prompt": False},
    "no_thinking": {"messages": [HELLO], "enable_thinking": False},
    "unicode": {"messages": [{"role": "user", "content": "日本\u0301 🙂 İß \u00a0\u2028\u0085 \"quoted\" \\n </s> {{ x }} \u200d"}, {"role": "assistant", "content": "Ünïcödé\x00\x7f\r\n"}, HELLO]},
    "empty": {"messages": [{"role": "system", "content": ""}, {"role": "user", "content": ""}, {"role": "assistant", "content": ""}, HELLO]},
    "parts": {"messages": [{"role": "system", "content": parts("One.", "Two.")}, {"role": "user", "content": [{"type": "image"}, *parts(" Look. ", "Well?")]}]},
    "no_content": {"messages": [HELLO, {"role": "assistant", "content": None}, HELLO]},
    "two_users": {"messages": [HELLO, QUESTION]},
    "assistant_first": {"messages": [ANSWER, HELLO]},
    "assistant_last": {"messages": [HELLO, ANSWER]},
    "late_system": {"messages": [HELLO, ANSWER, SYSTEM, HELLO]},
    "unknown_role": {"messages": [HELLO, {"role": "critic", "content": "No."}]},
    "documents": {"messages": [QUESTION], "documents": [{"title": "Almanac", "text": "Warm."}, {"title": "", "text": "It's \"cold\""}]},
    "none": {"messages": []},
}


def request(conversation):
    return {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True, "tools": None, **copy.deepcopy(conversation)}


class RandomConversations:
    """The fixed ones with messages dropped, doubled, moved and given other content."""

    def __init__(self, seed):
        self.cases = jinja_cases.Cases(seed)
        self.random = self.cases.random

    def messages(self):
        pool = [m for conversation in CONVERSATIONS.values() for m in conversation["messages"]]
        turn = lambda role: [m for m in pool if m["role"] == role and isinstance(m.get("content"), str)]
        result = [self.random.choice(turn("system"))] if self.random.random() < 0.5 else []
        for _ in range(self.random.randint(0, 5)):
            result += [self.random.choice(turn("user")), self.random.choice(turn("assistant"))]
        return [*result, self.random.choice(pool)] if self.random.random() < 0.3 else result + [self.random.choice(turn("user"))]

    def disturbed(self, messages):
        messages = copy.deepcopy(messages)
        for message in messages:
            if self.random.random() < 0.4:
                message["content"] = self.cases.text()
            elif self.random.random() < 0.03:
                message["content"] = self.cases.content()
            if self.random.random() < 0.03:
                message["role"] = self.random.choice(["tool", "system", "user", "assistant", "stop", "x"])
            if message.get("tool_calls") and self.random.random() < 0.5:
                message["tool_calls"][0]["function"]["arguments"] = self.cases.value(2)
        if messages and self.random.random() < 0.15:
            del messages[self.random.randrange(len(messages))]
        return messages

    def case(self, template):
        base = request(self.random.choice(list(CONVERSATIONS.values())))
        if self.random.random() < 0.5:
            base["messages"] = self.messages()
        base["messages"] = self.disturbed(base["messages"])
        base["add_generation_prompt"] = self.random.random() < 0.7
        if self.random.random() < 0.2:
            base["tools"] = self.cases.tools()
        return {"template": template, "input": base, "date": self.random.choice(jinja_cases.DATES)}
