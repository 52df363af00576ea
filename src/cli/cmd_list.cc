#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>

#include "base/utf8.h"
#include "bundle/bundle.h"
#include "cli/commands.h"
#include "cli/option_values.h"
#include "hub/cached_models.h"
#include "hub/hub_settings.h"

namespace trtmc {
namespace {

namespace fs = std::filesystem;

struct ListedBundle {
  fs::path path;
  uint64_t bytes = 0;
  std::string source = {}, revision = {}, quantization = {};
  std::string error = {};  // Why it can't be read, or empty.
};

ListedBundle read_bundle(const fs::path& path) {
  ListedBundle listed{.path = path};
  std::error_code ignored;
  listed.bytes = fs::file_size(path, ignored);
  try {
    const Bundle bundle(path);
    listed.source = bundle.manifest().source;
    listed.revision = bundle.manifest().source_revision;
    listed.quantization = bundle.manifest().quantization;
  } catch (const Error& error) {
    listed.error = error.what();
  }
  return listed;
}

std::vector<ListedBundle> bundles_in(const fs::path& folder) {
  std::vector<ListedBundle> bundles;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().extension() != ".trtmc" || !entry->is_regular_file(ignored)) continue;
    bundles.push_back(read_bundle(folder == "." ? entry->path().filename() : entry->path()));
  }
  if (error) {
    const bool absent = error == std::errc::no_such_file_or_directory;
    throw Error(absent ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument,
                fmt::format("{}: can't be listed: {}", folder.string(), error.message()));
  }
  std::sort(bundles.begin(), bundles.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return bundles;
}

Json to_json(const CachedModel& model) {
  Json::Array revisions;
  for (const CachedRevision& revision : model.revisions) {
    Json json;
    json.set("commit", revision.commit);
    json.set("refs", Json::Array(revision.refs.begin(), revision.refs.end()));
    json.set("folder", revision.folder.string());
    json.set("files", uint64_t{revision.num_files});
    json.set("bytes", revision.bytes);
    json.set("whole", revision.whole);
    revisions.push_back(std::move(json));
  }
  Json json;
  json.set("id", model.id.str());
  json.set("bytes", model.bytes);
  json.set("unfinished_bytes", model.partial_bytes);
  json.set("revisions", std::move(revisions));
  return json;
}

Json to_json(const ListedBundle& bundle) {
  Json json;
  json.set("path", bundle.path.string());
  json.set("bytes", bundle.bytes);
  if (!bundle.error.empty()) {
    json.set("error", bundle.error);
    return json;
  }
  json.set("source", bundle.source);
  json.set("source_revision", bundle.revision);
  json.set("quantization", bundle.quantization);
  return json;
}

template <typename T>
Json::Array all_to_json(const std::vector<T>& values) {
  Json::Array array;
  for (const T& value : values) array.push_back(to_json(value));
  return array;
}

// Rows of cells under a heading, each column as wide as its widest cell; the last one runs free.
using Rows = std::vector<std::vector<std::string>>;

// A file's name may hold a line break, which would begin a row of its own.
std::string in_one_line(std::string cell) {
  std::replace_if(cell.begin(), cell.end(), is_ascii_control, '?');
  return cell;
}

std::string to_table(Rows rows) {
  for (auto& row : rows) std::transform(row.begin(), row.end(), row.begin(), in_one_line);
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i) text += fmt::format("{:<{}}  ", row[i], widths[i]);
    text += row.back() + "\n";
  }
  return text;
}

std::string models_text(const std::vector<CachedModel>& models) {
  Rows rows{{"checkpoint", "commit", "size", "revision"}};
  for (const CachedModel& model : models) {
    for (const CachedRevision& revision : model.revisions) {
      rows.push_back({model.id.str(), std::string(short_commit(revision.commit)),
                      format_bytes(revision.bytes),
                      revision.whole ? fmt::format("{}", fmt::join(revision.refs, ", "))
                                     : "files are missing"});
    }
    if (model.partial_bytes > 0) {
      rows.push_back({model.id.str(), "", format_bytes(model.partial_bytes), "unfinished"});
    }
  }
  return rows.size() == 1 ? "no checkpoints in the cache\n" : to_table(rows);
}

std::string bundles_text(const std::vector<ListedBundle>& bundles, const fs::path& folder) {
  if (bundles.empty()) return fmt::format("no bundles in {}\n", folder.string());
  Rows rows{{"bundle", "weights", "size", "source"}};
  for (const ListedBundle& bundle : bundles) {
    const std::string source = bundle.revision.empty() ? bundle.source
                                                       : fmt::format("{}@{}", bundle.source,
                                                                     short_commit(bundle.revision));
    rows.push_back({bundle.path.string(), bundle.quantization, format_bytes(bundle.bytes),
                    bundle.error.empty() ? source : bundle.error});
  }
  return to_table(rows);
}

}  // namespace

void execute(const ListCommand& command, Console& console) {
  console.configure_log(command.log);
  const std::vector<CachedModel> models = cached_models(hub_cache_folder(process_environment));
  const std::vector<ListedBundle> bundles = bundles_in(command.folder);
  if (!command.json) {
    return console.print(models_text(models) + "\n" + bundles_text(bundles, command.folder));
  }
  Json json;
  json.set("checkpoints", all_to_json(models));
  json.set("bundles", all_to_json(bundles));
  console.print_json(json);
}

}  // namespace trtmc
