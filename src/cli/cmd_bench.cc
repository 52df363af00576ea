#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "backends/backend_loader.h"
#include "base/file.h"
#include "cli/build_info.h"
#include "cli/commands.h"
#include "measure/speed.h"
#include "measure/speed_plot.h"

namespace trtmc {
namespace {

constexpr double kGiga = 1e9;

std::vector<SpeedCase> cases_of(const BenchCommand& command) {
  std::vector<SpeedCase> cases;
  const auto add = [&](SpeedKind kind, const std::vector<int>& lengths) {
    for (const int tokens : lengths) {
      for (const int batch : command.batches) {
        for (const int depth : command.depths) {
          if (tokens > 0) cases.push_back({kind, tokens, depth, batch});
        }
      }
    }
  };
  add(SpeedKind::kPrefill, command.prefills);
  add(SpeedKind::kDecode, command.decodes);
  if (cases.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "--prefill 0 and --decode 0 leave nothing to measure");
  }
  return cases;
}

// All of it gets written, unlike an answer's, which a system may promise beyond its memory.
void check_memory(uint64_t blocks, uint64_t block_bytes) {
  const uint64_t memory = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                          static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (blocks <= memory / block_bytes) return;
  throw Error(
      ErrorCode::kExhausted,
      fmt::format("the largest case needs {} KV blocks of {} bytes, but this machine has {} "
                  "bytes of memory",
                  blocks, block_bytes, memory),
      "ask for a smaller --batch or --depth");
}

// An executor with room for the largest case. How large a block is, only the backend knows.
std::unique_ptr<Executor> load_for(std::span<const SpeedCase> cases, const BenchCommand& command,
                                   const Bundle& bundle, const Backend& backend) {
  ExecutorOptions options = command.load.executor;
  int64_t longest = 0, batch = 1;
  for (const SpeedCase& of : cases) {
    longest = std::max(longest, int64_t{of.depth} + of.tokens);
    batch = std::max(batch, int64_t{of.batch});
  }
  const int context =
      options.context_length > 0 ? options.context_length : bundle.spec().context_length;
  if (longest > context) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--depth and the tokens behind it make {}, but the context has {}",
                            longest, context),
                "choose less with --prefill, --decode and --depth");
  }
  options.max_sequences_per_step =
      std::max(options.max_sequences_per_step, static_cast<int>(batch));
  std::unique_ptr<Executor> executor = backend.load(bundle, options);
  if (options.kv_memory_bytes > 0) return executor;
  const Limits limits = executor->limits();
  const auto blocks =
      static_cast<uint64_t>((longest + limits.block_size - 1) / limits.block_size * batch);
  const uint64_t block_bytes =
      executor->memory().kv_budget_bytes / static_cast<uint64_t>(limits.num_blocks);
  check_memory(blocks, block_bytes);
  options.kv_memory_bytes = block_bytes * blocks;
  executor.reset();
  return backend.load(bundle, options);
}

Json to_json(const Speed& speed, const Executor& executor, const Backend& backend) {
  Json range, json;
  range.set("min", speed.tokens_per_second.min);
  range.set("median", speed.tokens_per_second.median);
  range.set("max", speed.tokens_per_second.max);
  json.set("kind", to_string(speed.of.kind));
  json.set("tokens", speed.of.tokens);
  json.set("depth", speed.of.depth);
  json.set("batch", speed.of.batch);
  json.set("tokens_per_second", std::move(range));
  json.set("gb_per_second", speed.bytes_per_second / kGiga);
  json.set("gflop_per_second", speed.operations_per_second / kGiga);
  json.set("read_roof_gb_per_second", speed.read_roof / kGiga);
  if (speed.copy_roof > 0) json.set("copy_roof_gb_per_second", speed.copy_roof / kGiga);
  json.set("multiply_roof_gflop_per_second", speed.multiply_roof / kGiga);
  json.set("roof_share", speed.roof_share);
  json.set("threads", speed.num_threads);
  json.set("isa", executor.isa());
  json.set("backend", backend.name());
  json.set("commit", build_id());
  json.set("logits_hash", fmt::format("{:016x}", speed.logits_hash));
  return json;
}

constexpr std::string_view kTableHead =
    "kind     tokens   depth  batch    tokens/s  (min to max)           GB/s  GFLOP/s   of the "
    "roof\n";

std::string table_row(const Speed& speed) {
  const Range& range = speed.tokens_per_second;
  const bool decode = speed.of.kind == SpeedKind::kDecode;
  return fmt::format(
      "{:<8} {:>6} {:>7} {:>6} {:>11.2f}  {:<20} {:>6.1f} {:>8.0f}   {:.0f} % of {:.1f} {}\n",
      to_string(speed.of.kind), speed.of.tokens, speed.of.depth, speed.of.batch, range.median,
      fmt::format("({:.2f} to {:.2f})", range.min, range.max), speed.bytes_per_second / kGiga,
      speed.operations_per_second / kGiga, 100 * speed.roof_share,
      (decode ? speed.read_roof : speed.multiply_roof) / kGiga, decode ? "GB/s read" : "GFLOP/s");
}

void write_plot(AtomicFile& file, std::span<const Speed> speeds, const std::string& title) {
  file.write_at(0, as_bytes(speed_plot_svg(speeds, title)));
  file.commit();
}

}  // namespace

void execute(const BenchCommand& command, Console& console) {
  console.configure_log(command.log);
  const std::vector<SpeedCase> cases = cases_of(command);
  // Where the plot can't be put is found before the figures are.
  std::optional<AtomicFile> plot;
  if (!command.plot.empty()) plot.emplace(command.plot, 0, AtomicFile::IfExists::kReplace);
  const Bundle bundle(command.bundle);
  const Backend& backend = find_backend(command.load.backend, bundle.manifest());
  const std::unique_ptr<Executor> executor = load_for(cases, command, bundle, backend);
  const std::string title = fmt::format("{} on {} ({})", bundle.manifest().source, backend.name(),
                                        executor->description());
  if (!command.json) console.print(fmt::format("{}\n\n{}", title, kTableHead));
  SpeedMeter meter(bundle, *executor);
  std::vector<Speed> speeds;
  for (const SpeedCase& of : cases) {
    console.progress(fmt::format("{} of {}", speeds.size() + 1, cases.size()));
    speeds.push_back(meter.measure(of, command.repeat));
    console.end_progress();
    if (!command.json) console.print(table_row(speeds.back()));
  }
  if (command.json) {
    Json::Array array;
    for (const Speed& speed : speeds) array.push_back(to_json(speed, *executor, backend));
    console.print_json(array);
  }
  if (plot) write_plot(*plot, speeds, title);
}

}  // namespace trtmc
