#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "cli/commands.h"
#include "engine/scoring.h"

namespace trtmc {
namespace {

Json number_or_null(double value) { return std::isnan(value) ? Json() : Json(value); }

// The formats' order and names are stable: scripts rely on them.
Json score_json(const TextScore& score, std::span<const TokenId> ids, bool per_token) {
  Json json;
  json.set("tokens", ids.size());
  json.set("logprob_sum", score.logprob_sum);
  json.set("perplexity", number_or_null(score.perplexity()));
  if (!per_token) return json;
  Json::Array logprobs;
  for (const double logprob : score.token_logprobs) logprobs.push_back(number_or_null(logprob));
  json.set("ids", Json::Array(ids.begin(), ids.end()));
  json.set("token_logprobs", std::move(logprobs));
  return json;
}

std::string token_lines(const TextScore& score, std::span<const TokenId> ids,
                        const Tokenizer& tokenizer) {
  std::string lines;
  for (size_t i = 0; i < ids.size(); ++i) {
    const double logprob = score.token_logprobs[i];
    const Json piece(replace_invalid_utf8(tokenizer.token_bytes(ids[i])));
    lines += fmt::format("{:>7}  {:>10}  {}\n", ids[i],
                         std::isnan(logprob) ? "-" : fmt::format("{:.4f}", logprob), piece.dump());
  }
  return lines;
}

void check_length(size_t tokens, int window, const LoadedModel& model) {
  const auto context = static_cast<size_t>(model.context_length());
  const size_t needed = window == 0 ? tokens : std::min(tokens, static_cast<size_t>(window));
  if (needed <= context) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} of {} tokens, but the context has {}",
                          window == 0 ? "a text" : "a window", needed, context),
              fmt::format("score it in windows: --window {}", context));
}

}  // namespace

void execute(const ScoreCommand& command, Console& console) {
  console.configure_log(command.log);
  const LoadedModel model(command.bundle, command.load);
  const std::string text = read_text(command.file, "the text");
  const std::vector<TokenId> ids = model.tokenizer().encode(text);
  if (ids.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "the text is empty: there is nothing to score");
  }
  check_length(ids.size(), command.window, model);
  const TextScore score = score_tokens(model, ids, command.window);
  if (command.json) return console.print_json(score_json(score, ids, command.per_token));
  if (command.per_token) console.print(token_lines(score, ids, model.tokenizer()));
  // A text of one token has none that follows from another.
  const double perplexity = score.perplexity();
  console.print(fmt::format("tokens       {}\nlogprob sum  {:.6f}\nperplexity   {}\n", ids.size(),
                            score.logprob_sum,
                            std::isnan(perplexity) ? "-" : fmt::format("{:.6f}", perplexity)));
}

}  // namespace trtmc
