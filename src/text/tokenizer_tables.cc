#include "text/tokenizer_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"

namespace trtmc {
namespace {

constexpr std::string_view kSectionNames[] = {
    "token offsets", "token bytes", "token flags", "prefix nodes", "merge filter",
    "merge slots",   "token parts", "steps",       "step text",    "added tokens",
    "trie nodes",    "prefix",      "suffix"};
static_assert(std::size(kSectionNames) == static_cast<size_t>(TablesSection::kCount));

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::kCorrupt, "tokenizer tables: " + what);
}

template <typename... Args>
void require(bool good, fmt::format_string<Args...> format, Args&&... args) {
  if (!good) [[unlikely]] {
    fail(fmt::format(format, std::forward<Args>(args)...));
  }
}

TablesHeader read_header(std::span<const std::byte> bytes) {
  TablesHeader header;
  require(bytes.size() >= sizeof(header), "{} bytes, fewer than the header's {}", bytes.size(),
          sizeof(header));
  require(reinterpret_cast<uintptr_t>(bytes.data()) % 8 == 0, "not at a multiple of 8 bytes");
  std::memcpy(&header, bytes.data(), sizeof(header));
  require(header.magic == kTablesMagic, "they do not begin with TRTMCTOK");
  if (header.version != kTablesVersion) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("tokenizer tables: version {}, this program reads version {}",
                            header.version, kTablesVersion),
                "build the bundle again with this program");
  }
  require(header.num_ids <= kMaxIds, "{} ids, more than {}", header.num_ids, kMaxIds);
  require(header.merge_probes <= kMaxProbes, "searches of {} merge slots, more than {}",
          header.merge_probes, kMaxProbes);
  require(header.longest_match <= kMaxMatch, "matches of {} bytes, more than {}",
          header.longest_match, kMaxMatch);
  return header;
}

// Refuses `records` if `bad` holds for one. Looks at all of them without a branch, since tables are
// good as a rule and there are a million slots.
template <typename Record, typename Bad>
void require_none(std::span<const Record> records, std::string_view what, Bad bad) {
  unsigned any = 0;
  for (const Record& record : records) any |= static_cast<unsigned>(bad(record));
  if (any == 0) return;
  const auto found = std::find_if(records.begin(), records.end(), bad);
  fail(fmt::format("{} {} points outside", what, found - records.begin()));
}

}  // namespace

template <typename Record>
std::span<const Record> TokenizerTables::section(TablesSection which) const {
  const auto index = static_cast<size_t>(which);
  const SectionRange range = header_.sections[index];
  require(range.offset % 8 == 0 && range.size % sizeof(Record) == 0 &&
              range.offset <= bytes_.size() && range.size <= bytes_.size() - range.offset,
          "{} at {} with {} bytes, the tables have {} bytes", kSectionNames[index], range.offset,
          range.size, bytes_.size());
  return {reinterpret_cast<const Record*>(bytes_.data() + range.offset),
          static_cast<size_t>(range.size) / sizeof(Record)};
}

TokenizerTables::TokenizerTables(std::span<const std::byte> bytes)
    : bytes_(bytes), header_(read_header(bytes)) {
  token_offsets_ = section<uint32_t>(TablesSection::kTokenOffsets);
  token_bytes_ = section<char>(TablesSection::kTokenBytes).data();
  token_flags_ = section<uint8_t>(TablesSection::kTokenFlags);
  steps_ = section<StepRecord>(TablesSection::kSteps);
  const auto step_text = section<char>(TablesSection::kStepText);
  step_text_ = {step_text.data(), step_text.size()};
  added_ = section<AddedRecord>(TablesSection::kAddedTokens);
  trie_ = section<TrieNode>(TablesSection::kTrieNodes);
  prefix_ = section<TokenId>(TablesSection::kTemplatePrefix);
  suffix_ = section<TokenId>(TablesSection::kTemplateSuffix);
  check_tokens();
  read_prefixes();
  read_merges();
  check_steps();
  check_added();
}

void TokenizerTables::check_tokens() const {
  const uint32_t num_ids = header_.num_ids;
  require(token_offsets_.size() == size_t{num_ids} + 1, "{} token offsets for {} ids",
          token_offsets_.size(), num_ids);
  require(token_flags_.size() == num_ids, "{} token flags for {} ids", token_flags_.size(),
          num_ids);
  const auto blob = section<char>(TablesSection::kTokenBytes).size();
  require(token_offsets_.front() == 0 && token_offsets_.back() == blob,
          "token offsets do not cover the {} token bytes", blob);
  require(std::is_sorted(token_offsets_.begin(), token_offsets_.end()),
          "token offsets do not grow");
  const auto outside = [&](TokenId id) { return id < 0 || static_cast<uint32_t>(id) >= num_ids; };
  require_none(std::span<const TokenId>(header_.byte_ids), "byte",
               [&](TokenId id) { return id != -1 && outside(id); });
  require_none(prefix_, "prefix token", outside);
  require_none(suffix_, "suffix token", outside);
}

