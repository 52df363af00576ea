// trtmc as a C++ library: load a bundle, render and tokenize prompts, generate answers, hold a
// conversation, score texts. docs/library.md has the tour, examples/ has programs.
//
// Everything throws trtmc::Error and nothing else, unless it says noexcept. Each declaration names
// the codes that it throws beyond kExhausted (no memory) and kInternal (a bug).
//
// All text is UTF-8. Strings and vectors that come back belong to the caller. What holds a model
// (Model, Stream, Chat) shares it: the file stays mapped until the last of them is gone, and they
// may die in any order.
//
// Threads: a Model may be used by many threads at once, as may Stream::cancel(). A Stream is
// otherwise used by one thread at a time, and so is a Chat together with its stream, which writes
// its history. Nothing here is called from a signal handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trtmc/values.h"

namespace trtmc {

// The version of the library that runs, "0.1.0". That of the header is TRTMC_VERSION_STRING.
TRTMC_API std::string_view version() noexcept;

// Where messages go: `sink` gets every line of at least the level `lowest`, without its newline,
// from any thread, one call at a time; it must not throw nor call trtmc. An empty sink brings
// standard error back. For the whole process; at first kInfo and standard error.
TRTMC_API void set_log(LogLevel lowest,
                       std::function<void(LogLevel level, std::string_view line)> sink = {});

struct ModelOptions {
  // "auto" (the CPU), "cpu", "cuda", "tensorrt" or "reference". What tensorrt computes in, and
  // layers in float32 all the same, only the program can choose: here it is as the weights are
  // stored.
  std::string backend = "auto";
  int threads = 0;                    // CPU threads; 0: one per core.
  int context_length = 0;             // Tokens that prompt and answer may have; 0: the model's own.
  std::uint64_t kv_memory_bytes = 0;  // For keys and values of all answers that run at the same
                                      // time; 0: room for one whole context.
  std::string kv_type = "f32";        // How they are kept: "f32", "bf16", "q8" or "fp8".
  // "avx512vnni", "avx512", "avxvnni", "avx2", "neon_dotprod", "neon", "generic"; empty: the best.
  std::string cpu_isa{};
  int threads_batch = 0;  // Of steps of several tokens: prompts, answers together; 0: as `threads`.
};

struct ModelInfo {
  std::string family{};           // "smollm3"
  std::string source{};           // Hub id or name of the checkpoint.
  std::string source_revision{};  // A commit, or empty if unknown.
  std::string licence{};          // As the model's card says, or empty.
  int vocab_size = 0;
  int context_length = 0;           // Tokens, as loaded.
  std::vector<TokenId> stop_ids{};  // Each ends an answer.
  bool has_tokenizer = false;       // Without one the model takes and gives token ids only.
  bool has_chat_template = false;   // Without one render(), chat() and Chat throw kUnsupported.
  bool has_reasoning = false;       // Its reasoning comes apart from the content.
  bool has_tools = false;           // It has a format for tool calls.
  std::string device{};             // What it runs on, in words: "avx512, 2 threads".
};

// What an answer should be like. What is left out comes from the bundle, else it is the model's
// plain distribution.
struct GenerationOptions {
  std::optional<double> temperature{};  // At least 0; 0 takes the most likely token each time.
  std::optional<int> top_k{};           // Draw from the N most likely tokens; 0: from all.
  std::optional<double> top_p{};        // Draw from those that make up this share; from 0 to 1.
  std::optional<double> min_p{};        // Leave out those less likely than this times the best.
  std::optional<double> repetition_penalty{};  // Above 0. Divides the score of tokens seen before.
  std::optional<double> presence_penalty{};    // Subtracted from the score of the answer's tokens.
  std::optional<double> frequency_penalty{};   // The same for each time the token is there.
  std::vector<std::pair<TokenId, float>> logit_bias{};  // Added to the scores of these tokens.
  std::optional<std::uint64_t> seed{};  // Equal seeds, equal draws; none: new ones each time.
  int max_tokens = 0;                   // 0: to the context's end.
  std::vector<std::string> stop{};      // The answer ends before any of these texts.
  std::optional<int> logprobs{};        // Log-probabilities, and this many alternatives per token.
};

// A token of an answer.
struct Token {
  TokenId id = -1;
  float logprob = 0;                // If asked for; of the model's own distribution, before
                                    // temperature and penalties.
  std::vector<TokenLogprob> top{};  // If asked for: the most likely tokens, best first.
};

// What one step of an answer adds. Any of the parts may be missing.
struct Delta {
  std::string content{};               // Whole code points.
  std::string reasoning{};             // Likewise.
  std::vector<ToolCall> tool_calls{};  // Whole calls.
  std::optional<Token> token{};        // None: text that was held back until it was certain.

