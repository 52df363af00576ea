#include "hub/download.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "hub/cache_lock.h"
#include "hub/chunk_fetch.h"
#include "hub/file_digest.h"
#include "hub/url.h"

namespace trtmc {
namespace {

constexpr std::chrono::milliseconds kProgressInterval{100};

// A file from the moment that its first chunk is begun until its blob has its name.
struct OpenFile {
  OpenFile(const RepositoryFile& of, CacheLock held, const std::filesystem::path& partial_path,
           std::string url_path, uint64_t chunk_bytes, std::atomic<uint64_t>& received)
      : file(of),
        lock(std::move(held)),
        partial(partial_path, of.bytes, chunk_bytes),
        fetch{std::move(url_path), of.bytes, partial, received},
        chunks_left(std::max<size_t>(partial.num_chunks(), 1)) {}

  const RepositoryFile& file;
  CacheLock lock;
  PartialFile partial;
  FileFetch fetch;
  size_t next_chunk = 0;  // Guarded by the queue's mutex.
  std::atomic<size_t> chunks_left;
};

// The work of one call to download_blobs(), shared by its threads.
class Download {
 public:
  Download(const CachePaths& cache, const std::string& url_folder,
           std::span<const RepositoryFile> files, const DownloadOptions& options,
           const ConnectionFactory& connect)
      : cache_(cache),
        url_folder_(url_folder),
        files_(files),
        options_(options),
        connect_(connect) {
    for (const RepositoryFile& file : files_) total_ += file.bytes;
  }

  void run(const std::stop_token& stop, const DownloadProgress& progress) {
    const std::stop_callback pass_on(stop, [this] { stop_.request_stop(); });
    std::vector<std::jthread> threads;
    running_ = std::max(options_.connections, 1);
    for (int i = 0; i < std::max(options_.connections, 1); ++i) {
      threads.emplace_back([this] { work(); });
    }
    std::unique_lock lock(done_mutex_);
    while (!all_done_.wait_for(lock, kProgressInterval, [this] { return running_ == 0; })) {
      progress(received_, total_);
    }
    if (failure_) std::rethrow_exception(failure_);
    if (stop.stop_requested()) throw DownloadStopped();
    progress(received_, total_);
  }

 private:
  struct Task {
    std::shared_ptr<OpenFile> file;
    size_t chunk;
  };

  void work() {
    try {
      std::unique_ptr<HubConnection> connection;
      while (auto task = take()) {
        if (!connection) connection = connect_(stop_.get_token());
        with_context(task->file->file.name, [&] { do_task(*connection, *task); });
      }
    } catch (...) {
      note_failure(std::current_exception());
    }
    const std::lock_guard lock(done_mutex_);
    if (--running_ == 0) all_done_.notify_all();
  }

  // The first failure is the cause; those that follow are threads that it stopped.
  void note_failure(const std::exception_ptr& failure) {
    const std::lock_guard lock(done_mutex_);
    if (!failure_) failure_ = failure;
    stop_.request_stop();
  }

  // The next chunk to fetch, or nothing when all are taken. May wait for another program's lock;
  // all chunks of the files before are taken by then, so that two programs can't wait for each
  // other for ever.
  std::optional<Task> take() {
    const std::lock_guard lock(queue_mutex_);
    while (true) {
      if (stop_.stop_requested()) throw DownloadStopped();
      if (current_ && current_->next_chunk < std::max<size_t>(current_->partial.num_chunks(), 1)) {
        return Task{current_, current_->next_chunk++};
      }
      current_.reset();
      if (next_file_ == files_.size()) return {};
      const RepositoryFile& file = files_[next_file_++];
      current_ = with_context(file.name, [&] { return open(file); });
    }
  }

  // Nothing if the blob is there already: another program has downloaded it meanwhile.
  std::shared_ptr<OpenFile> open(const RepositoryFile& file) {
    CacheLock lock(cache_.lock(file.digest), stop_.get_token(), [&] {
      log_info("{}: waiting for another program that downloads it", file.name);
    });
    if (cache_.has_blob(file)) {
      received_ += file.bytes;
      return nullptr;
    }
    make_folder(cache_.blob(file.digest).parent_path());
    auto opened = std::make_shared<OpenFile>(file, std::move(lock), cache_.partial(file.digest),
                                             url_folder_ + escape_url(file.name),
                                             options_.chunk_bytes, received_);
    received_ += opened->partial.total_done();
    return opened;
  }

  void do_task(HubConnection& connection, Task& task) {
    OpenFile& file = *task.file;
    const std::stop_token stop = stop_.get_token();
    if (task.chunk < file.partial.num_chunks()) {
      fetch_chunk(connection, file.fetch, task.chunk, options_.retry, stop);
    }
    if (--file.chunks_left > 0) return;
    if (file.fetch.ranges_ignored) fetch_whole(connection, file.fetch, options_.retry, stop);
    finish(file);
  }

  void finish(OpenFile& file) {
    const std::filesystem::path partial = cache_.partial(file.file.digest);
    const std::string actual =
        file_digest(partial, file.file.bytes, file.file.digest.kind, stop_.get_token());
    std::error_code error;
    if (actual != file.file.digest.hex) {
      std::filesystem::remove(partial, error);
      throw Error(ErrorCode::kCorrupt,
                  fmt::format("the bytes hash to {}, expected {}", actual, file.file.digest.hex),
                  "they have been thrown away; run the command again to fetch them anew");
    }
    file.partial.finish();
    std::filesystem::rename(partial, cache_.blob(file.file.digest), error);
    if (error) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: can't be given its name: {}",
                                                           partial.string(), error.message()));
    }
  }

  const CachePaths& cache_;
  const std::string& url_folder_;
  std::span<const RepositoryFile> files_;
  const DownloadOptions& options_;
  const ConnectionFactory& connect_;
  uint64_t total_ = 0;
  std::stop_source stop_;
  std::atomic<uint64_t> received_ = 0;

  std::mutex queue_mutex_;  // Guards the two below.
  size_t next_file_ = 0;
  std::shared_ptr<OpenFile> current_;

  std::mutex done_mutex_;  // Guards the rest.
  std::condition_variable all_done_;
  int running_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

void download_blobs(const CachePaths& cache, const std::string& url_folder,
                    std::span<const RepositoryFile> files, const DownloadOptions& options,
                    const ConnectionFactory& connect, const std::stop_token& stop,
                    const DownloadProgress& progress) {
  if (files.empty()) return;
  Download(cache, url_folder, files, options, connect).run(stop, progress);
}

}  // namespace trtmc
