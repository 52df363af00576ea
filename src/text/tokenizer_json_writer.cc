#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer_json.h"
#include "text/tokenizer_tables.h"

namespace trtmc {
namespace {

using Kind = PretokenizerStep::Kind;

constexpr const char* kBehaviors[] = {"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext",
                                      "Contiguous"};

bool has_flag(uint32_t flags, uint32_t flag) { return (flags & flag) != 0; }

Json typed(const char* type) {
  Json json;
  json.set("type", type);
  return json;
}

Json byte_level(bool add_prefix_space, bool use_regex) {
  Json json = typed("ByteLevel");
  json.set("add_prefix_space", add_prefix_space);
  json.set("trim_offsets", true);
  json.set("use_regex", use_regex);
  return json;
}

class TokenizerWriter {
 public:
  explicit TokenizerWriter(const TokenizerTables& tables) : tables_(tables) {}

  Json write() const {
    Json root;
    root.set("version", "1.0");
    root.set("truncation", nullptr);
    root.set("padding", nullptr);
    root.set("added_tokens", added_tokens());
    root.set("normalizer", nullptr);
    root.set("pre_tokenizer", pretokenizer());
    root.set("post_processor", processor());
    root.set("decoder", byte_level(true, true));
    root.set("model", model());
    return root;
  }

 private:
  std::string text(uint32_t id) const {
    const std::string_view bytes = tables_.token_bytes(id);
    const bool raw = has_flag(tables_.token_flags(id), kTokenRaw);
    return raw ? std::string(bytes) : alphabet_of_bytes(bytes);
  }

  // Whether each added token is looked for in what is left after the others: by the root of the
  // trie that its text hangs from. Children come after their parent.
  std::vector<bool> normalized() const {
    const auto trie = tables_.trie();
    std::vector<bool> below_second(trie.size());
    below_second[1] = true;
    std::vector<bool> of_added(tables_.added_tokens().size());
    for (size_t i = 0; i < trie.size(); ++i) {
      const TrieNode& node = trie[i];
      if (node.added != kNoId) of_added[node.added] = below_second[i];
      for (size_t child = 0; child < node.num_children; ++child) {
        below_second[node.first_child + child] = below_second[i];
      }
    }
    return of_added;
  }

  Json added_tokens() const {
    const std::vector<bool> is_normalized = normalized();
    Json::Array list;
    for (size_t i = 0; i < is_normalized.size(); ++i) {
      const AddedRecord& added = tables_.added_tokens()[i];
      Json token;
      token.set("id", int64_t{added.id});
      token.set("content", text(added.id));
      token.set("single_word", has_flag(added.flags, kAddedSingleWord));
      token.set("lstrip", has_flag(added.flags, kAddedStripLeft));
      token.set("rstrip", has_flag(added.flags, kAddedStripRight));
      token.set("normalized", bool{is_normalized[i]});
      token.set("special", has_flag(tables_.token_flags(added.id), kTokenSpecial));
      list.push_back(std::move(token));
    }
    return list;
  }

  static Json step_json(const PretokenizerStep& step) {
    if (step.kind == Kind::kByteLevel) return byte_level(step.add_prefix_space, step.use_regex);
    if (step.kind == Kind::kNumbers) {
      Json digits = typed("Digits");
      digits.set("individual_digits", step.behavior == PretokenizerStep::Behavior::kIsolated);
      return digits;
    }
    Json pattern;
    pattern.set(step.kind == Kind::kRegex ? "Regex" : "String", step.pattern);
    Json split = typed("Split");
    split.set("pattern", std::move(pattern));
    split.set("behavior", kBehaviors[static_cast<size_t>(step.behavior)]);
    split.set("invert", step.invert);
    return split;
  }

  Json pretokenizer() const {
    Json::Array steps;
    for (const PretokenizerStep& step : tables_.steps()) steps.push_back(step_json(step));
    if (steps.size() == 1) return std::move(steps.front());
    Json sequence = typed("Sequence");
    sequence.set("pretokenizers", std::move(steps));
    return sequence;
  }

