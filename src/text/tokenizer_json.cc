#include "text/tokenizer_json.h"

#include <fmt/format.h>

#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer_spec.h"
#include "text/tokenizer_tables.h"
#include "text/unicode_tables.h"

namespace trtmc {
namespace {

constexpr size_t kMaxJson = size_t{1} << 28;
// Of pieces and of tokens around a text: a name of a few bytes may stand for many tokens.
constexpr size_t kMaxTemplate = 1024;

[[noreturn]] void unsupported(const JsonCursor& at, std::string_view what) {
  throw Error(ErrorCode::kUnsupported, fmt::format("{}: {} is not supported", at.path(), what));
}

bool flag_or(const JsonCursor& object, std::string_view key, bool absent) {
  const auto found = object.find_set(key);
  return found ? found->boolean() : absent;
}

// Reads the parts of a tokenizer.json in the order in which they depend on each other.
class TokenizerReader {
 public:
  explicit TokenizerReader(const Json& root) : root_(root) {}

  TokenizerSpec read() {
    if (root_.at("version").string() != "1.0") unsupported(root_.at("version"), "another version");
    // Truncation and padding are not read: Transformers switches them off for a plain call.
    if (const auto normalizer = root_.find_set("normalizer")) {
      unsupported(*normalizer, fmt::format("normalizer {}", normalizer->at("type").string()));
    }
    read_model(root_.at("model"));
    if (const auto added = root_.find_set("added_tokens")) read_added(*added);
    const auto pretokenizer = root_.find_set("pre_tokenizer");
    if (!pretokenizer) unsupported(root_, "a tokenizer without a pre_tokenizer ByteLevel");
    read_pretokenizer(*pretokenizer);
    if (spec_.steps.back().kind != PretokenizerStep::Kind::kByteLevel) {
      unsupported(*pretokenizer, "a pre_tokenizer that does not end with ByteLevel");
    }
    const auto decoder = root_.find_set("decoder");
    if (!decoder) unsupported(root_, "a tokenizer without a decoder ByteLevel");
    if (decoder->at("type").string() != "ByteLevel") {
      unsupported(*decoder, fmt::format("decoder {}", decoder->at("type").string()));
    }
    if (const auto processor = root_.find_set("post_processor")) read_processor(*processor);
    return std::move(spec_);
  }

 private:
  void read_model(const JsonCursor& model) {
    if (model.at("type").string() != "BPE") {
      unsupported(model, fmt::format("model {}", model.at("type").string()));
    }
    for (const char* key : {"byte_fallback", "fuse_unk"}) {
      if (flag_or(model, key, false)) unsupported(model.at(key), "true");
    }
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      const auto text = model.find_set(key);
      if (text && !text->string().empty()) unsupported(*text, "a text");
    }
    if (const auto dropout = model.find_set("dropout"); dropout && dropout->number() != 0) {
      unsupported(*dropout, "a random tokenisation");
    }
    spec_.ignore_merges = flag_or(model, "ignore_merges", false);
    read_vocabulary(model.at("vocab"));
    read_merges(model.at("merges"));
    if (const auto unknown = model.find_set("unk_token")) require_all_bytes(*unknown);
  }

  void read_vocabulary(const JsonCursor& vocab) {
    const Json::Object* members = vocab.json().object();
    if (members == nullptr)
      vocab.fail(fmt::format("{}, expected an object", vocab.json().kind_name()));
    if (members->empty()) vocab.fail("it is empty");
    if (members->size() > kMaxIds) {
      vocab.fail(fmt::format("{} tokens, more than {}", members->size(), kMaxIds));
    }
    std::vector<const std::string*> texts(members->size());
    for (const auto& [text, value] : *members) {
      const int64_t* id = value.integer();
      if (id == nullptr || *id < 0) {
        vocab.fail(fmt::format("the id of \"{}\" is {}, expected an integer from 0", text,
                               value.kind_name()));
      }
      if (static_cast<uint64_t>(*id) >= texts.size()) {
        vocab.fail(fmt::format("{} tokens, but \"{}\" has id {}: an id below it has no token",
                               texts.size(), text, *id));
      }
      const std::string*& slot = texts[static_cast<size_t>(*id)];
      if (slot != nullptr)
        vocab.fail(fmt::format("\"{}\" and \"{}\" both have id {}", *slot, text, *id));
      slot = &text;
    }
    spec_.vocabulary.reserve(texts.size());
    ids_.reserve(texts.size());
    for (size_t id = 0; id < texts.size(); ++id) {
      spec_.vocabulary.push_back(*texts[id]);
      ids_.emplace(*texts[id], static_cast<TokenId>(id));
    }
  }

