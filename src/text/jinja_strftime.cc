#include "text/jinja_strftime.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "text/jinja_limits.h"

namespace trtmc::jinja {
namespace {

constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};

std::string_view day_name(const std::tm& time) { return kDays[(time.tm_wday % 7 + 7) % 7]; }
std::string_view month_name(const std::tm& time) { return kMonths[(time.tm_mon % 12 + 12) % 12]; }
int hour12(const std::tm& time) { return (time.tm_hour + 11) % 12 + 1; }

// The ISO 8601 year and week.
std::pair<int, int> iso_week(const std::tm& time) {
  const int weekday = (time.tm_wday + 6) % 7;  // Monday is 0.
  int year = time.tm_year + 1900;
  int week = (time.tm_yday - weekday + 10) / 7;
  const auto weeks_in = [](int of_year) {
    const auto last_day = [](int y) { return (y + y / 4 - y / 100 + y / 400) % 7; };
    return last_day(of_year) == 4 || last_day(of_year - 1) == 3 ? 53 : 52;
  };
  if (week < 1) {
    --year;
    week = weeks_in(year);
  } else if (week > weeks_in(year)) {
    ++year;
    week = 1;
  }
  return {year, week};
}

// A directive that is a number; `width` digits with zeros in front.
struct Number {
  int value, width;
};

std::optional<Number> number_of(char directive, const std::tm& time) {
  const int year = time.tm_year + 1900;
  switch (directive) {
    case 'd':
      return Number{time.tm_mday, 2};
    case 'm':
      return Number{time.tm_mon + 1, 2};
    case 'y':
      return Number{year % 100, 2};
    case 'Y':
      return Number{year, 0};
    case 'C':
      return Number{year / 100, 2};
    case 'H':
      return Number{time.tm_hour, 2};
    case 'I':
      return Number{hour12(time), 2};
    case 'M':
      return Number{time.tm_min, 2};
    case 'S':
      return Number{time.tm_sec, 2};
    case 'j':
      return Number{time.tm_yday + 1, 3};
    case 'w':
      return Number{time.tm_wday, 1};
    case 'u':
      return Number{time.tm_wday == 0 ? 7 : time.tm_wday, 1};
    case 'U':
      return Number{(time.tm_yday + 7 - time.tm_wday) / 7, 2};
    case 'W':
      return Number{(time.tm_yday + 7 - (time.tm_wday + 6) % 7) / 7, 2};
    case 'G':
      return Number{iso_week(time).first, 4};
    case 'g':
      return Number{iso_week(time).first % 100, 2};
    case 'V':
      return Number{iso_week(time).second, 2};
    case 'f':
      return Number{0, 6};
    default:
      return std::nullopt;
  }
}

std::string expand(char directive, const std::tm& time, char flag) {
  if (const auto number = number_of(directive, time)) {
    return flag == '-' ? std::to_string(number->value)
                       : fmt::format("{:0{}d}", number->value, number->width);
  }
  switch (directive) {
    case 'a':
      return std::string(day_name(time).substr(0, 3));
    case 'A':
      return std::string(day_name(time));
    case 'b':
    case 'h':
      return std::string(month_name(time).substr(0, 3));
    case 'B':
      return std::string(month_name(time));
    case 'p':
      return time.tm_hour < 12 ? "AM" : "PM";
    case 'P':
      return time.tm_hour < 12 ? "am" : "pm";
    case 'e':
      return fmt::format("{:{}d}", time.tm_mday, flag == '-' ? 1 : 2);
    case 'k':
      return fmt::format("{:{}d}", time.tm_hour, flag == '-' ? 1 : 2);
    case 'l':
      return fmt::format("{:{}d}", hour12(time), flag == '-' ? 1 : 2);
    case 'c':
      return format_time(time, "%a %b %e %H:%M:%S %Y");
    case 'x':
    case 'D':
      return format_time(time, "%m/%d/%y");
    case 'X':
    case 'T':
      return format_time(time, "%H:%M:%S");
    case 'F':
      return format_time(time, "%Y-%m-%d");
    case 'R':
      return format_time(time, "%H:%M");
    case 'r':
      return format_time(time, "%I:%M:%S %p");
    case 'n':
      return "\n";
    case 't':
      return "\t";
    case '%':
      return "%";
    case 'z':  // Empty for a datetime without a time zone, which this is.
    case 'Z':
      return "";
    default:
      fail_unsupported(fmt::format("the date format %{} is not supported", directive));
  }
}

}  // namespace

std::string format_time(const std::tm& time, std::string_view format) {
  std::string result;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      result += format[i];
      continue;
    }
    char flag = '\0';
    if (i + 1 < format.size() && format[i + 1] == '-') flag = format[++i];
    if (++i == format.size()) {
      fail_unsupported("a date format that ends in % is not supported");
    }
    result += expand(format[i], time, flag);
  }
  return result;
}

}  // namespace trtmc::jinja
