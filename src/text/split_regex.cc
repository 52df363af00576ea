#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/split_regex.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <new>
#include <string>

#include "base/error.h"
#include "text/oniguruma_pattern.h"

namespace trtmc {
namespace {

constexpr uint32_t kMatchLimit = 10'000'000;
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
    pcre2_set_match_limit(context.get(), kMatchLimit);
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

size_t char_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xE0) return 2;
  return lead < 0xF0 ? 3 : 4;
}

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
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &error, &offset, context.get());
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
  thread_local const Workspace kWorkspace;
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t last_end = kNone;
  for (size_t from = 0; from <= text.size();) {
    const int result =
        pcre2_match(code_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                    PCRE2_NO_UTF_CHECK, kWorkspace.data.get(), kWorkspace.context.get());
    if (result == PCRE2_ERROR_NOMATCH) return;
    if (result < 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("the tokenizer's split pattern gives up on this text: {}",
                              message_of(result)));
    }
    const size_t* range = pcre2_get_ovector_pointer(kWorkspace.data.get());
    const size_t begin = range[0], end = range[1];
    if (begin == end && end == last_end) {
      from = end < text.size() ? end + char_length(static_cast<unsigned char>(text[end])) : end + 1;
      continue;
    }
    from = last_end = end;
    visit(begin, end);
  }
}

}  // namespace trtmc
