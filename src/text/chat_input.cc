#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

#include "base/error.h"
#include "text/chat_template.h"

namespace trtmc {
namespace {

// What a template gets by name already.
constexpr std::string_view kTakenNames[] = {"messages", "tools", "add_generation_prompt"};

Json read_objects(const JsonCursor& list) {
  for (const JsonCursor& element : list.elements()) element.members();  // Refuses all but objects.
  return list.json();
}

Json::Object read_kwargs(const JsonCursor& kwargs) {
  for (const auto& [name, value] : kwargs.members()) {
    if (std::find(std::begin(kTakenNames), std::end(kTakenNames), name) != std::end(kTakenNames)) {
      value.fail("this name is taken, give it beside chat_template_kwargs");
    }
  }
  return *kwargs.json().object();
}

// The number that all of `text` is, if it is digits only.
std::optional<int> digits(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool signed_text = text.starts_with('-');
  if (error != std::errc() || end != text.data() + text.size() || signed_text) return std::nullopt;
  return value;
}

}  // namespace

ChatInput chat_input_from_json(const Json& request, const std::tm& local_time) {
  ChatInput input;
  input.local_time = local_time;
  if (request.array()) {
    input.messages = read_objects(JsonCursor(request, "messages"));
    return input;
  }
  const JsonCursor cursor(request);
  cursor.refuse_unknown_keys(
      {"messages", "tools", "add_generation_prompt", "chat_template_kwargs"});
  input.messages = read_objects(cursor.at("messages"));
  if (const auto tools = cursor.find_set("tools")) {
    input.tools = read_objects(*tools);
  }
  if (const auto add = cursor.find_set("add_generation_prompt")) {
    input.add_generation_prompt = add->boolean();
  }
  if (const auto kwargs = cursor.find_set("chat_template_kwargs")) {
    input.template_kwargs = read_kwargs(*kwargs);
  }
  return input;
}

std::tm parse_date(std::string_view date) {
  using namespace std::chrono;
  const auto refuse = [&]() {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\" is no date, expected one like 2026-09-04", date));
  };
  if (date.size() != 10 || date[4] != '-' || date[7] != '-') refuse();
  const auto year_number = digits(date.substr(0, 4)), month_number = digits(date.substr(5, 2)),
             day_number = digits(date.substr(8, 2));
  if (!year_number || !month_number || !day_number) refuse();
  const year_month_day day{year{*year_number}, month{static_cast<unsigned>(*month_number)},
                           std::chrono::day{static_cast<unsigned>(*day_number)}};
  if (!day.ok() || *year_number < 1) refuse();  // As in Python.
  std::tm time{};
  time.tm_year = *year_number - 1900;
  time.tm_mon = *month_number - 1;
  time.tm_mday = *day_number;
  time.tm_hour = 12;
  time.tm_wday = static_cast<int>(weekday{sys_days{day}}.c_encoding());
  time.tm_yday = static_cast<int>((sys_days{day} - sys_days{day.year() / 1 / 1}).count());
  time.tm_isdst = -1;
  return time;
}

}  // namespace trtmc
