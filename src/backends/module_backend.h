// A backend that lies in a library of its own, libtrtmc_backend_<name>.so: opened at the first
// question to it, and never closed. What keeps it from being opened is what `unavailable()` says.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"

namespace trtmc {

// Where modules are looked for, first to last: the folders of TRTMC_BACKEND_PATH (separated by
// colons), the program's own, ../libexec/trtmc beside that.
std::vector<std::filesystem::path> module_folders();

class ModuleBackend final : public Backend {
 public:
  // Opens nothing yet.
  ModuleBackend(std::string name, std::vector<std::filesystem::path> folders);

  std::string_view name() const override { return name_; }
  std::optional<std::string> unavailable() const override;
  std::string description() const override;
  std::optional<std::string> unsupported(const Manifest& manifest) const override;
  std::unique_ptr<Executor> load(const Bundle& bundle,
                                 const ExecutorOptions& options) const override;

 private:
  // The module's backend, or null with trouble_ set.
  const Backend* open() const;
  const Backend* open_file(const std::filesystem::path& file) const;

  std::string name_;
  std::vector<std::filesystem::path> folders_;
  mutable std::once_flag opened_;
  mutable const Backend* backend_ = nullptr;
  mutable std::string trouble_;
};

}  // namespace trtmc
