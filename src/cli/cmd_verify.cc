#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/commands.h"
#include "verify/verify.h"

namespace trtmc {
namespace {

void append(VerifyReport& report, VerifyReport part) {
  std::move(part.checks.begin(), part.checks.end(), std::back_inserter(report.checks));
}

VerifyReport verify(const VerifyCommand& command) {
  const Bundle bundle(command.bundle);
  VerifyReport report = verify_hashes(bundle);
  if (!command.checkpoint.empty()) append(report, verify_checkpoint(bundle, command.checkpoint));
  if (command.compare_with_reference) {
    append(report, verify_backend(bundle, command.load.backend, command.load.executor));
  }
  if (!command.goldens.empty()) {
    const Json goldens = read_goldens(command.goldens);
    append(report, verify_goldens(bundle, command.load.backend, command.load.executor, goldens));
  }
  return report;
}

Json report_json(const VerifyReport& report) {
  Json::Array checks;
  for (const Check& check : report.checks) {
    Json json;
    json.set("name", check.name);
    json.set("figure", check.figure);
    json.set("threshold", check.threshold);
    json.set("at_most", check.at_most);
    json.set("note", check.note);
    json.set("passed", check.passed());
    checks.push_back(std::move(json));
  }
  Json json;
  json.set("passed", report.passed());
  json.set("checks", std::move(checks));
  return json;
}

std::string report_table(const VerifyReport& report) {
  size_t width = 0;
  for (const Check& check : report.checks) width = std::max(width, check.name.size());
  std::string table;
  for (const Check& check : report.checks) {
    table += fmt::format("{:<{}}  {:<6}  {:.6g}, {} {:.6g}{}{}\n", check.name, width,
                         check.passed() ? "passed" : "FAILED", check.figure,
                         check.at_most ? "at most" : "at least", check.threshold,
                         check.note.empty() ? "" : "  ", check.note);
  }
  return table;
}

}  // namespace

void execute(const VerifyCommand& command, Console& console) {
  console.configure_log(command.log);
  const VerifyReport report = verify(command);
  if (command.json) {
    console.print_json(report_json(report));
  } else {
    console.print(report_table(report));
  }
  if (report.passed()) return;
  const auto failed = std::count_if(report.checks.begin(), report.checks.end(),
                                    [](const Check& check) { return !check.passed(); });
  throw Error(ErrorCode::kCorrupt,
              fmt::format("{}: {} of {} checks failed", command.bundle.string(), failed,
                          report.checks.size()));
}

}  // namespace trtmc
