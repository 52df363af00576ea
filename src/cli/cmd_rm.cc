#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "bundle/bundle.h"
#include "cli/commands.h"
#include "cli/option_values.h"
#include "hub/cache_paths.h"
#include "hub/cached_models.h"
#include "hub/hub_settings.h"

namespace trtmc {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShortestCommit = 7;

// What is to be removed, and what a user has to be told of it.
struct Target {
  std::string description;
  CacheRemoval removal;
  fs::path locks;  // Empty for a bundle.
};

Target bundle_target(const fs::path& path) {
  if (!is_bundle_file(path)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: neither a bundle nor a model in the cache", path.string()),
                "`trtmc rm` removes nothing else");
  }
  std::error_code ignored;
  return {path.string(), {{path}, fs::file_size(path, ignored)}, {}};
}

// By branch or tag, else by commit or by the first digits of one.
std::string find_commit(const CachedModel& model, const std::string& revision) {
  std::vector<std::string> commits;
  for (const CachedRevision& cached : model.revisions) {
    if (std::find(cached.refs.begin(), cached.refs.end(), revision) != cached.refs.end()) {
      return cached.commit;
    }
    if (revision.size() >= kShortestCommit && cached.commit.starts_with(revision)) {
      commits.push_back(cached.commit);
    }
  }
  if (commits.size() == 1) return commits.front();
  if (commits.size() > 1) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: {} commits begin with {}", model.id.str(), commits.size(), revision),
        "give more digits: `trtmc list --json` shows them all");
  }
  throw Error(ErrorCode::kNotFound,
              fmt::format("{}: the cache has no revision {}", model.id.str(), revision),
              "`trtmc list` shows what there is");
}

std::optional<Target> cached_target(const std::string& text) {
  if (!parse_hub_id(std::string_view(text).substr(0, text.find('@')))) return {};
  const HubSource source = parse_hub_source(text);
  const fs::path cache = hub_cache_folder(process_environment);
  for (const CachedModel& model : cached_models(cache)) {
    if (model.id != source.id) continue;
    const fs::path locks = CachePaths(cache, model.id).locks();
    if (source.revision.empty()) {
      return Target{fmt::format("{} ({} revision{})", model.id.str(), model.revisions.size(),
                                model.revisions.size() == 1 ? "" : "s"),
                    plan_removal(model, ""), locks};
    }
    const std::string commit = find_commit(model, source.revision);
    return Target{fmt::format("{}@{}", model.id.str(), commit), plan_removal(model, commit), locks};
  }
  return {};
}

Target find_target(const std::string& text) {
  std::error_code ignored;
  if (fs::is_regular_file(text, ignored)) return bundle_target(text);
  if (auto target = cached_target(text)) return *std::move(target);
  if (fs::exists(text, ignored)) return bundle_target(text);
  throw Error(ErrorCode::kNotFound,
              fmt::format("{}: no such bundle, and no such model in the cache", text),
              "`trtmc list` shows what there is");
}

bool confirmed(const Target& target, Console& console) {
  if (isatty(STDIN_FILENO) != 1 || !console.err_is_terminal()) {
    throw Error(ErrorCode::kInvalidArgument, "nobody can be asked: this is no terminal",
                "--yes removes without asking");
  }
  console.note(
      fmt::format("remove {}, {}? [y/N] ", target.description, format_bytes(target.removal.bytes)));
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace

void execute(const RmCommand& command, Console& console) {
  console.configure_log(command.log);
  const Target target = find_target(command.target);
  if (!command.yes && !confirmed(target, console)) return console.note("nothing was removed\n");
  with_context(command.target, [&] { remove_from_cache(target.removal, target.locks); });
  if (console.quiet()) return;
  console.note(fmt::format("removed {}, {} freed\n", target.description,
                           format_bytes(target.removal.bytes)));
}

}  // namespace trtmc
