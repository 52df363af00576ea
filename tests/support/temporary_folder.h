// A folder for one test's files.
#pragma once

#include <filesystem>
#include <string_view>

namespace trtmc {

// A folder of its own under the system's temporary folder, removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Writes a whole file, replacing it.
void write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace trtmc
