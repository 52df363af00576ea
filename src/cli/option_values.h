// The texts of option values as numbers, sizes and names. Every complaint reads on from the
// option's name: "--top-p: 1.5, expected a number from 0 to 1".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace trtmc {

// All of these throw kInvalidArgument. Numbers are read the same way in every locale.
int64_t parse_integer(std::string_view text, int64_t low, int64_t high);
uint64_t parse_unsigned(std::string_view text);
double parse_number(std::string_view text, double low, double high);
// "4096", "512 MiB", "8GiB": bytes, or a whole number of KiB, MiB, GiB or TiB.
uint64_t parse_bytes(std::string_view text);
// One of `names`; returns its index.
size_t parse_name(std::string_view text, std::span<const std::string_view> names);
bool parse_boolean(std::string_view text);  // true, false, 1, 0, yes, no, on, off

// The one of `names` that `text` was probably meant to be (at most a third of its letters differ),
// or empty.
std::string nearest_name(std::string_view text, std::span<const std::string> names);

// "37.8 MB": three digits, in powers of 1000.
std::string format_bytes(uint64_t bytes);
std::string format_count(uint64_t count);  // "3.08 B", "18.9 M", "512"

}  // namespace trtmc
