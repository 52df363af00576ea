#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <system_error>

#include "base/clock.h"
#include "base/log.h"
#include "builder/builder.h"
#include "checkpoint/open_checkpoint.h"
#include "cli/commands.h"
#include "cli/hub_source.h"
#include "cli/interrupts.h"
#include "cli/option_values.h"

namespace trtmc {
namespace {

constexpr double kProgressIntervalMs = 100;

// A folder or file that exists wins over the hub's model of that name. Records in `options` which
// model and commit a snapshot is.
std::shared_ptr<const Checkpoint> find_checkpoint(const BuildCommand& command, Console& console,
                                                  BuildOptions& options) {
  const std::string source = command.source.string();
  const std::optional<HubSource> hub = hub_source_of(source);
  std::error_code ignored;
  if (std::filesystem::exists(command.source, ignored)) {
    if (hub) log_info("{}: is here, and used in place of the hub's model", source);
    return open_checkpoint(command.source);
  }
  if (!hub) {
    throw Error(ErrorCode::kNotFound, fmt::format("{}: no such file or folder", source),
                "give a folder, a GGUF file, or OWNER/NAME of a model on the Hugging Face hub");
  }
  // A model of no known family is refused before its weights are downloaded.
  const auto check_family = [&](const std::string& config) {
    with_context("config.json", [&] { find_family(Json::parse(config), options.family); });
  };
  // A dry run downloads nothing either.
  const Snapshot snapshot = command.dry_run ? find_cached(*hub) : pull(*hub, console, check_family);
  options.source_name = hub->id.str();
  options.source_revision = snapshot.commit;
  return open_checkpoint(snapshot.folder);
}

// The encoding that most bytes of the checkpoint have, and all its bytes.
struct SourceSize {
  size_t tensors = 0;
  uint64_t bytes = 0;
  std::string encoding;
};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

SourceSize source_size(const Checkpoint& checkpoint) {
  SourceSize size;
  std::map<std::string_view, uint64_t> by_encoding;
  for (const std::string& name : checkpoint.tensor_names()) {
    const auto tensor = checkpoint.tensor(name);
    if (!tensor) continue;
    ++size.tensors;
    size.bytes += tensor->bytes.size();
    by_encoding[tensor->encoding] += tensor->bytes.size();
  }
  const auto most = std::max_element(by_encoding.begin(), by_encoding.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  if (most != by_encoding.end()) size.encoding = lower_case(most->first);
  return size;
}

// The type that most elements of the bundle have.
std::string most_stored(const BuildPlan& plan) {
  std::map<DType, int64_t> by_type;
  for (const PlannedTensor& tensor : plan.tensors)
    by_type[tensor.dtype] += num_elements(tensor.shape);
  const auto most = std::max_element(by_type.begin(), by_type.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  return std::string(dtype_name(most->first));
}

uint64_t stored_bytes(const PlannedTensor& tensor) {
  if (tensor.layout == TensorLayout::kPanels16) {
    return PackedLayout{tensor.dtype, tensor.shape[0], tensor.shape[1]}.total_bytes();
  }
  return static_cast<uint64_t>(num_elements(tensor.shape)) * element_bytes(tensor.dtype);
}

// As stored: with scales, and with what fills up panels and groups.
double bits_per_weight(const PlannedTensor& tensor) {
  return 8.0 * static_cast<double>(stored_bytes(tensor)) /
         static_cast<double>(num_elements(tensor.shape));
}

double bits_per_weight(const BuildPlan& plan) {
  uint64_t bytes = 0;
  for (const PlannedTensor& tensor : plan.tensors) bytes += stored_bytes(tensor);
  return 8.0 * static_cast<double>(bytes) / static_cast<double>(plan.parameters);
}

Json plan_json(const BuildPlan& plan, const BuildCommand& command) {
  Json json;
  json.set("bundle", command.output.string());
  json.set("family", plan.manifest.family);
  json.set("strategy", plan.manifest.strategy);
  json.set("source", plan.manifest.source);
  if (!plan.manifest.source_revision.empty()) {
    json.set("source_revision", plan.manifest.source_revision);
  }
  json.set("parameters", plan.parameters);
  json.set("quantization", plan.manifest.quantization);
  json.set("bits_per_weight", bits_per_weight(plan));
  json.set("tensors", plan.tensors.size());
  json.set("bytes", plan.bundle_bytes);
  json.set("warnings", Json::Array(plan.warnings.begin(), plan.warnings.end()));
  return json;
}

std::string plan_text(const BuildPlan& plan) {
  const Manifest& manifest = plan.manifest;
  std::string text = fmt::format(
      "family      {} ({})\nsource      {}\nparameters  {}\ncontext     {} tokens\n"
      "stop ids    {}\ntokenizer   {}\ntemplate    {}\nweights     {}, {:.2f} bits each\n"
      "bundle      {}\ntensors     {}\n",
      manifest.family, manifest.strategy, manifest.source, format_count(plan.parameters),
      manifest.spec.context_length, fmt::join(manifest.stop_ids, ", "),
      plan.tokenizer_tables.empty() ? "none" : format_bytes(plan.tokenizer_tables.size()),
      plan.chat_template ? format_bytes(plan.chat_template->size()) : "none",
      manifest.quantization == "none" ? most_stored(plan) : manifest.quantization,
      bits_per_weight(plan), format_bytes(plan.bundle_bytes), plan.tensors.size());
  for (const PlannedTensor& tensor : plan.tensors) {
    text += fmt::format("  {:<26} {:<4} {:5.2f} bits {:<16} from {} {}\n", to_string(tensor.key),
                        dtype_name(tensor.dtype), bits_per_weight(tensor), to_string(tensor.shape),
                        lower_case(tensor.encodings.front()), fmt::join(tensor.sources, ", "));
  }
  return text;
}

// The two lines that a build shows: what is read and what is written.
class BuildLines {
 public:
  BuildLines(const BuildCommand& command, const BuildPlan& plan, Console& console)
      : console_(console),
        source_(plan.manifest.source),
        output_(command.output.filename().string()),
        width_(std::max(source_.size(), output_.size())),
        start_(std::chrono::steady_clock::now()) {
    const SourceSize size = source_size(*plan.checkpoint);
    reading_ =
        fmt::format("{} tensors, {} {}", size.tensors, format_bytes(size.bytes), size.encoding);
    const std::string& scheme = plan.manifest.quantization;
    written_ = fmt::format("{} {}", format_bytes(plan.bundle_bytes),
                           scheme == "none" ? most_stored(plan) : scheme);
  }

  void show_reading() {
    if (!console_.quiet()) {
      console_.note(fmt::format("reading   {:<{}}   {}\n", source_, width_, reading_));
    }
  }
  void show_progress(uint64_t done, uint64_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (milliseconds_between(shown_, now) < kProgressIntervalMs) return;
    shown_ = now;
    console_.progress(writing(total == 0 ? 100 : static_cast<int>(100 * done / total)));
  }
  void show_written() {
    if (!console_.quiet()) console_.note(writing(100) + "\n");
  }
  double seconds() const {
    return milliseconds_between(start_, std::chrono::steady_clock::now()) / 1000;
  }

 private:
  std::string writing(int percent) const {
    return fmt::format("writing   {:<{}}   {:<20} {:>3} %  {:.0f} s", output_, width_, written_,
                       percent, seconds());
  }

  Console& console_;
  std::string source_, output_;
  size_t width_;
  std::string reading_, written_;
  SteadyTime start_;
  SteadyTime shown_{};
};

void write_bundle(const BuildCommand& command, const BuildPlan& plan, BuildLines& lines) {
  std::atomic<bool> interrupted = false;
  const InterruptScope interrupt([&] { interrupted = true; }, InterruptScope::Termination::kActs);
  ThreadPool pool(command.threads > 0 ? command.threads : ThreadPool::default_num_threads());
  build_bundle(plan, command.output,
               command.force ? AtomicFile::IfExists::kReplace : AtomicFile::IfExists::kRefuse, pool,
               [&](uint64_t done, uint64_t total) {
                 // Unwinding removes what has been written.
                 if (interrupted) throw Interrupted();
                 lines.show_progress(done, total);
               });
}

// Before the work, not after it.
void refuse_existing(const BuildCommand& command) {
  std::error_code ignored;
  if (command.force || !std::filesystem::exists(command.output, ignored)) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: exists already", command.output.string()),
              "replace it with --force, or choose another name");
}

}  // namespace

void execute(const BuildCommand& command, Console& console) {
  console.configure_log(command.log);
  if (!command.dry_run) refuse_existing(command);
  BuildOptions options = command.build;
  auto checkpoint = find_checkpoint(command, console, options);
  const BuildPlan plan = plan_build(std::move(checkpoint), options);
  for (const std::string& warning : plan.warnings) log_warning("{}", warning);
  if (command.dry_run) {
    if (command.json) return console.print_json(plan_json(plan, command));
    return console.print(plan_text(plan));
  }
  BuildLines lines(command, plan, console);
  lines.show_reading();
  write_bundle(command, plan, lines);
  lines.show_written();
  if (!command.json) return;
  Json json = plan_json(plan, command);
  json.set("seconds", lines.seconds());
  console.print_json(json);
}

}  // namespace trtmc
