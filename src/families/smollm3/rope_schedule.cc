#include "families/smollm3/rope_schedule.h"

#include <fmt/format.h>

namespace trtmc {
namespace {

constexpr int64_t kDefaultInterval = 4;

bool read_flag(const JsonCursor& entry) {
  if (const bool* flag = entry.json().boolean()) return *flag;
  if (const int64_t* flag = entry.json().integer(); flag != nullptr && (*flag == 0 || *flag == 1))
    return *flag == 1;
  entry.fail(fmt::format("{}, expected 0, 1, true or false", entry.json().dump()));
}

std::vector<bool> from_list(const JsonCursor& list, int num_layers) {
  const std::vector<JsonCursor> entries = list.elements();
  if (entries.size() < static_cast<size_t>(num_layers)) {
    list.fail(fmt::format("{} entries, expected one for each of the {} layers", entries.size(),
                          num_layers));
  }
  std::vector<bool> rotates;
  rotates.reserve(entries.size());
  for (const JsonCursor& entry : entries) rotates.push_back(read_flag(entry));
  rotates.resize(static_cast<size_t>(num_layers));
  return rotates;
}

}  // namespace

std::vector<bool> rope_schedule(const JsonCursor& config, int num_layers) {
  if (const auto list = config.find_set("no_rope_layers")) return from_list(*list, num_layers);
  int64_t interval = kDefaultInterval;
  if (const auto given = config.find("no_rope_layer_interval")) {
    interval = given->integer();
    if (interval < 1) given->fail(fmt::format("{}, expected 1 or more", interval));
  }
  std::vector<bool> rotates;
  rotates.reserve(static_cast<size_t>(num_layers));
  for (int layer = 0; layer < num_layers; ++layer) rotates.push_back((layer + 1) % interval != 0);
  return rotates;
}

}  // namespace trtmc
