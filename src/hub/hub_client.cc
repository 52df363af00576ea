#include "hub/hub_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "hub/url.h"

namespace trtmc {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDefaultRevision = "main";
constexpr size_t kMaxListingBytes = 8 << 20;
constexpr uint64_t kMaxConfigBytes = 16 << 20;

std::string revision_of(const HubSource& source) {
  return source.revision.empty() ? std::string(kDefaultRevision) : source.revision;
}

std::string name_of(const HubSource& source) {
  return source.revision.empty() ? source.id.str()
                                 : fmt::format("{}@{}", source.id.str(), source.revision);
}

// A full disk is found before the first byte, not after the last one that fits.
void check_space(const CachePaths& paths, std::span<const RepositoryFile> missing) {
  std::error_code error;
  uint64_t needed = 0;
  for (const RepositoryFile& file : missing) {
    needed += file.bytes;
    const uint64_t begun = fs::file_size(paths.partial(file.digest), error);
    if (!error) needed -= std::min(file.bytes, begun);  // An earlier run has reserved it.
  }
  const fs::space_info space = fs::space(paths.repository(), error);
  if (error || space.available >= needed) return;
  throw Error(ErrorCode::kExhausted,
              fmt::format("{}: {} bytes are free, but {} are needed", paths.repository().string(),
                          space.available, needed),
              "free some, or set HF_HUB_CACHE to a folder on another disk");
}

// From its blob, or from the snapshot if that holds copies.
std::string read_config(const CachePaths& paths, const Snapshot& snapshot) {
  const auto config =
      std::find_if(snapshot.files.begin(), snapshot.files.end(),
                   [](const RepositoryFile& file) { return file.name == "config.json"; });
  return read_file(
      paths.has_blob(*config) ? paths.blob(config->digest) : snapshot.folder / config->name,
      kMaxConfigBytes);
}

}  // namespace

HubClient::HubClient(HubSettings settings, TransportFactory transports,
                     const DownloadOptions& options)
    : settings_(std::move(settings)), transports_(std::move(transports)), options_(options) {}

Snapshot HubClient::cached(const HubSource& source) const {
  return with_context(name_of(source), [&] {
    const CachePaths paths(settings_.cache, source.id);
    const auto commit = paths.cached_commit(revision_of(source));
    std::error_code ignored;
    if (!commit || !fs::exists(paths.snapshot(*commit) / "config.json", ignored)) {
      throw Error(ErrorCode::kNotFound,
                  fmt::format("not in the cache ({})", settings_.cache.string()),
                  settings_.offline ? "HF_HUB_OFFLINE is set: without it, `trtmc pull` downloads it"
                                    : fmt::format("`trtmc pull {}` downloads it", name_of(source)));
    }
    return Snapshot{*commit, paths.snapshot(*commit), {}, 0, 0};
  });
}

RepositoryListing HubClient::list(const HubSource& source, const std::string& revision,
                                  const CachePaths& paths, const std::stop_token& stop) const {
  HubConnection connection(transports_(), settings_.endpoint, settings_.token, stop);
  const std::string path = fmt::format("/api/models/{}/revision/{}?blobs=true",
                                       escape_url(source.id.str()), escape_url(revision, ""));
  try {
    RepositoryListing listing =
        parse_listing(connection.get_text(path, kMaxListingBytes, options_.retry));
    if (is_commit(revision) && listing.commit != revision) {
      throw Error(ErrorCode::kCorrupt,
                  fmt::format("the server answers with commit {}", listing.commit));
    }
    return listing;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound || !paths.cached_commit(revision)) throw;
    throw Error(error.code(), error.what(),
                "the cache has a copy: HF_HUB_OFFLINE=1 uses it without asking the server");
  }
}

Snapshot HubClient::pull(const HubSource& source, const PullObserver& observer,
                         const std::stop_token& stop) const {
  if (settings_.offline) return cached(source);
  return with_context(name_of(source), [&] {
    const CachePaths paths(settings_.cache, source.id);
    const std::string revision = revision_of(source);
    const RepositoryListing listing = list(source, revision, paths, stop);
    Snapshot snapshot{listing.commit, paths.snapshot(listing.commit), files_for_build(listing), 0,
                      0};
    std::vector<RepositoryFile> absent, missing;
    for (const RepositoryFile& file : snapshot.files) {
      snapshot.bytes += file.bytes;
      if (paths.has_in_snapshot(snapshot.commit, file)) continue;
      absent.push_back(file);
      if (paths.has_blob(file)) continue;
      missing.push_back(file);
      snapshot.downloaded_bytes += file.bytes;
    }
    download(source, paths, snapshot, std::move(missing), observer, stop);
    for (const RepositoryFile& file : absent) {
      paths.add_to_snapshot(snapshot.commit, file, settings_.symlinks);
    }
    paths.write_ref(revision, snapshot.commit);
    return snapshot;
  });
}

void HubClient::download(const HubSource& source, const CachePaths& paths, const Snapshot& snapshot,
                         std::vector<RepositoryFile> missing, const PullObserver& observer,
                         const std::stop_token& stop) const {
  make_folder(paths.repository() / "blobs");
  check_space(paths, missing);
  if (observer.on_resolved) observer.on_resolved(snapshot);
  const auto weights = std::stable_partition(
      missing.begin(), missing.end(),
      [](const RepositoryFile& file) { return !file.name.ends_with(".safetensors"); });
  const ConnectionFactory connect = [this](std::stop_token its_stop) {
    return std::make_unique<HubConnection>(transports_(), settings_.endpoint, settings_.token,
                                           std::move(its_stop));
  };
  const std::string folder =
      fmt::format("/{}/resolve/{}/", escape_url(source.id.str()), snapshot.commit);
  uint64_t done_before = 0;
  const DownloadProgress progress = [&](uint64_t done, uint64_t) {
    if (observer.on_progress) observer.on_progress(done_before + done, snapshot.downloaded_bytes);
  };
  download_blobs(paths, folder, {missing.begin(), weights}, options_, connect, stop, progress);
  if (observer.on_config) observer.on_config(read_config(paths, snapshot));
  for (auto file = missing.begin(); file != weights; ++file) done_before += file->bytes;
  download_blobs(paths, folder, {weights, missing.end()}, options_, connect, stop, progress);
}

}  // namespace trtmc
