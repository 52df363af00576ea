#include "text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "text/added_tokens.h"
#include "text/byte_alphabet.h"
#include "text/pretokenizer.h"
#include "text/tokenizer_tables.h"
#include "text/word_encoder.h"

namespace trtmc {
namespace {

// Places in a word have 32 bits.
constexpr size_t kMaxText = size_t{1} << 31;

// The tables are checked once and lead from one to another, so they must stay as they were: a
// mapped file may be overwritten by another program.
class OwnBytes {
 public:
  explicit OwnBytes(std::span<const std::byte> bytes)
      : bytes_(std::make_unique_for_overwrite<std::byte[]>(bytes.size())), size_(bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), bytes_.get());
  }
  std::span<const std::byte> view() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  size_t size_;
};

}  // namespace

struct Tokenizer::Impl {
  explicit Impl(std::span<const std::byte> bytes)
      : own(bytes), tables(own.view()), pretokenizer(tables.steps()), added(tables) {}

  void append_plain(std::string_view text, std::vector<TokenId>& ids) const {
    pretokenizer.split(text, [&](std::string_view word) { append_word(tables, word, ids); });
  }

  bool has_token(TokenId id) const {
    return id >= 0 && static_cast<uint32_t>(id) < tables.num_ids();
  }

  const OwnBytes own;
  const TokenizerTables tables;
  const Pretokenizer pretokenizer;
  const AddedTokenFinder added;
};

Tokenizer::Tokenizer(std::span<const std::byte> tables)
    : impl_(std::make_unique<const Impl>(tables)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (text.size() >= kMaxText) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a text of {} bytes, expected fewer than {}", text.size(), kMaxText));
  }
  if (const auto offset = find_invalid_utf8(text)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("text is not UTF-8 at byte {}", *offset));
  }
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 4 + 8);
  if (options.add_special) {
    ids.insert(ids.end(), impl_->tables.template_prefix().begin(),
               impl_->tables.template_prefix().end());
  }
  const auto plain = [&](std::string_view part) { impl_->append_plain(part, ids); };
  if (options.match_added) {
    impl_->added.split(text, plain, [&](TokenId id) { ids.push_back(id); });
  } else {
    plain(text);
  }
  if (options.add_special) {
    ids.insert(ids.end(), impl_->tables.template_suffix().begin(),
               impl_->tables.template_suffix().end());
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string text;
  for (const TokenId id : ids) {
    if (!impl_->has_token(id)) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("token id {} has no token, expected 0 to {}", id,
                              int64_t{impl_->tables.num_ids()} - 1));
    }
    if (!skip_special || !is_special(id)) text += token_bytes(id);
  }
  return text;
}

std::string_view Tokenizer::token_bytes(TokenId id) const {
  if (!impl_->has_token(id)) return {};
  return impl_->tables.token_bytes(static_cast<uint32_t>(id));
}

bool Tokenizer::is_special(TokenId id) const {
  return impl_->has_token(id) &&
         (impl_->tables.token_flags(static_cast<uint32_t>(id)) & kTokenSpecial) != 0;
}

int Tokenizer::num_ids() const { return static_cast<int>(impl_->tables.num_ids()); }

std::optional<TokenId> Tokenizer::find(std::string_view content) const {
  const auto spelled = bytes_of_alphabet(content);
  const uint32_t id =
      impl_->tables.find_token(spelled ? std::string_view(*spelled) : content, !spelled);
  if (id == kNoId) return std::nullopt;
  return static_cast<TokenId>(id);
}

}  // namespace trtmc
