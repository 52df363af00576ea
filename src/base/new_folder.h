// A folder under construction, that appears under its name with everything in it or not at all.
#pragma once

#include <filesystem>

namespace trtmc {

class NewFolder {
 public:
  // Makes a hidden folder beside `path`. Throws kInvalidArgument if `path` exists, kNotFound if the
  // folder around it does not.
  explicit NewFolder(std::filesystem::path path);
  // Without commit() removes what was made.
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  // Where its files are to be written until commit().
  const std::filesystem::path& hidden() const { return hidden_; }

  // Gives it its name, unless that has been taken meanwhile: kInvalidArgument.
  void commit();

 private:
  std::filesystem::path path_, hidden_;
};

}  // namespace trtmc
