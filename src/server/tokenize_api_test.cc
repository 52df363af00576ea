// Ids and prompts are those of Transformers for models/smollm3-tiny.
#include "server/tokenize_api.h"

#include <string>

#include "tests/support/routes_test.h"

namespace trtmc {
namespace {

class TokenizeApi : public RoutesTest {
 protected:
  TokenizeApi() {
    add_tokenize_api(router_, {models_, pump_});
    serve("tiny");
  }
};

// The template writes no date for a system message with /system_override.
constexpr const char* kConversation =
    R"("messages": [{"role": "system", "content": "/system_override Be brief."},)"
    R"( {"role": "user", "content": "Hi"}], "chat_template_kwargs": {"enable_thinking": false})";
constexpr const char* kConversationIds =
    "[10232,388,198,1367,1597,13,10233,198,10232,330,198,2231,10233,198,10232,346,198,10223,256,"
    "10224,198]";

TEST_F(TokenizeApi, ATextBecomesIds) {
  EXPECT_EQ(post("/tokenize", R"({"prompt": "Once upon a time"})").dump(),
            R"({"count":4,"max_model_len":4096,"tokens":[1411,1369,257,892]})");
}

TEST_F(TokenizeApi, NullsAndUnknownFieldsAreIgnored) {
  EXPECT_EQ(*post("/tokenize", R"({"model": null, "prompt": "Once", "messages": null,)"
                               R"( "add_special_tokens": null, "colour": "red"})")
                 .find("count")
                 ->integer(),
            1);
}

TEST_F(TokenizeApi, ThePiecesComeOnRequest) {
  const Json json = post("/tokenize", R"({"model": "tiny", "return_token_strs": true,)"
                                      R"( "prompt": "<|im_start|>\u00e9\u4e16 a"})");
  EXPECT_EQ(json.find("tokens")->dump(), "[10232,6512,160,116,244,257]");
  // A part of a code point is shown as what it is not.
  EXPECT_EQ(json.find("token_strs")->dump(),
            "[\"<|im_start|>\",\"\u00e9\",\"\ufffd\",\"\ufffd\",\"\ufffd\",\" a\"]");
}

TEST_F(TokenizeApi, AConversationBecomesIds) {
  const Json json = post("/tokenize", "{" + std::string(kConversation) + "}");
  EXPECT_EQ(json.find("tokens")->dump(), kConversationIds);
  EXPECT_EQ(*json.find("count")->integer(), 21);
}

TEST_F(TokenizeApi, AConversationIsRenderedToItsExactPrompt) {
  const Json json = post("/render", "{" + std::string(kConversation) + "}");
  EXPECT_EQ(*json.find("prompt")->string(),
            "<|im_start|>system\n Be brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n<think>\n\n</think>\n");
  EXPECT_EQ(json.find("tokens")->dump(), kConversationIds);
  EXPECT_EQ(*json.find("count")->integer(), 21);
  EXPECT_EQ(*json.find("max_model_len")->integer(), 4096);
}

TEST_F(TokenizeApi, APromptCanEndWithTheConversation) {
  const Json json =
      post("/render", R"({"add_generation_prompt": false, )" + std::string(kConversation) + "}");
  EXPECT_EQ(*json.find("prompt")->string(),
            "<|im_start|>system\n Be brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n");
}

TEST_F(TokenizeApi, IdsBecomeText) {
  EXPECT_EQ(post("/detokenize", R"({"tokens": [1411, 1369, 257, 892]})").dump(),
            R"({"prompt":"Once upon a time"})");
  EXPECT_EQ(post("/detokenize", R"({"tokens": []})").dump(), R"({"prompt":""})");
  EXPECT_EQ(post("/detokenize", R"({"tokens": [10232, 257]})").dump(),
            R"({"prompt":"<|im_start|> a"})");
  EXPECT_EQ(post("/detokenize", R"({"tokens": [10233, 257], "skip_special_tokens": true})").dump(),
            R"({"prompt":" a"})");
}

TEST_F(TokenizeApi, WhatIsWrongIsNamed) {
  EXPECT_EQ(refusal(400, "/tokenize", "{}"), R"(prompt: "prompt" is missing)");
  EXPECT_EQ(refusal(400, "/tokenize", R"({"prompt": 3})"),
            "prompt: prompt: an integer, expected a string");
  EXPECT_EQ(refusal(400, "/tokenize", R"({"prompt": "a", "add_special_tokens": 1})"),
            "add_special_tokens: add_special_tokens: an integer, expected true or false");
  EXPECT_EQ(refusal(400, "/tokenize", R"({"prompt": "a", "messages": []})"),
            "messages: messages: stands beside prompt, expected one of the two");
  EXPECT_EQ(refusal(400, "/tokenize", R"({"messages": 7})"),
            "messages: messages: an integer, expected an array");
  EXPECT_EQ(refusal(400, "/render", R"({"messages": [], "continue_final_message": true})"),
            "continue_final_message: continue_final_message: not supported, except false");
  EXPECT_EQ(refusal(400, "/render", R"({"prompt": "a"})"), R"(messages: "messages" is missing)");
  EXPECT_EQ(refusal(404, "/tokenize", R"({"prompt": "a", "model": "large"})"),
            "model: model: \"large\" is not served, only \"tiny\"");
}

TEST_F(TokenizeApi, WhatIsNoListOfIdsIsNamed) {
  EXPECT_EQ(refusal(400, "/detokenize", "{}"), R"(tokens: "tokens" is missing)");
  EXPECT_EQ(refusal(400, "/detokenize", R"({"tokens": "1"})"),
            "tokens: tokens: a string, expected an array");
  EXPECT_EQ(refusal(400, "/detokenize", R"({"tokens": [1, 10240]})"),
            "tokens[1]: tokens[1]: 10240, expected 0 to 10239");
  EXPECT_EQ(refusal(400, "/detokenize", R"({"tokens": [-1]})"),
            "tokens[0]: tokens[0]: -1, expected 0 to 10239");
  EXPECT_EQ(refusal(400, "/detokenize", R"({"tokens": [1, 2.5]})"),
            "tokens[1]: tokens[1]: a number, expected an integer");
}

TEST_F(TokenizeApi, WhatIsNoJsonObjectIsRefused) {
  for (const char* path : {"/tokenize", "/detokenize", "/render"}) {
    for (const char* body : {"", "{", "[]", "7", "\"a\"", "null", "{\"prompt\": \"\xff\"}"}) {
      EXPECT_EQ(answer("POST", path, body).status, 400) << path << " " << body;
    }
  }
}

TEST_F(TokenizeApi, WithSeveralModelsTheNameIsNeeded) {
  serve("other");
  EXPECT_EQ(refusal(400, "/tokenize", R"({"prompt": "a"})"),
            "model: model: missing, expected one of \"tiny\", \"other\"");
  EXPECT_EQ(*post("/tokenize", R"({"prompt": "Once", "model": "other"})").find("count")->integer(),
            1);
}

}  // namespace
}  // namespace trtmc
