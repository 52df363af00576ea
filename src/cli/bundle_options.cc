#include "cli/bundle_options.h"

#include <fmt/format.h>

#include <limits>

#include "base/error.h"
#include "bundle/quant_scheme.h"
#include "cli/command_parser.h"
#include "cli/option_values.h"
#include "cli/route_options.h"
#include "cli/shared_options.h"

namespace trtmc {
namespace {

using Arguments = std::span<const std::string>;

constexpr int64_t kMaxInt = std::numeric_limits<int>::max();

constexpr std::string_view kExportFormats[] = {"onnx"};
constexpr ElementType kExportElements[] = {ElementType::kFloat32, ElementType::kFloat16,
                                           ElementType::kBFloat16};
constexpr std::string_view kExportTypes[] = {"f32", "f16", "bf16"};
static_assert(std::size(kExportElements) == std::size(kExportTypes));

// "yarn:2.0"
double parse_rope_scaling(std::string_view text) {
  constexpr std::string_view kYarn = "yarn:";
  if (!text.starts_with(kYarn)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\", expected yarn:FACTOR such as yarn:2.0", text));
  }
  return parse_number(text.substr(kYarn.size()), 1, 1024);
}

}  // namespace

BuildCommand parse_build_command(Arguments arguments, const Settings& settings) {
  BuildCommand command;
  BuildOptions& build = command.build;
  CommandParser parser("build", "Turn a Hugging Face checkpoint into one self-contained bundle.");
  parser.positional("source",
                    "the checkpoint: a folder with config.json and safetensors, a GGUF file, or "
                    "OWNER/NAME[@REVISION] on the hub",
                    true, path_into(command.source));
  parser.option("-o,--output", "FILE", "the bundle to write", path_into(command.output));
  parser.flag("--force", "replace FILE if it exists", command.force);
  parser.flag("--dry-run", "print the plan and write nothing", command.dry_run);
  declare_json(parser, command.json);
  parser.group("Model");
  parser.option("--quant", "SCHEME",
                "none, q8, q6, q4_q6 or q4: bits a weight is stored in (default: none)",
                [&](const std::string& text) {
                  parse_name(text, quant_schemes());
                  build.quantization = text;
                });
  parser.choices({quant_schemes().begin(), quant_schemes().end()});
  parser.option("--family", "NAME", "model family (default: by the checkpoint's architecture)",
                [&](const std::string& text) { build.family = text; });
  parser.option("--context", "N", "tokens of context (default: as the checkpoint says)",
                [&](const std::string& text) {
                  build.context_length = static_cast<int>(parse_integer(text, 1, kMaxInt));
                });
  parser.option("--rope-scaling", "yarn:FACTOR", "stretch the context by YaRN",
                [&](const std::string& text) { build.yarn_factor = parse_rope_scaling(text); });
  parser.option("--chat-template", "FILE", "a Jinja template in place of the checkpoint's own",
                [&](const std::string& text) { build.chat_template = text; });
  declare_threads(parser, command.threads);
  declare_log(parser, command.log);
  parser.parse(arguments, settings);
  check_log(parser, command.log);
  if (command.dry_run) {
    parser.refuse_without_effect("--force", "with --dry-run");
  } else {
    parser.require("--output");
  }
  return command;
}

PullCommand parse_pull_command(Arguments arguments, const Settings& settings) {
  PullCommand command;
  CommandParser parser("pull", "Download a checkpoint from the Hugging Face hub into its cache.");
  parser.positional("id", "the model: OWNER/NAME or OWNER/NAME@REVISION (default: main)", true,
                    [&](const std::string& text) { command.source = parse_hub_source(text); });
  declare_json(parser, command.json);
  declare_log(parser, command.log);
  parser.footer(
      "Prints the folder that holds the files. docs/hub.md has the environment variables.");
  parser.parse(arguments, settings);
  check_log(parser, command.log);
  return command;
}

