#include "base/clock.h"
#include "cli/commands.h"
#include "cli/hub_source.h"

namespace trtmc {
namespace {

Json file_json(const RepositoryFile& file) {
  Json json;
  json.set("name", file.name);
  json.set("bytes", file.bytes);
  json.set(file.digest.kind == FileDigest::Kind::kSha256 ? "sha256" : "git_sha1", file.digest.hex);
  return json;
}

Json pull_json(const HubSource& source, const Snapshot& snapshot, double seconds) {
  Json json;
  json.set("id", source.id.str());
  json.set("revision", source.revision.empty() ? "main" : source.revision);
  json.set("commit", snapshot.commit);
  json.set("folder", snapshot.folder.string());
  json.set("bytes", snapshot.bytes);
  json.set("downloaded_bytes", snapshot.downloaded_bytes);
  json.set("seconds", seconds);
  Json::Array files;
  for (const RepositoryFile& file : snapshot.files) files.push_back(file_json(file));
  json.set("files", std::move(files));
  return json;
}

}  // namespace

void execute(const PullCommand& command, Console& console) {
  console.configure_log(command.log);
  const SteadyTime start = std::chrono::steady_clock::now();
  const Snapshot snapshot = pull(command.source, console);
  if (!command.json) return console.print(snapshot.folder.string() + "\n");
  const double seconds = milliseconds_between(start, std::chrono::steady_clock::now()) / 1000;
  console.print_json(pull_json(command.source, snapshot, seconds));
}

}  // namespace trtmc
