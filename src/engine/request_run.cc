#include "engine/request_run.h"

#include <algorithm>
#include <new>
#include <utility>

namespace trtmc {
namespace {

std::vector<TokenId> different_tokens(std::vector<TokenId> tokens) {
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

}  // namespace

RequestRun::RequestRun(GenerationRequest request, int max_length, const Tokenizer* tokenizer,
                       std::shared_ptr<TokenStream::Shared> shared)
    : request_(std::move(request)),
      max_length_(max_length),
      tokenizer_(tokenizer),
      shared_(std::move(shared)),
      counts_tokens_(has_penalties(request_.sampling)) {
  if (counts_tokens_) prompt_tokens_ = different_tokens(request_.prompt);
  for (int i = 0; i < request_.n; ++i) {
    choices_.push_back({.text = TextStream(request_.stop), .counts = {}, .lookup = {}});
  }
  if (request_.echo_logprobs) shared_->prompt_scores.tokens.resize(request_.prompt.size() - 1);
}

std::vector<std::unique_ptr<Sequence>> RequestRun::make_sequences(SequenceId first) {
  first_id_ = first;
  std::vector<std::unique_ptr<Sequence>> sequences;
  for (int i = 0; i < num_choices(); ++i) {
    auto sequence = std::make_unique<Sequence>();
    sequence->id = first + static_cast<SequenceId>(i);
    sequence->priority = request_.priority;
    sequence->tokens = request_.prompt;
    sequence->prompt_size = sequence->size();
    sequence->max_length = max_length_;
    if (i > 0) sequence->leader = first;
    if (i == 0 && request_.echo_logprobs) sequence->logits_from = 0;
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

SampleRow RequestRun::sample_row(SequenceId id, int row) const {
  // The choice in the upper half: choices draw different numbers, and the first draws those of a
  // request for one.
  const uint64_t draw = (id - first_id_) << 32 | static_cast<uint64_t>(choice(id).num_generated);
  return {.row = row,
          .params = &request_.sampling,
          .draw = draw,
          .counts = choice(id).counts.counts(),
          .allowed = {},
          .top_logprobs = request_.logprobs.value_or(-1),
          .prompt_tokens = prompt_tokens_};
}

TokenEvent RequestRun::event_for(SequenceId id) const {
  TokenEvent event;
  event.choice = static_cast<uint32_t>(id - first_id_);
  return event;
}

bool RequestRun::is_stop(TokenId token) const {
  return !request_.ignore_eos && std::ranges::count(request_.stop_ids, token) > 0;
}

std::string_view RequestRun::shown_bytes(TokenId token) const {
  if (!tokenizer_ || (!request_.keep_special && tokenizer_->is_special(token))) return {};
  return tokenizer_->token_bytes(token);
}

void RequestRun::accept(SequenceId id, Sampled& sampled) {
  try {
    if (is_cancelled()) return end(id, FinishReason::kCancelled);
    if (sampled.token < 0) return end(id, FinishReason::kError, kNoNumbers);
    if (is_stop(sampled.token)) return end_at(id, sampled);
    go_on(id, sampled);
  } catch (const std::bad_alloc&) {
    end(id, FinishReason::kError, kOutOfMemory, ErrorCode::kExhausted);
  }
}

void RequestRun::go_on(SequenceId id, Sampled& sampled) {
  Choice& current = choice(id);
  if (counts_tokens_) {
    const TokenId token = sampled.token;
    current.counts.add(token, std::ranges::binary_search(prompt_tokens_, token));
  }
  ++current.num_generated;

  TokenEvent event = event_for(id);
  event.token = sampled.token;
  event.logprob = sampled.logprob;
  event.top = std::move(sampled.top);
  event.text = current.text.append(shown_bytes(sampled.token));
  const int length = static_cast<int>(request_.prompt.size()) + current.num_generated;
  if (length == max_length_ && !current.text.stopped()) {
    event.text += current.text.finish();
    event.finish = FinishReason::kLength;
  }
  if (current.text.stopped()) event.finish = FinishReason::kStop;
  send(current, std::move(event));
}

void RequestRun::end_at(SequenceId id, Sampled& stop) {
  Choice& current = choice(id);
  TokenEvent event = event_for(id);
  event.text = current.text.finish();
  event.finish = FinishReason::kStop;
  event.stop_token = stop.token;
  event.logprob = stop.logprob;
  event.top = std::move(stop.top);
  send(current, std::move(event));
}

void RequestRun::end(SequenceId id, FinishReason reason, std::string_view error,
                     ErrorCode error_code) noexcept {
  Choice& current = choice(id);
  if (current.ended) return;
  TokenEvent event = event_for(id);
  try {
    event.text = current.text.finish();
  } catch (const std::bad_alloc&) {
    event.text.clear();
  }
  event.finish = reason;
  set_error(event.error, error);
  event.error_code = error_code;
  send(current, std::move(event));
}

void RequestRun::send(Choice& current, TokenEvent event) {
  const bool is_last = event.finish.has_value();
  shared_->push(std::move(event));
  if (!is_last) return;
  current.ended = true;
  ++num_ended_;
}

void RequestRun::set_cached_tokens(SequenceId id, int count) {
  if (id != first_id_) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->usage.cached_tokens = count;
}

void RequestRun::set_prompt_score(int index, TokenScore score) {
  const std::lock_guard lock(shared_->mutex);
  shared_->prompt_scores.tokens[static_cast<size_t>(index)] = std::move(score);
}

}  // namespace trtmc
