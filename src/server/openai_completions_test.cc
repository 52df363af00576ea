// POST /v1/completions on the embedded model, against what Transformers says of the same texts
// (tools/make_completion_goldens.py).
#include "server/openai_completions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/file.h"
#include "base/utf8.h"
#include "engine/scoring.h"
#include "tests/support/served_model.h"

namespace trtmc {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr double kTolerance = 1e-3;

std::vector<JsonCursor> goldens() {
  static const Json json = Json::parse(read_file(std::filesystem::path(TRTMC_SOURCE_DIR) /
                                                 "tests/golden/smollm3-tiny/completions.json"));
  return JsonCursor(json).at("cases").elements();
}

Json completion(const Json& request) {
  const auto exchange = embedded_server().complete(request.dump());
  EXPECT_EQ(exchange->status(), 200) << exchange->response().body;
  return exchange->json();
}

Json choice_of(const Json& request) {
  const Json json = completion(request);
  return JsonCursor(json).at("choices").elements().at(0).json();
}

Json request_for(const Json& prompt, int max_tokens) {
  Json request;
  request.set("model", "tiny");
  request.set("prompt", prompt);
  request.set("max_tokens", max_tokens);
  request.set("temperature", 0);
  request.set("ignore_eos", true);
  request.set("skip_special_tokens", false);
  return request;
}

// What Transformers says of a token: how likely it is, beside which others.
void expect_likelihood(const JsonCursor& golden, TokenId token, const JsonCursor& logprob,
                       const JsonCursor& top) {
  const Tokenizer& tokenizer = embedded_server().model().loaded.tokenizer();
  const auto name = [&](TokenId id) { return std::string(tokenizer.token_bytes(id)); };
  EXPECT_NEAR(logprob.number(), golden.at("logprob").number(), kTolerance);
  for (const JsonCursor& other : golden.at("top").elements()) {
    const auto id = static_cast<TokenId>(other.elements().at(0).integer());
    if (find_invalid_utf8(name(id))) continue;  // Their names have a test of their own.
    EXPECT_NEAR(top.at(name(id)).number(), other.elements().at(1).number(), kTolerance);
  }
  if (find_invalid_utf8(name(token))) return;
  EXPECT_EQ(top.at(name(token)).json(), logprob.json());
}

TEST(OpenAiCompletions, ContinuesAsTransformers) {
  for (const JsonCursor& golden : goldens()) {
    const Json choice = choice_of(request_for(golden.at("text").json(), 12));
    EXPECT_EQ(choice.dump(), R"({"text":)" + golden.at("answer").json().dump() +
                                 R"(,"index":0,"logprobs":null,"finish_reason":"length"})");
    EXPECT_EQ(choice_of(request_for(golden.at("ids").json(), 12)), choice);
  }
}

TEST(OpenAiCompletions, ScoresAnEchoedPromptAsTransformers) {
  for (const JsonCursor& golden : goldens()) {
    for (const int max_tokens : {0, 1}) {  // Both are what evaluation harnesses send.
      Json request = request_for(golden.at("text").json(), max_tokens);
      request.set("echo", true);
      request.set("logprobs", 5);
      const Json choice = choice_of(request);
      const auto ids = golden.at("ids").elements();
      const JsonCursor logprobs = JsonCursor(choice).at("logprobs");
      const size_t count = ids.size() + static_cast<size_t>(max_tokens);
      for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
        EXPECT_THAT(logprobs.at(list).elements(), SizeIs(count)) << list;
      }
      EXPECT_TRUE(logprobs.at("token_logprobs").elements()[0].is_null());
      EXPECT_TRUE(logprobs.at("top_logprobs").elements()[0].is_null());
      const auto scores = golden.at("scores").elements();
      for (size_t i = 0; i < scores.size(); ++i) {
        expect_likelihood(scores[i], static_cast<TokenId>(ids[i + 1].integer()),
                          logprobs.at("token_logprobs").elements()[i + 1],
                          logprobs.at("top_logprobs").elements()[i + 1]);
      }
      for (size_t i = 0; i < ids.size(); ++i) {
        EXPECT_EQ(logprobs.at("text_offset").elements()[i].json(),
                  golden.at("offsets").elements()[i].json())
            << golden.at("text").string() << ' ' << i;
      }
      EXPECT_THAT(JsonCursor(choice).at("text").string(),
                  testing::StartsWith(golden.at("text").string()));
      EXPECT_EQ(*choice.find("finish_reason"), Json("length"));
    }
  }
}