  bool has_text() const { return !content.empty() || !reasoning.empty() || !tool_calls.empty(); }
};

// An answer, whole or so far: the sum of its deltas.
struct Answer {
  std::string content{};
  std::string reasoning{};
  std::vector<ToolCall> tool_calls{};
  std::vector<Token> tokens{};  // All of the answer's tokens without its stop token.
  FinishReason finish = FinishReason::kStop;
  Usage usage{};
  double prefill_ms = 0;  // From the request to the first token.
  double decode_ms = 0;   // From the first token to the last.
};

// "stop", "length", "cancelled", or, for an answer that ended itself after tool calls,
// "tool_calls".
TRTMC_API std::string_view finish_reason(const Answer& answer) noexcept;

// An answer as it comes. Reads like a range, once:
//   for (const trtmc::Delta& delta : stream) std::cout << delta.content << std::flush;
// A stream that dies before its end cancels the answer.
class TRTMC_API Stream {
 public:
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  // The next delta, waiting for it; nothing at the end. Throws kInternal if the model fails.
  std::optional<Delta> next();

  // Calls `on_delta` with every delta that is left, on the calling thread, and returns the whole
  // answer. What `on_delta` throws comes through, and the stream can be read on.
  Answer read(const std::function<void(const Delta&)>& on_delta = {});

  // What there is of the answer so far; finish and times count once next() has returned nothing.
  // Valid as long as the stream and until it is read on.
  const Answer& answer() const noexcept;

  // Ends the answer soon, with kCancelled; at most one more token comes. From any thread, as long
  // as the stream lives and is not moved; once the answer has ended it does nothing.
  void cancel() noexcept;

  class Iterator;
  Iterator begin();
  std::default_sentinel_t end() const noexcept { return {}; }

  struct Impl;
  explicit Stream(std::unique_ptr<Impl> impl) noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

// An input iterator over what is left of a stream, which must outlive it.
class Stream::Iterator {
 public:
  using value_type = Delta;
  using difference_type = std::ptrdiff_t;
  using iterator_concept = std::input_iterator_tag;

  explicit Iterator(Stream& stream) : stream_(&stream), delta_(stream.next()) {}
  const Delta& operator*() const { return *delta_; }
  const Delta* operator->() const { return &*delta_; }
  Iterator& operator++() {
    delta_ = stream_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const { return !delta_; }

 private:
  Stream* stream_;
  std::optional<Delta> delta_;
};

inline Stream::Iterator Stream::begin() { return Iterator(*this); }

// How likely a text is.
struct Score {
  std::vector<TokenId> ids{};            // The text's tokens.
  std::vector<double> token_logprobs{};  // [ids]. Natural logarithm of each token's probability
                                         // after those before it; NaN for the first of a window.
  double logprob_sum = 0;                // Of those that are not NaN.
  double perplexity = 0;                 // exp(-logprob_sum / their number); NaN if there are none.
};

struct TokenizeOptions {
  bool add_special = false;  // What the tokenizer puts around a text.
  bool plain_text = false;   // "<|im_end|>" and the like are text, not special tokens.
};

// A bundle, loaded and ready. A handle: copies are the same model.
class TRTMC_API Model {
 public:
  // Maps the bundle at `path` and prepares the backend. Throws kNotFound, kCorrupt, kUnsupported
  // (a newer format, a backend that can't run it here), kInvalidArgument (an option).
  explicit Model(const std::string& path, const ModelOptions& options = {});
  Model(const Model&) noexcept;
  Model& operator=(const Model&) noexcept;
  ~Model();

