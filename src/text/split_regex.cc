#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/split_regex.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <string>

#include "base/error.h"
#include "text/oniguruma_pattern.h"

namespace trtmc {
namespace {

// Steps of backtracking that each place of a text may take. Beyond the free ones they are counted,
// for the whole text: many places just below the limit would take for ever too.
constexpr uint32_t kFreeSteps = 1000, kMostSteps = 10'000'000, kMoreSteps = 10;
constexpr uint64_t kCountedStepsPerByte = 100;
constexpr size_t kPlacesAtATime = 4096;
constexpr uint32_t kMaxNesting = 128;
constexpr size_t kJitStackStart = 32 << 10, kJitStackMax = 8 << 20;

template <typename T, void (*kFree)(T*)>
struct Freed {
  void operator()(T* object) const { kFree(object); }
};
template <typename T, void (*kFree)(T*)>
using Owned = std::unique_ptr<T, Freed<T, kFree>>;

// What a search writes to: one a thread, for all patterns.
struct Workspace {
  Workspace() {
    if (!data || !context || !stack) throw std::bad_alloc();
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
  Owned<pcre2_match_data, pcre2_match_data_free> data{pcre2_match_data_create(1, nullptr)};
  Owned<pcre2_match_context, pcre2_match_context_free> context{pcre2_match_context_create(nullptr)};
  Owned<pcre2_jit_stack, pcre2_jit_stack_free> stack{
      pcre2_jit_stack_create(kJitStackStart, kJitStackMax, nullptr)};
};

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// The first place behind `at` where a character begins or the text has ended.
size_t next_place(std::string_view text, size_t at) {
  for (++at; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80) break;
  }
  return at;
}

// The searches in one text, and what they have cost.
class Search {
 public:
  Search(const pcre2_code* code, std::string_view text)
      : code_(code), text_(text), steps_left_(kMostSteps + kCountedStepsPerByte * text.size()) {}

  struct Match {
    size_t begin, end;
  };

  // The first match that begins at `from` or later. PCRE2 limits the steps for each place alone, so
  // a place that needs more than the free ones is searched by itself.
  std::optional<Match> next(size_t from) {
    size_t places = kPlacesAtATime;
    uint32_t steps = kFreeSteps;
    while (from <= text_.size()) {
      const int result = attempt(from, places, steps);
      if (result >= 0) {
        const size_t* range = pcre2_get_ovector_pointer(workspace().data.get());
        return Match{range[0], range[1]};
      }
      if (result == PCRE2_ERROR_NOMATCH) {
        from = next_place(text_, from + places - 1);
        places = std::min(2 * places, kPlacesAtATime);
        steps = kFreeSteps;
      } else if (result == PCRE2_ERROR_MATCHLIMIT && places > 1) {
        places = 1;
      } else if (result != PCRE2_ERROR_MATCHLIMIT || steps >= kMostSteps || steps > steps_left_) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("the tokenizer's split pattern gives up on this text: {}",
                                message_of(result)));
      } else {
        steps_left_ -= steps;
        steps *= kMoreSteps;
      }
    }
    return std::nullopt;
  }

 private:
  static const Workspace& workspace() {
    thread_local const Workspace kWorkspace;
    return kWorkspace;
  }

  int attempt(size_t from, size_t places, uint32_t steps) const {
    pcre2_match_context* context = workspace().context.get();
    pcre2_set_match_limit(context, steps);
    pcre2_set_offset_limit(context, from + places - 1);
    return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), from,
                       PCRE2_NO_UTF_CHECK, workspace().data.get(), context);
  }

  const pcre2_code* code_;
  std::string_view text_;
  uint64_t steps_left_;
};

}  // namespace

struct SplitRegex::Code {
  Owned<pcre2_code, pcre2_code_free> code;
};

SplitRegex::SplitRegex(std::string_view pattern) {
  const std::string translated = pcre2_of_oniguruma(pattern);
  const Owned<pcre2_compile_context, pcre2_compile_context_free> context(
      pcre2_compile_context_create(nullptr));
  if (!context) throw std::bad_alloc();
  pcre2_set_parens_nest_limit(context.get(), kMaxNesting);
  int error = 0;
  size_t offset = 0;
  pcre2_code* code = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
      PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT, &error, &offset, context.get());
  if (code == nullptr) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("split pattern \"{}\": {}", pattern, message_of(error)));
  }
  code_ = std::make_unique<const Code>(Code{Owned<pcre2_code, pcre2_code_free>(code)});
  // Where there is no JIT, the interpreter does the same.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
}

SplitRegex::~SplitRegex() = default;
SplitRegex::SplitRegex(SplitRegex&&) noexcept = default;
SplitRegex& SplitRegex::operator=(SplitRegex&&) noexcept = default;

// The loop of the `onig` crate: an empty match where the last one ended is passed over.
void SplitRegex::for_each_match(std::string_view text,
                                FunctionRef<void(size_t, size_t)> visit) const {
  Search search(code_->code.get(), text);
  std::optional<size_t> last_end;
  for (size_t from = 0; from <= text.size();) {
    const auto match = search.next(from);
    if (!match) return;
    if (match->begin == match->end && match->end == last_end) {
      from = next_place(text, match->end);
      continue;
    }
    last_end = from = match->end;
    visit(match->begin, match->end);
  }
}

}  // namespace trtmc
