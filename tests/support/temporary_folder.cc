#include "tests/support/temporary_folder.h"

#include <stdlib.h>

#include <fstream>
#include <string>
#include <system_error>

#include "base/check.h"

namespace trtmc {

void write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  TRTMC_CHECK(file.flush().good(), "the test's folder can be written to");
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "trtmc_test_XXXXXX").string();
  TRTMC_CHECK(mkdtemp(name.data()) != nullptr, "the temporary folder can be made");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace trtmc
