#include "base/new_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/file.h"
#include "base/sync_name.h"

namespace trtmc {
namespace {

// "a/b/" names what "a/b" does.
std::filesystem::path without_last_slash(const std::filesystem::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

[[noreturn]] void refuse_existing(const std::filesystem::path& path) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: exists already", path.string()),
              "choose another name, or remove it");
}

// A folder beside `path`. One that a killed process of the same number left behind stays.
std::filesystem::path make_hidden(const std::filesystem::path& path) {
  const std::string name = fmt::format(".{}.partial-{}", path.filename().string(), ::getpid());
  constexpr int kMostNames = 1000;
  for (int number = 0;; ++number) {
    const std::string suffix = number == 0 ? "" : fmt::format("-{}", number);
    std::filesystem::path hidden = path.parent_path() / (name + suffix);
    if (::mkdir(hidden.c_str(), 0755) == 0) return hidden;
    if (errno != EEXIST || number == kMostNames) throw system_error(path, "can't be made", errno);
  }
}

}  // namespace

NewFolder::NewFolder(const std::filesystem::path& path) : path_(without_last_slash(path)) {
  struct stat status {};
  if (::lstat(path_.c_str(), &status) == 0) refuse_existing(path_);
  if (errno != ENOENT) throw system_error(path_, "can't be looked up", errno);
  hidden_ = make_hidden(path_);
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!hidden_.empty()) std::filesystem::remove_all(hidden_, ignored);
}

void NewFolder::fill(FunctionRef<void(const std::filesystem::path& folder)> write) {
  try {
    write(hidden_);
  } catch (const Error& error) {
    std::string message = error.what();
    const std::string hidden = hidden_.string();
    for (size_t at = message.find(hidden); at != std::string::npos; at = message.find(hidden)) {
      message.replace(at, hidden.size(), path_.string());
    }
    throw Error(error.code(), message, error.hint());
  }
}

void NewFolder::commit() {
  int failed = ::renameat2(AT_FDCWD, hidden_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE);
  // File systems that have no such rename replace an empty folder, and nothing else.
  if (failed != 0 && (errno == EINVAL || errno == ENOSYS)) {
    failed = ::rename(hidden_.c_str(), path_.c_str());
  }
  if (failed != 0 && (errno == EEXIST || errno == ENOTEMPTY)) refuse_existing(path_);
  if (failed != 0) throw system_error(path_, "can't rename into place", errno);
  hidden_.clear();
  sync_name(path_);
}

}  // namespace trtmc
