#include "hub/hub_id.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace trtmc {
namespace {

constexpr size_t kMaxPart = 96;
constexpr size_t kMaxRevision = 250;
constexpr size_t kCommitDigits = 40;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_part(std::string_view part) {
  const auto is_end = [](char c) { return is_letter_or_digit(c) || c == '_'; };
  return !part.empty() && part.size() <= kMaxPart && is_end(part.front()) && is_end(part.back()) &&
         std::all_of(part.begin(), part.end(), [](char c) {
           return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

std::optional<HubId> parse_hub_id(std::string_view text) {
  if (text.find("--") != text.npos || text.find("..") != text.npos || text.ends_with(".git")) {
    return {};
  }
  const size_t slash = text.find('/');
  const std::string_view owner = slash == text.npos ? "" : text.substr(0, slash);
  const std::string_view name = slash == text.npos ? text : text.substr(slash + 1);
  if ((slash != text.npos && !is_part(owner)) || !is_part(name)) return {};
  return HubId{std::string(owner), std::string(name)};
}

bool is_revision(std::string_view text) {
  if (text.empty() || text.size() > kMaxRevision || text.find("..") != text.npos) return false;
  constexpr std::string_view kOthers = "-_.+=@#,/";
  char before = '/';
  for (const char c : text) {
    if (!is_letter_or_digit(c) && kOthers.find(c) == kOthers.npos) return false;
    if (before == '/' && (c == '/' || c == '.')) return false;
    before = c;
  }
  return before != '/';
}

bool is_commit(std::string_view text) {
  return text.size() == kCommitDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

HubSource parse_hub_source(std::string_view text) {
  const size_t at = text.find('@');
  const std::optional<HubId> id = parse_hub_id(text.substr(0, at));
  if (!id) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\": not the id of a model on the hub", text),
                "an id is OWNER/NAME or OWNER/NAME@REVISION, such as HuggingFaceTB/SmolLM3-3B");
  }
  HubSource source{*id, ""};
  if (at == text.npos) return source;
  source.revision = text.substr(at + 1);
  if (!is_revision(source.revision)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\": not the name of a revision", source.revision),
                "a revision is a branch, a tag, or a commit of forty hexadecimal digits");
  }
  return source;
}

}  // namespace trtmc
