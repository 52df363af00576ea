// A folder under construction, that appears under its name with everything in it or not at all.
#pragma once

#include <filesystem>

#include "base/function_ref.h"

namespace trtmc {

class NewFolder {
 public:
  // Makes a hidden folder beside `path`. Throws kInvalidArgument if `path` exists, kNotFound if the
  // folder around it does not.
  explicit NewFolder(const std::filesystem::path& path);
  // Without commit() removes what was made.
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  // Calls write(folder) with the hidden folder, where the files are to be written. An Error that
  // names a file in there names it where it would have come to be.
  void fill(FunctionRef<void(const std::filesystem::path& folder)> write);

  // Gives it its name, unless that has been taken meanwhile: kInvalidArgument.
  void commit();

 private:
  std::filesystem::path path_, hidden_;
};

}  // namespace trtmc
