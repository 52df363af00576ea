#include <fmt/format.h>

#include <atomic>

#include "base/clock.h"
#include "base/new_folder.h"
#include "builder/model_folder.h"
#include "cli/commands.h"
#include "cli/interrupts.h"
#include "cli/option_values.h"
#include "graph/onnx_export.h"
#include "trtmc/version.h"

namespace trtmc {
namespace {

constexpr double kProgressIntervalMs = 100;

void write_model(const Bundle& bundle, const ExportCommand& command,
                 const std::filesystem::path& folder, Console& console) {
  std::atomic<bool> interrupted = false;
  const InterruptScope interrupt([&] { interrupted = true; }, InterruptScope::Termination::kActs);
  ThreadPool pool(command.threads > 0 ? command.threads : ThreadPool::default_num_threads());
  SteadyTime shown{};
  export_onnx(bundle, command.onnx, folder, pool, [&](uint64_t done, uint64_t total) {
    // Unwinding removes what has been written.
    if (interrupted) throw Interrupted();
    const auto now = std::chrono::steady_clock::now();
    if (done < total && milliseconds_between(shown, now) < kProgressIntervalMs) return;
    shown = now;
    console.progress(
        fmt::format("writing   {:>3} % of {}", 100 * done / total, format_bytes(total)));
  });
}

// For who finds the folder without knowing where it came from.
std::string model_card(const Bundle& bundle, const ExportCommand& command) {
  const Manifest& manifest = bundle.manifest();
  std::string card = "---\n";
  if (!manifest.licence.empty()) card += fmt::format("license: {}\n", manifest.licence);
  card += "tags: [onnx]\n---\n\n";
  card += fmt::format("# {} as ONNX\n\n", manifest.source);
  card += fmt::format(
      "The decoder of {}{}{} as an ONNX model of opset 23 in {}, written by trtmc {}.\n"
      "Weights were {} in the bundle.\n\n",
      manifest.source, manifest.source_revision.empty() ? "" : "@", manifest.source_revision,
      element_type_name(command.onnx.type), TRTMC_VERSION_STRING,
      manifest.quantization == "none" ? "not quantised" : manifest.quantization);
  card +=
      "Inputs: `input_ids`, `attention_mask` (1 for a token, 0 for padding, over past and new "
      "tokens), `position_ids`,\n`past_key_values.N.key` and `.value`. Outputs: `logits`, "
      "`present.N.key` and `.value`, the past of the next step.\nBatch, sequence and past may have "
      "any length. These are the names that Hugging Face Optimum uses.\n";
  return card;
}

void write_texts(const Bundle& bundle, const ExportCommand& command,
                 const std::filesystem::path& folder) {
  std::vector<TextFile> files = model_text_files(bundle);
  files.push_back({"README.md", model_card(bundle, command)});
  for (const TextFile& text : files) {
    AtomicFile file(folder / text.name, text.text.size(), AtomicFile::IfExists::kRefuse);
    file.write_at(0, as_bytes(text.text));
    file.commit();
  }
}

uint64_t folder_bytes(const std::filesystem::path& folder) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) bytes += entry.file_size();
  return bytes;
}

}  // namespace

void execute(const ExportCommand& command, Console& console) {
  console.configure_log(command.log);
  const Bundle bundle(command.bundle);
  NewFolder folder(command.output);
  folder.fill([&](const std::filesystem::path& hidden) {
    write_texts(bundle, command, hidden);
    write_model(bundle, command, hidden, console);
  });
  folder.commit();
  const uint64_t bytes = folder_bytes(command.output);
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
