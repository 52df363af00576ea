// What the functions of the C interface are made of. No exception leaves one of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "trtmc/trtmc.h"
#include "trtmc/trtmc_c.h"

struct trtmc_error {
  trtmc::Error error;
};
struct trtmc_model {
  trtmc::Model model;
};

namespace trtmc::c {

// Of the exception that is being handled.
trtmc_status report(trtmc_error** error) noexcept;

template <typename Body>
trtmc_status guarded(trtmc_error** error, Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return TRTMC_OK;
  } catch (...) {
    return report(error);
  }
}

template <typename T>
T& require(T* pointer, const char* name) {
  if (pointer != nullptr) return *pointer;
  throw Error(ErrorCode::kInvalidArgument, std::string(name) + ": NULL");
}

// An array of the caller's; it may be NULL if it is empty.
template <typename T>
std::span<T> require(T* pointer, size_t count, const char* name) {
  if (count > 0) require(pointer, name);
  return {pointer, count};
}

inline const char* or_empty(const char* text) { return text == nullptr ? "" : text; }

// Throws for the size that a struct says it has if no header gives it that one. Structs grow by
// whole words, so that no pointer is ever read by half.
void require_size(size_t size, const char* name);

// What the caller's header knows of `given`, the rest as in `defaults`.
template <typename Options>
Options read_options(const Options* given, Options defaults) {
  static_assert(sizeof(Options) % sizeof(size_t) == 0);
  if (given == nullptr) return defaults;
  require_size(given->size, "options");
  if (given->size > sizeof(Options)) {
    throw Error(ErrorCode::kInvalidArgument,
                "options: " + std::to_string(given->size) + " bytes, expected at most " +
                    std::to_string(sizeof(Options)),
                "a newer header needs a newer library");
  }
  std::memcpy(&defaults, given, given->size);
  return defaults;
}

// For a field that a later version may give a meaning: what is there would change its own.
inline void require_zero(int32_t reserved) {
  if (reserved == 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              "options: reserved is " + std::to_string(reserved) + ", expected 0",
              "set options by their _INIT macro first");
}

// The caller's struct to fill.
template <typename Struct>
Struct& require_struct(Struct* target, const char* name) {
  require_size(require(target, name).size, name);
  return *target;
}

// Fills as much of the caller's struct as its header knows.
template <typename Struct>
void write_struct(Struct& target, Struct value) {
  static_assert(sizeof(Struct) % sizeof(size_t) == 0);
  value.size = target.size;
  std::memcpy(&target, &value, std::min(target.size, sizeof(Struct)));
}

// A copy that trtmc_free() frees; with a zero byte after it.
template <typename T>
T* copy_out(std::span<const T> values) {
  auto* const copy = static_cast<T*>(std::calloc(values.size() + 1, sizeof(T)));
  if (copy == nullptr) throw std::bad_alloc();
  std::copy(values.begin(), values.end(), copy);
  return copy;
}

inline char* copy_out(const std::string& text) { return copy_out(std::span<const char>(text)); }

inline std::vector<int32_t> token_ids(const int32_t* ids, size_t count) {
  const std::span<const int32_t> span = require(ids, count, "ids");
  return {span.begin(), span.end()};
}

inline std::string_view text_view(const char* text, size_t length) {
  const std::span<const char> span = require(text, length, "text");
  return {span.data(), span.size()};
}

}  // namespace trtmc::c