  // ByteLevel changes no id; a template puts tokens around a text.
  Json processor() const {
    if (tables_.template_prefix().empty() && tables_.template_suffix().empty()) {
      return byte_level(true, true);
    }
    Json::Array single;
    Json names;
    const auto add = [&](std::span<const TokenId> ids) {
      for (const TokenId id : ids) {
        const std::string name = text(static_cast<uint32_t>(id));
        single.push_back(piece("SpecialToken", name));
        Json token;
        token.set("id", name);
        token.set("ids", Json::Array{id});
        token.set("tokens", Json::Array{name});
        names.set(name, std::move(token));
      }
    };
    add(tables_.template_prefix());
    single.push_back(piece("Sequence", "A"));
    add(tables_.template_suffix());
    Json::Array pair = single;
    pair.push_back(piece("Sequence", "B"));
    Json json = typed("TemplateProcessing");
    json.set("single", std::move(single));
    json.set("pair", std::move(pair));
    json.set("special_tokens", std::move(names));
    return json;
  }

  static Json piece(const char* kind, const std::string& id) {
    Json inner;
    inner.set("id", id);
    inner.set("type_id", 0);
    Json outer;
    outer.set(kind, std::move(inner));
    return outer;
  }

  // A word that is in the vocabulary becomes its token although no merges lead there.
  bool ignores_merges() const {
    bool ignores = false;
    for (uint32_t id = 0; id < tables_.num_ids() && !ignores; ++id) {
      const std::string_view bytes = tables_.token_bytes(id);
      tables_.prefixes().walk(bytes, [&](const PrefixNode& node, size_t size) {
        if (size != bytes.size() || node.id() != id) return;
        ignores = has_flag(node.flags(), kPrefixWhole) && !has_flag(node.flags(), kPrefixMerged);
      });
    }
    return ignores;
  }

  Json vocabulary() const {
    Json::Object vocabulary;
    for (uint32_t id = 0; id < tables_.num_ids(); ++id) {
      if (has_flag(tables_.token_flags(id), kTokenOutOfModel)) continue;
      vocabulary.emplace_back(text(id), int64_t{id});
    }
    return vocabulary;
  }

  Json merges() const {
    std::vector<MergeSlot> slots;
    for (const MergeSlot& slot : tables_.merges().slots()) {
      if (slot.rank == kNoId) continue;
      if (std::max(slot.left, slot.right) >= tables_.num_ids()) {
        throw Error(ErrorCode::kCorrupt, "tokenizer tables: a merge of tokens that are not there");
      }
      slots.push_back(slot);
    }
    std::sort(slots.begin(), slots.end(),
              [](const MergeSlot& a, const MergeSlot& b) { return a.rank < b.rank; });
    Json::Array merges;
    for (const MergeSlot& slot : slots) {
      merges.emplace_back(Json::Array{text(slot.left), text(slot.right)});
    }
    return merges;
  }

  Json model() const {
    Json json = typed("BPE");
    json.set("dropout", nullptr);
    json.set("unk_token", nullptr);
    json.set("continuing_subword_prefix", nullptr);
    json.set("end_of_word_suffix", nullptr);
    json.set("fuse_unk", false);
    json.set("byte_fallback", false);
    json.set("ignore_merges", ignores_merges());
    json.set("vocab", vocabulary());
    json.set("merges", merges());
    return json;
  }

  const TokenizerTables& tables_;
};

}  // namespace

std::string decompile_tokenizer(std::span<const std::byte> tables) {
  // Sections of a bundle lie at multiples of 4096 bytes; other memory may not be aligned.
  std::vector<uint64_t> aligned((tables.size() + 7) / 8);
  if (!tables.empty()) std::memcpy(aligned.data(), tables.data(), tables.size());
  const TokenizerTables view(std::as_bytes(std::span(aligned)).first(tables.size()));
  return TokenizerWriter(view).write().dump(2);
}

}  // namespace trtmc
