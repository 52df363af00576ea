// One request while the engine serves it: its choices, each a sequence with its text, counts and
// end. Used by the engine's thread only.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/draft.h"
#include "engine/generation.h"
#include "engine/sequence.h"
#include "engine/shared_stream.h"
#include "engine/token_counts.h"
#include "text/text_stream.h"
#include "text/tokenizer.h"

namespace trtmc {

// How an answer ends where no logit is a number.
inline constexpr std::string_view kNoNumbers =
    "the model's logits are no numbers: its weights are damaged, or its device is";

class RequestRun {
 public:
  // `request` has been checked. `max_length`: tokens of a choice, prompt included.
  RequestRun(GenerationRequest request, int max_length, const Tokenizer* tokenizer,
             std::shared_ptr<TokenStream::Shared> shared);

  // A sequence for each choice, with ids from `first` on; the first leads the others.
  std::vector<std::unique_ptr<Sequence>> make_sequences(SequenceId first);
  SequenceId first_id() const { return first_id_; }  // 0: no sequences yet.
  // Of its prompt, once for each choice.
  int64_t num_prompt_tokens() const {
    return static_cast<int64_t>(request_.prompt.size()) * num_choices();
  }
  int num_choices() const { return static_cast<int>(choices_.size()); }
  bool has(SequenceId id) const {
    return id >= first_id_ && id - first_id_ < static_cast<SequenceId>(num_choices());
  }

  const GenerationRequest& request() const { return request_; }
  bool is_cancelled() const { return shared_->is_cancelled; }
  bool has_ended(SequenceId id) const { return choice(id).ended; }
  bool has_ended() const { return num_ended_ == num_choices(); }
  int num_generated(SequenceId id) const { return choice(id).num_generated; }

  // How the next token of `id` is to be drawn from logits row `row`.
  SampleRow sample_row(SequenceId id, int row) const;

  // Takes the next token of `id` and sends what follows from it; ends the choice if there is none,
  // if the request has been cancelled, or if there is no memory.
  void accept(SequenceId id, Sampled& sampled);

  // Guesses the answer's next tokens.
  PromptLookup& lookup(SequenceId id) { return choice(id).lookup; }

  // How many of the prompt's tokens `id` took over from others; before its first event. What counts
  // for the request is the first choice.
  void set_cached_tokens(SequenceId id, int count);

  // Ends the choice without a token; once it has ended already this does nothing. Where there is no
  // memory, only text that was held back is lost.
  void end(SequenceId id, FinishReason reason, std::string_view error = {},
           ErrorCode error_code = ErrorCode::kInternal) noexcept;

  // The score of prompt token `index` + 1. All come before the first token.
  void set_prompt_score(int index, TokenScore score);

  bool started = false;  // Something of it has been computed.

 private:
  struct Choice {
    TextStream text;
    TokenCounts counts;
    PromptLookup lookup;
    int num_generated = 0;
    bool ended = false;
  };

  Choice& choice(SequenceId id) { return choices_[static_cast<size_t>(id - first_id_)]; }
  const Choice& choice(SequenceId id) const {
    return choices_[static_cast<size_t>(id - first_id_)];
  }
  TokenEvent event_for(SequenceId id) const;
  bool is_stop(TokenId token) const;
  void go_on(SequenceId id, Sampled& sampled);
  void end_at(SequenceId id, Sampled& stop);  // The token is a stop token.
  std::string_view shown_bytes(TokenId token) const;
  void send(Choice& choice, TokenEvent event);

  const GenerationRequest request_;
  const int max_length_;
  const Tokenizer* const tokenizer_;
  const std::shared_ptr<TokenStream::Shared> shared_;
  const bool counts_tokens_;
  std::vector<TokenId> prompt_tokens_;  // Each once, rising; empty if nothing is counted.
  std::vector<Choice> choices_;
  int num_ended_ = 0;
  SequenceId first_id_ = 0;
};

}  // namespace trtmc