TEST(OpenAiCompletions, ScoresAnAnswerAsTransformers) {
  for (const JsonCursor& golden : goldens()) {
    Json request = request_for(golden.at("text").json(), 12);
    request.set("logprobs", 5);
    const Json choice = choice_of(request);
    const JsonCursor logprobs = JsonCursor(choice).at("logprobs");
    const auto scores = golden.at("answer_scores").elements();
    ASSERT_THAT(scores, SizeIs(12));
    for (size_t i = 0; i < scores.size(); ++i) {
      expect_likelihood(scores[i],
                        static_cast<TokenId>(golden.at("answer_ids").elements()[i].integer()),
                        logprobs.at("token_logprobs").elements().at(i),
                        logprobs.at("top_logprobs").elements().at(i));
    }
  }
}

// lm-eval takes the last token for the generated one, so that one has to be there if it is no text.
TEST(OpenAiCompletions, ListsTheStopTokenThatEndsAnAnswer) {
  Json request = request_for("The capital of France is", 12);  // As reference.json has it.
  request.set("ignore_eos", false);
  request.set("skip_special_tokens", true);
  request.set("logprobs", 0);
  const Json expected = Json::parse(R"([" Paris", ".", "<|end_of_text|>"])");
  const Json choice = choice_of(request);
  EXPECT_EQ(*choice.find("text"), Json(" Paris."));
  EXPECT_EQ(*choice.find("finish_reason"), Json("stop"));
  const JsonCursor logprobs = JsonCursor(choice).at("logprobs");
  EXPECT_EQ(logprobs.at("tokens").json(), expected);
  EXPECT_EQ(logprobs.at("text_offset").json(), Json::parse("[24, 30, 31]"));
  EXPECT_LT(logprobs.at("token_logprobs").elements().at(2).number(), 0);

  request.set("stream", true);
  Json::Array tokens;
  for (const std::string& event : embedded_server().complete(request.dump())->events()) {
    if (event == "[DONE]") break;
    const Json chunk = Json::parse(event);
    const JsonCursor part = JsonCursor(chunk).at("choices").elements().at(0);
    if (part.at("logprobs").is_null()) continue;
    for (const JsonCursor& token : part.at("logprobs").at("tokens").elements()) {
      tokens.push_back(token.json());
    }
  }
  EXPECT_EQ(Json(tokens), expected);
}

TEST(OpenAiCompletions, ScoresAsTheScoreCommand) {
  const LoadedModel& loaded = embedded_server().model().loaded;
  const std::string text = "Once upon a time, there was a little fox.";
  const LoadedModel alone(embedded_bundle(), test_load_options());
  const TextScore score = score_tokens(alone, loaded.tokenizer().encode(text), 0);
  Json request = request_for(text, 0);
  request.set("echo", true);
  request.set("logprobs", 0);
  const Json choice = choice_of(request);
  const auto logprobs = JsonCursor(choice).at("logprobs").at("token_logprobs").elements();
  ASSERT_EQ(logprobs.size(), score.token_logprobs.size());
  for (size_t i = 1; i < logprobs.size(); ++i) {
    EXPECT_NEAR(logprobs[i].number(), score.token_logprobs[i], 1e-6);
  }
}

// lm-eval's local-completions: the sum over a continuation, and whether each of its tokens is the
// most likely one, by comparing its log-probability with the largest.
TEST(OpenAiCompletions, AHarnessCanTellWhetherAContinuationIsGreedy) {
  const auto is_greedy = [](std::string_view context, std::string_view continuation) {
    const Tokenizer& tokenizer = embedded_server().model().loaded.tokenizer();
    const size_t skip = tokenizer.encode(context).size();
    Json request = request_for(std::string(context) + std::string(continuation), 1);
    request.set("echo", true);
    request.set("logprobs", 1);
    const Json choice = choice_of(request);
    const JsonCursor logprobs = JsonCursor(choice).at("logprobs");
    const auto tokens = logprobs.at("token_logprobs").elements();
    const auto tops = logprobs.at("top_logprobs").elements();
    bool greedy = true;
    for (size_t i = skip; i + 1 < tokens.size(); ++i) {
      double best = -1e9;
      for (const auto& [name, value] : tops[i].members()) best = std::max(best, value.number());
      greedy = greedy && tokens[i].number() == best;
    }
    return greedy;
  };
  EXPECT_TRUE(is_greedy("The capital of France is", " Paris."));
  EXPECT_FALSE(is_greedy("The capital of France is", " Rome."));
}

