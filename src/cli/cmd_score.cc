#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "cli/commands.h"
#include "engine/model_comparison.h"
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

std::string perplexity_text(const TextScore& score) {
  // A text of one token has none that follows from another.
  const double perplexity = score.perplexity();
  return std::isnan(perplexity) ? "-" : fmt::format("{:.6f}", perplexity);
}

Json comparison_json(const ModelComparison& comparison, std::span<const TokenId> ids,
                     const ScoreCommand& command) {
  Json json = score_json(comparison.score, ids, false);
  json.set("against", command.against.string());
  json.set("against_logprob_sum", comparison.other.logprob_sum);
  json.set("against_perplexity", number_or_null(comparison.other.perplexity()));
  json.set("compared", comparison.divergences.size());
  json.set("kl_mean", number_or_null(comparison.mean_divergence()));
  json.set("kl_99", number_or_null(comparison.divergence_quantile(0.99)));
  json.set("kl_max", number_or_null(comparison.largest_divergence()));
  json.set("top1_agreement", number_or_null(comparison.top_agreement()));
  return json;
}

std::string comparison_text(const ModelComparison& comparison) {
  const auto number = [](double value) {
    return std::isnan(value) ? "-" : fmt::format("{:.6f}", value);
  };
  const double agreement = comparison.top_agreement();
  return fmt::format(
      "against      {}\nKL mean      {}\nKL 99 %      {}\nKL largest   {}\nsame top     {}\n",
      perplexity_text(comparison.other), number(comparison.mean_divergence()),
      number(comparison.divergence_quantile(0.99)), number(comparison.largest_divergence()),
      std::isnan(agreement) ? "-" : fmt::format("{:.2f} %", 100 * agreement));
}

std::string score_text(const TextScore& score, std::span<const TokenId> ids) {
  return fmt::format("tokens       {}\nlogprob sum  {:.6f}\nperplexity   {}\n", ids.size(),
                     score.logprob_sum, perplexity_text(score));
}

// Both models take a step each in turn.
void compare(const ScoreCommand& command, const LoadedModel& model, std::span<const TokenId> ids,
             Console& console) {
  LoadOptions exact = command.load;  // What is taken to be right rounds no keys and values.
  exact.executor.kv_type = KvType::kF32;
  const LoadedModel other(command.against, exact);
  check_same_tokenizer(model.bundle(), other.bundle());
  check_length(ids.size(), command.window, other);
  const ModelComparison comparison =
      compare_models(model.engine_model(), other.engine_model(), ids, command.window);
  if (command.json) return console.print_json(comparison_json(comparison, ids, command));
  console.print(score_text(comparison.score, ids) + comparison_text(comparison));
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
  if (!command.against.empty()) return compare(command, model, ids, console);
  const TextScore score = score_tokens(model, ids, command.window);
  if (command.json) return console.print_json(score_json(score, ids, command.per_token));
  if (command.per_token) console.print(token_lines(score, ids, model.tokenizer()));
  console.print(score_text(score, ids));
}

}  // namespace trtmc
