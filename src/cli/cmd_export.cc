#include <fmt/format.h>

#include <atomic>

#include "base/clock.h"
#include "base/new_folder.h"
#include "builder/model_folder.h"
#include "cli/commands.h"
#include "cli/interrupts.h"
#include "cli/model_card.h"
#include "cli/option_values.h"
#include "graph/onnx_export.h"

namespace trtmc {
namespace {

constexpr double kProgressIntervalMs = 100;

uint64_t write_model(const Bundle& bundle, const ExportCommand& command,
                     const std::filesystem::path& folder, const std::atomic<bool>& interrupted,
                     Console& console) {
  ThreadPool pool(command.threads > 0 ? command.threads : ThreadPool::default_num_threads());
  SteadyTime shown{};
  return export_onnx(bundle, command.onnx, folder, pool, [&](uint64_t done, uint64_t total) {
    if (interrupted) throw Interrupted();
    const auto now = std::chrono::steady_clock::now();
    if (done < total && milliseconds_between(shown, now) < kProgressIntervalMs) return;
    shown = now;
    console.progress(
        fmt::format("writing   {:>3} % of {}", 100 * done / total, format_bytes(total)));
  });
}

uint64_t write_texts(const Bundle& bundle, const ExportCommand& command,
                     const std::filesystem::path& folder, const std::atomic<bool>& interrupted) {
  std::vector<TextFile> files = model_text_files(bundle);
  files.push_back(
      {"README.md", model_card(bundle.manifest(), element_type_name(command.onnx.type))});
  uint64_t bytes = 0;
  for (const TextFile& text : files) {
    if (interrupted) throw Interrupted();
    AtomicFile file(folder / text.name, text.text.size(), AtomicFile::IfExists::kRefuse);
    file.write_at(0, as_bytes(text.text));
    file.commit();
    bytes += text.text.size();
  }
  return bytes;
}

}  // namespace

void execute(const ExportCommand& command, Console& console) {
  console.configure_log(command.log);
  const Bundle bundle(command.bundle);
  // Whatever is being written, unwinding removes the folder: the scope is there before it.
  std::atomic<bool> interrupted = false;
  const InterruptScope interrupt([&] { interrupted = true; }, InterruptScope::Termination::kActs);
  NewFolder folder(command.output);
  uint64_t bytes = 0;
  folder.fill([&](const std::filesystem::path& hidden) {
    bytes = write_texts(bundle, command, hidden, interrupted);
    bytes += write_model(bundle, command, hidden, interrupted, console);
  });
  if (interrupted) throw Interrupted();
  folder.commit();
  const std::string_view type = element_type_name(command.onnx.type);
  if (!console.quiet()) {
    console.note(
        fmt::format("wrote     {}   {} {}\n", command.output.string(), format_bytes(bytes), type));
  }
  if (!command.json) return;
  Json json;
  json.set("folder", command.output.string());
  json.set("format", "onnx");
  json.set("dtype", type);
  json.set("bytes", bytes);
  console.print_json(json);
}

}  // namespace trtmc