ListCommand parse_list_command(Arguments arguments, const Settings& settings) {
  ListCommand command;
  CommandParser parser("list", "Print the checkpoints in the cache and the bundles in a folder.");
  parser.positional("folder", "where to look for bundles (default: here)", false,
                    path_into(command.folder));
  declare_json(parser, command.json);
  declare_log(parser, command.log);
  parser.parse(arguments, settings);
  check_log(parser, command.log);
  return command;
}

RmCommand parse_rm_command(Arguments arguments, const Settings& settings) {
  RmCommand command;
  CommandParser parser("rm", "Remove a checkpoint from the cache, or a bundle.");
  parser.positional("target", "OWNER/NAME, OWNER/NAME@REVISION, or a bundle's file", true,
                    [&](const std::string& text) { command.target = text; });
  parser.flag("--yes", "do not ask", command.yes);
  declare_log(parser, command.log);
  parser.parse(arguments, settings);
  check_log(parser, command.log);
  return command;
}

VerifyCommand parse_verify_command(Arguments arguments, const Settings& settings) {
  VerifyCommand command;
  CommandParser parser("verify", "Check a bundle: its hashes, and what else is asked for.");
  declare_bundle(parser, command.bundle);
  parser.option("--checkpoint", "PATH", "compare every weight with the checkpoint's",
                path_into(command.checkpoint));
  parser.option("--goldens", "FILE", "compare with recorded results of Transformers",
                path_into(command.goldens));
  declare_json(parser, command.json);
  declare_load(parser, command.load);
  declare_log(parser, command.log);
  parser.footer(
      "--backend on the command line compares that backend with reference.\n"
      "A check that fails ends with exit status 4.");
  parser.parse(arguments, settings);
  check_log(parser, command.log);
  command.compare_with_reference = parser.given("--backend");
  if (!command.compare_with_reference && command.goldens.empty()) {
    for (const std::string_view name :
         {"--threads", "--threads-batch", "--context", "--kv-memory", "--kv-type", "--activations",
          "--precision", "--fp32-layer", "--cpu-isa"}) {
      parser.refuse_without_effect(name, "without --backend or --goldens");
    }
  }
  return command;
}

InspectCommand parse_inspect_command(Arguments arguments, const Settings& settings) {
  InspectCommand command;
  CommandParser parser("inspect", "Print what a bundle holds.");
  declare_bundle(parser, command.bundle);
  parser.flag("--backends", "print which backends can run it, and why others can't",
              command.backends);
  declare_json(parser, command.json);
  declare_routes(parser, command.routes);
  declare_log(parser, command.log);
  parser.parse(arguments, settings);
  check_log(parser, command.log);
  if (command.backends) refuse_routes(parser, "with --backends");
  return command;
}

ExportCommand parse_export_command(Arguments arguments, const Settings& settings) {
  ExportCommand command;
  CommandParser parser("export", "Write a bundle's model in another format.");
  declare_bundle(parser, command.bundle);
  parser.option("--format", "FORMAT", "onnx: an ONNX model of opset 23 (default: onnx)",
                [](const std::string& text) { parse_name(text, kExportFormats); });
  parser.choices({std::begin(kExportFormats), std::end(kExportFormats)});
  parser.option("-o,--output", "DIR", "the folder to make", path_into(command.output));
  parser.option("--dtype", "TYPE", "f32, f16 or bf16: of weights and activations (default: f32)",
                [&](const std::string& text) {
                  command.onnx.type = kExportElements[parse_name(text, kExportTypes)];
                });
  parser.choices({std::begin(kExportTypes), std::end(kExportTypes)});
  parser.flag("--plain-operators",
              "for TensorRT, and for systems without opset 23's own norms and rotations",
              command.onnx.composed);
  declare_fp32_layers(parser, command.onnx.fp32_layers, "the model");
  declare_json(parser, command.json);
  declare_threads(parser, command.threads);
  declare_log(parser, command.log);
  parser.parse(arguments, settings);
  check_log(parser, command.log);
  parser.require("--output");
  return command;
}

}  // namespace trtmc
