#include "cli/option_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"

namespace trtmc {
namespace {

[[noreturn]] void refuse(std::string_view text, std::string_view expected) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("\"{}\", expected {}", text, expected));
}

// The whole of `text` as a T, or nothing of it.
template <typename T>
bool read_all(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// Insertions, deletions, replacements and swaps of neighbours that lead from `a` to `b`.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1,
                             cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

// Three digits of `value` and the largest unit that leaves at least 1.
std::string with_unit(double value, std::span<const std::string_view> units) {
  size_t unit = 0;
  // 999.5 would round to "1000".
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}{}", value, decimals, units[unit].empty() ? "" : " ", units[unit]);
}

}  // namespace

int64_t parse_integer(std::string_view text, int64_t low, int64_t high) {
  int64_t value = 0;
  if (read_all(text, value) && value >= low && value <= high) return value;
  // A bound as large as that of an int is worth its place only where it was what stood in the way.
  const bool digits = text.size() >= 10 && text.find_first_not_of("0123456789") == text.npos;
  const bool bounded = digits || high < 1'000'000'000;
  refuse(text, bounded ? fmt::format("a whole number from {} to {}", low, high)
                       : fmt::format("a whole number from {} on", low));
}

uint64_t parse_unsigned(std::string_view text) {
  uint64_t value = 0;
  if (read_all(text, value)) return value;
  refuse(text, "a whole number from 0 to 18446744073709551615");
}

double parse_number(std::string_view text, double low, double high) {
  double value = 0;
  if (read_all(text, value) && std::isfinite(value) && value >= low && value <= high) return value;
  const bool has_low = std::isfinite(low), has_high = std::isfinite(high);
  refuse(text, has_low && has_high ? fmt::format("a number from {} to {}", low, high)
               : has_low           ? fmt::format("a number from {} on", low)
                                   : std::string("a number"));
}

uint64_t parse_bytes(std::string_view text) {
  const std::string_view given = text;
  int shift = 0;
  constexpr std::string_view kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  for (int unit = 0; unit < 4; ++unit) {
    if (!text.ends_with(kUnits[unit])) continue;
    text.remove_suffix(kUnits[unit].size());
    if (text.ends_with(' ')) text.remove_suffix(1);
    shift = 10 * (unit + 1);
    break;
  }
  uint64_t count = 0;
  if (!read_all(text, count)) refuse(given, "a size such as 4294967296, 512MiB or 8GiB");
  if (count > (std::numeric_limits<uint64_t>::max() >> shift)) refuse(given, "less than 16 EiB");
  return count << shift;
}

size_t parse_name(std::string_view text, std::span<const std::string_view> names) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  refuse(text, fmt::format("one of {}", fmt::join(names, ", ")));
}

bool parse_boolean(std::string_view text) {
  constexpr std::string_view kNames[] = {"true", "1", "yes", "on", "false", "0", "no", "off"};
  return parse_name(text, kNames) < 4;
}

std::string nearest_name(std::string_view text, std::span<const std::string> names) {
  constexpr size_t kLongestName = 64;
  if (text.size() > kLongestName) return "";
  std::string best;
  size_t best_distance = std::max<size_t>(1, text.size() / 3) + 1;
  for (const std::string& name : names) {
    const size_t distance = edit_distance(text, name);
    if (distance >= best_distance) continue;
    best = name;
    best_distance = distance;
  }
  return best;
}

std::string format_bytes(uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  return with_unit(static_cast<double>(bytes), kUnits);
}

std::string format_count(uint64_t count) {
  constexpr std::string_view kUnits[] = {"", "k", "M", "B", "T"};
  return with_unit(static_cast<double>(count), kUnits);
}

}  // namespace trtmc