  void read_merges(const JsonCursor& merges) {
    const Json::Array* pairs = merges.json().array();
    if (pairs == nullptr)
      merges.fail(fmt::format("{}, expected an array", merges.json().kind_name()));
    if (pairs->size() > kMaxMerges) {
      merges.fail(fmt::format("{} merges, more than {}", pairs->size(), kMaxMerges));
    }
    spec_.merges.reserve(pairs->size());
    std::string joined;
    for (size_t i = 0; i < pairs->size(); ++i) {
      // The first line of a merges.txt may have come along.
      const std::string* line = (*pairs)[i].string();
      if (line != nullptr && line->starts_with("#version")) continue;
      const auto [left, right] = split_merge(merges, i, (*pairs)[i]);
      joined.assign(left).append(right);
      spec_.merges.push_back({id_in_merge(merges, i, left), id_in_merge(merges, i, right),
                              id_in_merge(merges, i, joined)});
    }
  }

  static std::pair<std::string_view, std::string_view> split_merge(const JsonCursor& merges,
                                                                   size_t index,
                                                                   const Json& merge) {
    if (const std::string* line = merge.string()) {
      const size_t space = line->find(' ');
      if (space != std::string::npos && line->find(' ', space + 1) == std::string::npos) {
        const std::string_view text = *line;
        return {text.substr(0, space), text.substr(space + 1)};
      }
    }
    const Json::Array* pair = merge.array();
    if (pair != nullptr && pair->size() == 2) {
      const std::string *left = (*pair)[0].string(), *right = (*pair)[1].string();
      if (left != nullptr && right != nullptr) return {*left, *right};
    }
    merges.fail(fmt::format("merge {} is neither \"left right\" nor [\"left\", \"right\"]", index));
  }

  TokenId id_in_merge(const JsonCursor& merges, size_t index, std::string_view text) const {
    const auto found = ids_.find(text);
    if (found != ids_.end()) return found->second;
    merges.fail(fmt::format("merge {} names \"{}\", which is not in the vocabulary", index, text));
  }

  // An unknown token never comes up where every byte has a symbol.
  void require_all_bytes(const JsonCursor& unknown) const {
    size_t count = 0;
    for (const std::string& text : spec_.vocabulary) {
      const auto bytes = bytes_of_alphabet(text);
      if (bytes && bytes->size() == 1) ++count;
    }
    if (count != 256) {
      unsupported(unknown, fmt::format("an unknown token where {} of the 256 bytes have no symbol",
                                       256 - count));
    }
  }

  void read_added(const JsonCursor& added_tokens) {
    std::unordered_map<std::string, TokenId, TextHash> seen;
    for (const JsonCursor& added : added_tokens.elements()) {
      AddedTokenSpec token{static_cast<TokenId>(added.at("id").integer_in(0, kMaxIds - 1)),
                           added.at("content").string(),
                           added.at("single_word").boolean(),
                           added.at("lstrip").boolean(),
                           added.at("rstrip").boolean(),
                           added.at("normalized").boolean(),
                           added.at("special").boolean()};
      if (token.content.empty() || token.content.size() > kMaxAddedLength) {
        added.at("content").fail(
            fmt::format("{} bytes, expected 1 to {}", token.content.size(), kMaxAddedLength));
      }
      if (!seen.emplace(token.content, token.id).second) {
        added.fail(fmt::format("\"{}\" is added twice", token.content));
      }
      // `tokenizers` gives an added token the model's id for it, else the next free id, whatever
      // the file says; where the two differ, the file does not mean what it does.
      const auto in_model = ids_.find(token.content);
      const TokenId given = in_model != ids_.end() ? in_model->second : next_id();
      if (token.id != given) {
        added.fail(fmt::format("\"{}\" has id {}, but is given id {} when it is loaded",
                               token.content, token.id, given));
      }
      if (in_model == ids_.end()) ++num_new_;
      spec_.added.push_back(std::move(token));
    }
  }

  TokenId next_id() const { return static_cast<TokenId>(spec_.vocabulary.size() + num_new_); }
  size_t num_ids() const { return spec_.vocabulary.size() + num_new_; }

  void read_pretokenizer(const JsonCursor& pretokenizer) {
    const std::string& type = pretokenizer.at("type").string();
    if (type == "Sequence") {
      for (const JsonCursor& step : pretokenizer.at("pretokenizers").elements()) {
        read_pretokenizer(step);
      }
      if (spec_.steps.empty()) unsupported(pretokenizer, "an empty Sequence");
      return;
    }
    if (!spec_.steps.empty() && spec_.steps.back().kind == PretokenizerStep::Kind::kByteLevel) {
      unsupported(pretokenizer, fmt::format("{} after ByteLevel", type));
    }
    if (spec_.steps.size() == kMaxSteps)
      unsupported(pretokenizer, fmt::format("step {}", kMaxSteps));
    spec_.steps.push_back(read_step(pretokenizer, type));
  }

