// What a model is called on the Hugging Face hub, and which state of it is meant.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace trtmc {

// "HuggingFaceTB/SmolLM3-3B", or a name alone for the hub's oldest models.
struct HubId {
  std::string owner;  // Empty for a name alone.
  std::string name;

  std::string str() const { return owner.empty() ? name : owner + "/" + name; }
  bool operator==(const HubId&) const = default;
};

// A model and one of its revisions: a branch, a tag, "refs/pr/3" or a commit.
struct HubSource {
  HubId id;
  std::string revision;  // Empty: not said, which means the branch main.

  bool operator==(const HubSource&) const = default;
};

// The hub's own rules (huggingface_hub, utils/_validators.py): letters, digits, "-", "_", ".", at
// most 96 a part; no part begins or ends with "-" or "."; nowhere "--", ".." or a final ".git".
// Nothing for a text that breaks them.
std::optional<HubId> parse_hub_id(std::string_view text);

// Whether `text` is a revision's name that can also be a path below a folder: parts between
// slashes of letters, digits and "-_.+=@#,", none that begins with ".", nowhere "..", at most 250
// bytes.
bool is_revision(std::string_view text);

// Forty lower-case hexadecimal digits.
bool is_commit(std::string_view text);

// As much of a commit as people are shown; all of a shorter text.
inline std::string_view short_commit(std::string_view commit) { return commit.substr(0, 12); }

// "ID" or "ID@REVISION". Throws kInvalidArgument.
HubSource parse_hub_source(std::string_view text);

}  // namespace trtmc
