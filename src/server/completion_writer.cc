#include "server/completion_writer.h"

#include <utility>

#include "server/answer_object.h"
#include "server/token_json.h"

namespace trtmc {
namespace {

std::string choice_json(int index, std::string text, std::string_view logprobs,
                        const Json& finish) {
  Json json;
  json.set("text", std::move(text));
  json.set("index", index);
  return choice_text(json, logprobs, finish);
}

// What both kinds of answers need: where a choice's tokens stand in its text.
class CompletionWriter : public AnswerWriter {
 public:
  explicit CompletionWriter(CompletionAnswerOptions options)
      : options_(std::move(options)), object_("cmpl-", "text_completion", *options_.model) {
    for (const CompletionPrompt& prompt : options_.prompts) {
      TextOffset end;
      end.add(prompt.text);
      for (int i = 0; i < options_.n; ++i) offsets_.push_back(end);
    }
  }

 protected:
  const Tokenizer& tokenizer() const { return options_.model->loaded.tokenizer(); }
  int num_choices() const { return static_cast<int>(offsets_.size()); }
  int first_choice(int prompt) const { return prompt * options_.n; }
  const CompletionPrompt& prompt_of(int choice) const {
    return options_.prompts[static_cast<size_t>(choice / options_.n)];
  }

  // Adds the next token of `choice`.
  void add_token(CompletionLogprobs& logprobs, int choice, const Token& token) {
    TextOffset& offset = offsets_[static_cast<size_t>(choice)];
    logprobs.add(token, offset.value());
    const bool shows = options_.keep_special || !tokenizer().is_special(token.id);
    if (shows) offset.add(tokenizer().token_bytes(token.id));
  }

  void add_prompt(CompletionLogprobs& logprobs, int prompt, const PromptScores& scores) const {
    const std::vector<TokenId>& ids = options_.prompts[static_cast<size_t>(prompt)].ids;
    TextOffset offset;
    logprobs.add_first(ids[0], 0);
    for (size_t i = 1; i < ids.size(); ++i) {
      offset.add(tokenizer().token_bytes(ids[i - 1]));
      const TokenScore& score = scores.tokens[i - 1];
      logprobs.add({ids[i], static_cast<float>(score.logprob), score.top}, offset.value());
    }
  }

  Json finish(const Answer& answer) {
    cut_off_ |= answer.finish == FinishReason::kCancelled;
    return options_.is_empty ? "length" : finish_reason(answer);
  }

  Json usage(Usage usage) const {
    if (options_.is_empty) usage.completion_tokens = 0;
    return usage_json(usage);
  }

  const CompletionAnswerOptions options_;
  const AnswerObject object_;
  bool cut_off_ = false;

 private:
  std::vector<TextOffset> offsets_;  // [choice]: where its next token begins.
};

class WholeCompletionWriter final : public CompletionWriter {
 public:
  WholeCompletionWriter(std::shared_ptr<Exchange> exchange, CompletionAnswerOptions options)
      : CompletionWriter(std::move(options)), answer_(std::move(exchange), num_choices()) {
    if (options_.logprobs) {
      logprobs_.assign(static_cast<size_t>(num_choices()), CompletionLogprobs(tokenizer()));
    }
  }

  void begin() override {}

  void score_prompt(int prompt, const PromptScores& scores) override {
    const auto first = static_cast<size_t>(first_choice(prompt));
    add_prompt(logprobs_[first], prompt, scores);
    for (size_t i = 1; i < static_cast<size_t>(options_.n); ++i) {
      logprobs_[first + i] = logprobs_[first];
    }
  }

  void add(int choice, const Delta& delta) override {
    if (delta.token) list(choice, *delta.token);
  }

  void add_stop_token(int choice, const Token& token) override { list(choice, token); }

  void end_choice(int choice, const Answer& answer) override {
    std::string text = options_.echo ? prompt_of(choice).text : "";
    if (!options_.is_empty) text += answer.content;
    std::string logprobs;
    if (options_.logprobs) {  // No longer kept from now on.
      logprobs =
          std::exchange(logprobs_[static_cast<size_t>(choice)], CompletionLogprobs(tokenizer()))
              .json();
    }
    answer_.set(choice, choice_json(choice, std::move(text), logprobs, finish(answer)));
  }

  void end(const Usage& total) override { answer_.end(object_, usage(total), cut_off_); }
  void fail(const ApiError& error) override { answer_.fail(error); }

 private:
  void list(int choice, const Token& token) {
    if (options_.is_empty || !options_.logprobs) return;
    add_token(logprobs_[static_cast<size_t>(choice)], choice, token);
  }

  WholeAnswer answer_;
  std::vector<CompletionLogprobs> logprobs_;  // [choice]; none unless asked for.
};

class StreamedCompletionWriter final : public CompletionWriter {
 public:
  StreamedCompletionWriter(std::shared_ptr<Exchange> exchange, CompletionAnswerOptions options)
      : CompletionWriter(std::move(options)), answer_(std::move(exchange), options_.stream) {}

  void begin() override {
    answer_.start();
    if (!options_.echo || options_.logprobs) return;
    for (int choice = 0; choice < num_choices(); ++choice) {
      send(choice, prompt_of(choice).text, {});
    }
  }

  // The prompt's text comes with its scores.
  void score_prompt(int prompt, const PromptScores& scores) override {
    CompletionLogprobs logprobs(tokenizer());
    add_prompt(logprobs, prompt, scores);
    const std::string json = logprobs.json();
    for (int i = 0; i < options_.n; ++i) {
      send(first_choice(prompt) + i, prompt_of(first_choice(prompt)).text, json);
    }
  }

  void add(int choice, const Delta& delta) override {
    add_piece(choice, delta.content, delta.token ? &*delta.token : nullptr);
  }

  void add_stop_token(int choice, const Token& token) override { add_piece(choice, "", &token); }

  void end_choice(int choice, const Answer& answer) override {
    const Json reason = finish(answer);
    if (answer.finish != FinishReason::kCancelled) send(choice, "", {}, reason);
  }

  void end(const Usage& total) override { answer_.end(object_, usage(total), cut_off_); }
  void fail(const ApiError& error) override { answer_.fail(error); }

 private:
  void add_piece(int choice, const std::string& text, const Token* token) {
    if (options_.is_empty) return;
    std::string logprobs;
    if (options_.logprobs && token != nullptr) {
      CompletionLogprobs one(tokenizer());
      add_token(one, choice, *token);
      logprobs = one.json();
    }
    if (!text.empty() || !logprobs.empty()) send(choice, text, logprobs);
  }

  void send(int choice, std::string text, std::string_view logprobs, const Json& finish = {}) {
    answer_.send(object_, choice_json(choice, std::move(text), logprobs, finish));
  }

  StreamedAnswer answer_;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_completion_writer(std::shared_ptr<Exchange> exchange,
                                                     CompletionAnswerOptions options) {
  if (options.stream.stream) {
    return std::make_unique<StreamedCompletionWriter>(std::move(exchange), std::move(options));
  }
  return std::make_unique<WholeCompletionWriter>(std::move(exchange), std::move(options));
}

}  // namespace trtmc