  static PretokenizerStep read_step(const JsonCursor& step, const std::string& type) {
    using Kind = PretokenizerStep::Kind;
    using Behavior = PretokenizerStep::Behavior;
    if (type == "ByteLevel") {
      return {.kind = Kind::kByteLevel,
              .add_prefix_space = step.at("add_prefix_space").boolean(),
              .use_regex = flag_or(step, "use_regex", true)};
    }
    if (type == "Digits") {
      return {.kind = Kind::kNumbers,
              .behavior = step.at("individual_digits").boolean() ? Behavior::kIsolated
                                                                 : Behavior::kContiguous};
    }
    if (type == "Split") return read_split(step);
    unsupported(step, fmt::format("pre_tokenizer {}", type));
  }

  static PretokenizerStep read_split(const JsonCursor& split) {
    const JsonCursor pattern = split.at("pattern");
    const auto regex = pattern.find("Regex");
    const JsonCursor text = regex ? *regex : pattern.at("String");
    if (text.string().empty()) unsupported(text, "an empty pattern");
    if (text.string().size() > kMaxPatternLength) {
      unsupported(text, fmt::format("a pattern of {} bytes", text.string().size()));
    }
    PretokenizerStep step{
        .kind = regex ? PretokenizerStep::Kind::kRegex : PretokenizerStep::Kind::kLiteral,
        .behavior = read_behavior(split.at("behavior")),
        .invert = split.at("invert").boolean(),
        .pattern = text.string()};
    with_context(text.path(), [&] { SplitPattern check(step); });
    return step;
  }

  static PretokenizerStep::Behavior read_behavior(const JsonCursor& behavior) {
    constexpr std::string_view kNames[] = {"Isolated", "Removed", "MergedWithPrevious",
                                           "MergedWithNext", "Contiguous"};
    for (size_t i = 0; i < std::size(kNames); ++i) {
      if (behavior.string() == kNames[i]) return static_cast<PretokenizerStep::Behavior>(i);
    }
    behavior.fail(fmt::format("\"{}\" is no behavior of a split", behavior.string()));
  }

  void read_processor(const JsonCursor& processor) {
    const std::string& type = processor.at("type").string();
    if (type == "ByteLevel") return;  // Trims offsets, which we don't give.
    if (type == "Sequence") {
      for (const JsonCursor& part : processor.at("processors").elements()) read_processor(part);
      return;
    }
    if (type != "TemplateProcessing")
      unsupported(processor, fmt::format("post_processor {}", type));
    if (has_template_) unsupported(processor, "a second TemplateProcessing");
    has_template_ = true;
    read_template(processor);
  }

  void read_template(const JsonCursor& processor) {
    bool has_text = false;
    const std::vector<JsonCursor> pieces = processor.at("single").elements();
    if (pieces.size() > kMaxTemplate) processor.at("single").fail("more pieces than a text needs");
    for (const JsonCursor& piece : pieces) {
      if (const auto sequence = piece.find("Sequence")) {
        if (has_text || sequence->at("id").string() != "A") {
          unsupported(piece, "a template with more than the one text");
        }
        has_text = true;
        continue;
      }
      const std::string& name = piece.at("SpecialToken").at("id").string();
      for (const JsonCursor& id : processor.at("special_tokens").at(name).at("ids").elements()) {
        const auto value = id.integer_in(0, static_cast<int64_t>(num_ids()) - 1);
        (has_text ? spec_.suffix : spec_.prefix).push_back(static_cast<TokenId>(value));
      }
      if (spec_.prefix.size() + spec_.suffix.size() > kMaxTemplate) {
        piece.fail("more tokens than a text needs around it");
      }
    }
    if (!has_text) unsupported(processor.at("single"), "a template without the text");
  }

  JsonCursor root_;
  TokenizerSpec spec_;
  std::unordered_map<std::string_view, TokenId, TextHash>
      ids_;  // Of the model; views into the JSON.
  bool has_template_ = false;
  size_t num_new_ = 0;  // Added tokens that the model lacks.
};

}  // namespace

std::vector<std::byte> compile_tokenizer(std::string_view tokenizer_json) {
  if (tokenizer_json.size() > kMaxJson) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} bytes, more than the {} that a tokenizer.json may have",
                            tokenizer_json.size(), kMaxJson));
  }
  const Json root = Json::parse(tokenizer_json);
  return write_tokenizer_tables(TokenizerReader(root).read());
}

std::string_view tokenizer_unicode_version() { return kUnicodeVersion; }

}  // namespace trtmc