  ModelInfo info() const;

  // Throws kInvalidArgument for text that is not UTF-8, kUnsupported without a tokenizer.
  std::vector<TokenId> tokenize(std::string_view text, const TokenizeOptions& options = {}) const;

  // The exact bytes of `ids`, which may end within a code point. With `skip_special`, special
  // tokens are left out. Throws kInvalidArgument for an id that is no token, kUnsupported without a
  // tokenizer.
  std::string detokenize(const std::vector<TokenId>& ids, bool skip_special = false) const;

  // The exact prompt for a conversation in JSON: an array of messages, or an object with
  // "messages", "tools", "add_generation_prompt" and "chat_template_kwargs", as `trtmc prompt`
  // reads it. `date` ("2026-09-04") is the day that the prompt may name; empty: today. Throws
  // kInvalidArgument (the JSON, or what the template says of it), kUnsupported (no template, or
  // tools that the model has no format for).
  std::string render(std::string_view conversation_json, std::string_view date = {}) const;

  // Answers a conversation, as render() reads it. Reasoning and tool calls come apart from the
  // content. Throws at once what render() throws, and kInvalidArgument for options out of their
  // range or a prompt that leaves no room in the context, kExhausted if too many answers wait.
  Stream chat(std::string_view conversation_json, const GenerationOptions& options = {},
              std::string_view date = {}) const;

  // Continues a text as it is, without a template; all that comes is content. Throws as chat(), and
  // kInvalidArgument for an empty text.
  Stream complete(std::string_view text, const GenerationOptions& options = {}) const;
  Stream complete(const std::vector<TokenId>& ids, const GenerationOptions& options = {}) const;

  // How likely `text` or `ids` are, in disjoint windows of `window` tokens that know nothing of
  // each other (0: one window for all). A window must be shorter than the context. Throws
  // kInvalidArgument if it is not, and for an empty text or an id that is no token.
  Score score(std::string_view text, int window = 0) const;
  Score score(const std::vector<TokenId>& ids, int window = 0) const;

  struct Impl;

 private:
  friend class Chat;
  std::shared_ptr<Impl> impl_;
};

struct ChatOptions {
  std::optional<std::string> system{};  // The system message.
  std::optional<bool> think{};          // Reason first, or not; none: as the template has it.
  std::string date{};   // "2026-09-04", the day that the prompt names; empty: today.
  std::string tools{};  // A JSON array of tools that the model may call; empty: none.
};

// A conversation and its history.
//   trtmc::Chat chat(model);
//   std::cout << chat.ask("Capital of France?").read().content;
//
// An answer joins the history, without its reasoning, when its stream has been read to the end or
// dies; then with what was read of it. A question without any answer leaves the history again.
class TRTMC_API Chat {
 public:
  // Throws kUnsupported if the model has no template, no reasoning to turn on or off, or no format
  // for tools; kInvalidArgument for tools or a date that can't be read.
  explicit Chat(const Model& model, const ChatOptions& options = {});
  Chat(Chat&&) noexcept;
  Chat& operator=(Chat&&) noexcept;
  ~Chat();  // Streams live on.

  // Says `text` to the model. Throws as Model::chat, and kInvalidArgument while the stream of an
  // earlier answer is not over; the history is then as it was.
  Stream ask(std::string_view text, const GenerationOptions& options = {});

  // What the tools that the last answer called have returned, in the order of its calls. Throws as
  // ask(), and kInvalidArgument if the last answer called another number of tools.
  Stream give_results(const std::vector<std::string>& results,
                      const GenerationOptions& options = {});

  // The conversation as a JSON array of messages, without the system message.
  std::string history() const;
  // Takes up such a conversation. Throws kInvalidArgument if it is no array of objects, or while an
  // answer's stream is not over.
  void set_history(std::string_view json);

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace trtmc
