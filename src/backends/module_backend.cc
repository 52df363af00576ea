#include "backends/module_backend.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "backends/backend_module.h"
#include "base/environment.h"
#include "base/error.h"

namespace trtmc {
namespace {

constexpr ModuleHost kHost{.log = log_line};

std::string last_dl_error() {
  const char* text = dlerror();
  return text == nullptr ? "no reason was given" : text;
}

}  // namespace

std::vector<std::filesystem::path> module_folders() {
  std::vector<std::filesystem::path> folders;
  const std::string path = process_environment("TRTMC_BACKEND_PATH").value_or("");
  for (size_t start = 0; start < path.size();) {
    const size_t end = std::min(path.find(':', start), path.size());
    if (end > start) folders.emplace_back(path.substr(start, end - start));
    start = end + 1;
  }
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    folders.push_back(program.parent_path());
    folders.push_back(program.parent_path().parent_path() / "libexec" / "trtmc");
  }
  return folders;
}

ModuleBackend::ModuleBackend(std::string name, std::vector<std::filesystem::path> folders)
    : name_(std::move(name)), folders_(std::move(folders)) {}

const Backend* ModuleBackend::open_file(const std::filesystem::path& file) const {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    trouble_ = fmt::format("{} can't be loaded: {}", file.string(), last_dl_error());
    return nullptr;
  }
  const auto entry = reinterpret_cast<BackendModuleEntry>(dlsym(library, kBackendModuleEntry));
  if (entry == nullptr) {
    trouble_ = fmt::format("{} is no backend of trtmc: it has no symbol {}", file.string(),
                           kBackendModuleEntry);
    return nullptr;
  }
  const BackendModule* module = entry(&kHost);
  if (module == nullptr) {
    trouble_ = fmt::format("{} could not start", file.string());
    return nullptr;
  }
  if (std::string_view(module->build_id) != module_build_id()) {
    trouble_ = fmt::format("{} was built from {}, but the program from {}", file.string(),
                           module->build_id, module_build_id());
    return nullptr;
  }
  return module->backend;
}

const Backend* ModuleBackend::open() const {
  std::call_once(opened_, [this] {
    const std::string file = fmt::format("libtrtmc_backend_{}.so", name_);
    for (const std::filesystem::path& folder : folders_) {
      std::error_code error;
      if (!std::filesystem::exists(folder / file, error)) continue;
      backend_ = open_file(folder / file);
      return;
    }
    trouble_ =
        fmt::format("{} is not beside the program nor in a folder of TRTMC_BACKEND_PATH", file);
  });
  return backend_;
}

std::optional<std::string> ModuleBackend::unavailable() const {
  const Backend* backend = open();
  return backend == nullptr ? trouble_ : backend->unavailable();
}

std::string ModuleBackend::description() const {
  const Backend* backend = open();
  return backend == nullptr ? trouble_ : backend->description();
}

std::optional<std::string> ModuleBackend::unsupported(const Manifest& manifest) const {
  const Backend* backend = open();
  return backend == nullptr ? trouble_ : backend->unsupported(manifest);
}

std::unique_ptr<Executor> ModuleBackend::load(const Bundle& bundle,
                                              const ExecutorOptions& options) const {
  const Backend* backend = open();
  if (backend == nullptr) throw Error(ErrorCode::kUnsupported, trouble_);
  return backend->load(bundle, options);
}

}  // namespace trtmc