TEST(OpenAiCompletions, OffsetsOfAnAnswerCountThePrompt) {
  Json request = request_for("Tea ☕ is", 2);
  request.set("logprobs", 0);
  const Json plain = choice_of(request);
  const auto offsets = JsonCursor(plain).at("logprobs").at("text_offset").elements();
  const auto tokens = JsonCursor(plain).at("logprobs").at("tokens").elements();
  EXPECT_EQ(offsets.at(0).integer(), 8);
  EXPECT_EQ(offsets.at(1).integer(), 8 + static_cast<int64_t>(tokens.at(0).string().size()));
  // With no alternatives asked for there is the token itself.
  EXPECT_THAT(JsonCursor(plain).at("logprobs").at("top_logprobs").elements().at(0).members(),
              SizeIs(1));
}

TEST(OpenAiCompletions, BytesThatAreNoTextHaveNamesOfTheirOwn) {
  Json request = request_for("🍰", 0);
  request.set("echo", true);
  request.set("logprobs", 0);
  const Json choice = choice_of(request);
  EXPECT_EQ(JsonCursor(choice).at("logprobs").at("tokens").json().dump(),
            R"(["bytes:\\xf0","bytes:\\x9f","bytes:\\x8d","bytes:\\xb0"])");
  EXPECT_EQ(JsonCursor(choice).at("logprobs").at("text_offset").json().dump(), "[0,0,0,0]");
}

TEST(OpenAiCompletions, AnswersSeveralPromptsInTheirOrder) {
  Json request =
      request_for(Json::parse(R"(["The capital of France is", "Gravity is the force that"])"), 1);
  request.set("n", 2);
  const Json json = completion(request);
  std::string texts;
  for (const JsonCursor& choice : JsonCursor(json).at("choices").elements()) {
    texts += std::to_string(choice.at("index").integer()) + choice.at("text").string();
  }
  EXPECT_EQ(texts, "0 Paris1 Paris2 keeps3 keeps");
  EXPECT_EQ(json.find("usage")->find("completion_tokens")->dump(), "4");
  EXPECT_EQ(json.find("usage")->find("prompt_tokens")->dump(), "10");
  request.set("prompt", Json::parse("[[447, 659, 313, 3902, 347], [1748]]"));
  request.set("n", 1);
  EXPECT_EQ(JsonCursor(completion(request)).at("choices").elements().at(0).at("text").string(),
            " Paris");
}

TEST(OpenAiCompletions, AnswersInTheShapeOfTheSpecification) {
  const Json json = completion(request_for("The capital of France is", 1));
  std::string names;
  for (const auto& [name, value] : *json.object()) names += name + " ";
  EXPECT_EQ(names, "id object created model system_fingerprint choices usage ");
  EXPECT_EQ(*json.find("object"), Json("text_completion"));
  EXPECT_THAT(*json.find("id")->string(), testing::StartsWith("cmpl-"));
  EXPECT_EQ(json.find("choices")->dump(),
            R"([{"text":" Paris","index":0,"logprobs":null,"finish_reason":"length"}])");
}

TEST(OpenAiCompletions, SixteenTokensUnlessAsked) {
  Json request = request_for("Once upon a time", 1);
  request.set("max_tokens", Json());
  EXPECT_EQ(completion(request).find("usage")->find("completion_tokens")->dump(), "16");
}

TEST(OpenAiCompletions, NoTokensAtAll) {
  for (const bool echo : {false, true}) {
    Json request = request_for("Hello", 0);
    request.set("echo", echo);
    const Json json = completion(request);
    EXPECT_EQ(json.find("choices")->dump(), std::string(R"([{"text":")") + (echo ? "Hello" : "") +
                                                R"(","index":0,"logprobs":null,)"
                                                R"("finish_reason":"length"}])");
    EXPECT_EQ(json.find("usage")->find("completion_tokens")->dump(), "0");
  }
}