void TokenizerTables::read_prefixes() {
  const auto nodes = section<PrefixNode>(TablesSection::kPrefixNodes);
  require(!nodes.empty() && nodes.size() % 256 == 0, "{} prefix nodes, not blocks of 256",
          nodes.size());
  const uint32_t num_ids = header_.num_ids;
  // A block of nodes is there whole, so what is at base xor byte is there if the base is.
  require_none(nodes, "prefix node", [&](const PrefixNode& node) {
    constexpr uint32_t kEnds = uint32_t{kPrefixToken | kPrefixWhole | kPrefixMerged} << 24;
    const bool leads_outside = node.base() >= nodes.size();
    const bool is_end = (node.id_and_flags & kEnds) != 0;
    const bool has_no_token = node.id() >= num_ids;
    return leads_outside | (is_end & has_no_token);
  });
  prefixes_ = PrefixTrie(nodes);
}

void TokenizerTables::read_merges() {
  const auto filter = section<uint64_t>(TablesSection::kMergeFilter);
  const auto slots = section<MergeSlot>(TablesSection::kMergeSlots);
  require(std::has_single_bit(filter.size()), "{} words of merge filter, not a power of two",
          filter.size());
  require(std::has_single_bit(slots.size()), "{} merge slots, not a power of two", slots.size());
  const uint32_t num_ids = header_.num_ids;
  require_none(slots, "merge slot", [num_ids](const MergeSlot& slot) {
    return (slot.rank != kNoId) & (slot.result >= num_ids);
  });
  merges_ = MergeTable(filter, slots, header_.merge_probes, header_.byte_ids);
  parts_ = section<TokenParts>(TablesSection::kTokenParts);
  require(parts_.size() == num_ids, "{} token parts for {} ids", parts_.size(), num_ids);
  require_none(parts_, "token part", [&](const TokenParts& parts) {
    return parts.order != 0 && (parts.left >= num_ids || parts.right >= num_ids);
  });
  // Parts are shorter, so going down from part to part ends.
  const auto size_of = [&](size_t id) { return token_offsets_[id + 1] - token_offsets_[id]; };
  for (size_t id = 0; id < num_ids; ++id) {
    const TokenParts& parts = parts_[id];
    require(parts.order == 0 || std::max(size_of(parts.left), size_of(parts.right)) < size_of(id),
            "token {} is merged from longer ones", id);
  }
}

void TokenizerTables::check_steps() const {
  using Kind = PretokenizerStep::Kind;
  require(!steps_.empty() && steps_.size() <= kMaxSteps, "{} steps, expected 1 to {}",
          steps_.size(), kMaxSteps);
  for (const StepRecord& step : steps_) {
    const bool is_last = &step == &steps_.back();
    const bool has_text = step.kind == static_cast<uint32_t>(Kind::kRegex) ||
                          step.kind == static_cast<uint32_t>(Kind::kLiteral);
    require(step.kind <= static_cast<uint32_t>(Kind::kByteLevel) &&
                step.behavior <= static_cast<uint32_t>(PretokenizerStep::Behavior::kContiguous) &&
                is_last == (step.kind == static_cast<uint32_t>(Kind::kByteLevel)),
            "step {} is of kind {} and behavior {}", &step - steps_.data(), step.kind,
            step.behavior);
    require(step.text_offset <= step_text_.size() &&
                step.text_size <= step_text_.size() - step.text_offset &&
                step.text_size <= kMaxPatternLength && has_text == (step.text_size != 0) &&
                !find_invalid_utf8(step_text_.substr(step.text_offset, step.text_size)),
            "step {} has its pattern at {} with {} bytes", &step - steps_.data(), step.text_offset,
            step.text_size);
  }
}

void TokenizerTables::check_added() const {
  require_none(added_, "added token",
               [&](const AddedRecord& added) { return added.id >= header_.num_ids; });
  require(trie_.size() >= 2, "{} trie nodes, fewer than the two roots", trie_.size());
  for (size_t i = 0; i < trie_.size(); ++i) {
    const TrieNode& node = trie_[i];
    // Children behind their parent: every walk ends.
    const bool good = node.num_children == 0
                          ? node.first_child == 0
                          : node.first_child > std::max<size_t>(i, 1) &&
                                node.first_child < trie_.size() &&
                                node.num_children <= trie_.size() - node.first_child;
    require(good, "children of trie node {} point outside", i);
    require(node.added == kNoId || (node.added < added_.size() && i > 1),
            "trie node {} points to added token {}", i, node.added);
  }
}

uint32_t TokenizerTables::find_token(std::string_view bytes, bool raw) const {
  uint32_t found = kNoId;
  if (raw) {  // They are few and hardly ever asked for.
    for (uint32_t id = 0; id < header_.num_ids && found == kNoId; ++id) {
      if ((token_flags_[id] & kTokenRaw) != 0 && token_bytes(id) == bytes) found = id;
    }
    return found;
  }
  prefixes_.walk(bytes, [&](const PrefixNode& node, size_t size) {
    if (size == bytes.size() && (node.flags() & kPrefixToken) != 0) found = node.id();
  });
  return found;
}

std::vector<PretokenizerStep> TokenizerTables::steps() const {
  std::vector<PretokenizerStep> steps;
  for (const StepRecord& record : steps_) {
    steps.push_back(
        {.kind = static_cast<PretokenizerStep::Kind>(record.kind),
         .behavior = static_cast<PretokenizerStep::Behavior>(record.behavior),
         .invert = (record.flags & kStepInvert) != 0,
         .add_prefix_space = (record.flags & kStepPrefixSpace) != 0,
         .use_regex = (record.flags & kStepUseRegex) != 0,
         .pattern = std::string(step_text_.substr(record.text_offset, record.text_size))});
  }
  return steps;
}

}  // namespace trtmc