// The text and the logprobs of a streamed choice, put together.
Json put_together(const std::vector<std::string>& events) {
  std::string text;
  Json logprobs, finish;
  for (const std::string& event : events) {
    if (event == "[DONE]") continue;
    const Json json = Json::parse(event);
    for (const JsonCursor& choice : JsonCursor(json).at("choices").elements()) {
      EXPECT_TRUE(finish.is_null()) << "a piece after the last";
      text += choice.at("text").string();
      finish = choice.at("finish_reason").json();
      if (const auto more = choice.find_set("logprobs")) {
        for (const auto& [name, list] : more->members()) {
          if (!logprobs.find(name)) logprobs.set(name, Json::Array());
          Json all = *logprobs.find(name);
          for (const JsonCursor& value : list.elements()) all.array()->push_back(value.json());
          logprobs.set(name, std::move(all));
        }
      }
    }
  }
  Json choice;
  choice.set("text", text);
  choice.set("index", 0);
  choice.set("logprobs", logprobs);
  choice.set("finish_reason", finish);
  return choice;
}

TEST(OpenAiCompletions, StreamsWhatItAnswersInOnePiece) {
  for (const char* more :
       {"{}", R"({"echo": true})", R"({"logprobs": 2})", R"({"echo": true, "logprobs": 2})",
        R"({"echo": true, "logprobs": 2, "max_tokens": 0})",
        R"({"stop": " and", "logprobs": 1})"}) {
    Json request = request_for("Tea ☕ and cake 🍰, naïve", 12);
    const Json members = Json::parse(more);
    for (const auto& [key, value] : *members.object()) request.set(key, value);
    const Json whole = choice_of(request);
    request.set("stream", true);
    const auto events = embedded_server().complete(request.dump())->events();
    EXPECT_EQ(put_together(events).dump(), whole.dump()) << more;
    EXPECT_EQ(events.back(), "[DONE]");
    for (const std::string& event : events) EXPECT_FALSE(find_invalid_utf8(event));
  }
}

TEST(OpenAiCompletions, StreamsItsUsage) {
  Json request = request_for("Hello", 2);
  request.set("stream", true);
  request.set("stream_options", Json::parse(R"({"include_usage": true})"));
  const auto events = embedded_server().complete(request.dump())->events();
  const Json last = Json::parse(events.at(events.size() - 2));
  EXPECT_EQ(last.find("choices")->dump(), "[]");
  EXPECT_EQ(last.find("usage")->find("total_tokens")->dump(), "3");
  EXPECT_TRUE(Json::parse(events.front()).find("usage")->is_null());
}

TEST(OpenAiCompletions, AStopStringIsNotShown) {
  Json request = request_for("1. Apples\n2. Bananas\n3.", 12);
  request.set("stop", Json::Array{"\n"});
  const Json choice = choice_of(request);
  EXPECT_EQ(*choice.find("text"), Json(" Grapes"));
  EXPECT_EQ(*choice.find("finish_reason"), Json("stop"));
}

TEST(OpenAiCompletions, APromptThatIsTooLongIsNamed) {
  Json::Array ids(4096, Json(1));
  const auto exchange = embedded_server().complete(
      request_for(Json::Array{Json::Array{1}, std::move(ids)}, 1).dump());
  EXPECT_EQ(exchange->status(), 400);
  const Json json = exchange->json();
  EXPECT_EQ(JsonCursor(json).at("error").at("param").string(), "prompt[1]");
  EXPECT_EQ(JsonCursor(json).at("error").at("code").string(), "context_length_exceeded");
}

TEST(OpenAiCompletions, ATextMayHoldSpecialTokensAsInTransformers) {
  Json request = request_for("Hello<|im_end|>", 0);
  request.set("echo", true);
  request.set("logprobs", 0);
  const Json choice = choice_of(request);
  EXPECT_EQ(JsonCursor(choice).at("logprobs").at("tokens").json().dump(),
            R"(["Hello","<|im_end|>"])");
  EXPECT_EQ(*choice.find("text"), Json("Hello<|im_end|>"));
}

}  // namespace
}  // namespace trtmc
