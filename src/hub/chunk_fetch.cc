#include "hub/chunk_fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace trtmc {
namespace {

// An attempt that brings less than this does not count as progress, so that a server can't keep a
// download going for ever.
constexpr uint64_t kProgressBytes = 1 << 20;

// The number at the start of `text`, which is taken off.
std::optional<uint64_t> take_number(std::string_view& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return {};
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

void refuse_size(uint64_t said, uint64_t expected) {
  if (said == expected) return;
  throw Error(ErrorCode::kCorrupt, fmt::format("the server sends a file of {} bytes, but its list "
                                               "says {}",
                                               said, expected));
}

// "bytes 0-99/1234" (RFC 9110, 14.4) must begin at `first` and be of a file of `bytes`.
void check_content_range(const std::string& header, uint64_t first, uint64_t bytes) {
  constexpr std::string_view kUnit = "bytes ";
  std::string_view rest = header;
  const auto refuse = [&] {
    throw Error(ErrorCode::kCorrupt, fmt::format("the server sends another part than the one from "
                                                 "byte {} that was asked for",
                                                 first));
  };
  if (!rest.starts_with(kUnit)) refuse();
  rest.remove_prefix(kUnit.size());
  if (take_number(rest) != first) refuse();
  const size_t slash = rest.find('/');
  if (slash == rest.npos) return;
  rest.remove_prefix(slash + 1);
  if (const auto total = take_number(rest)) refuse_size(*total, bytes);
}

void check_content_length(const FetchResponse& response, uint64_t bytes) {
  const std::string header = response.header("content-length");
  std::string_view rest = header;
  if (const auto length = take_number(rest)) refuse_size(*length, bytes);
}

void append(FileFetch& file, size_t chunk, std::span<const std::byte> bytes) {
  const PartialFile& partial = file.partial;
  const uint64_t room = partial.chunk_end(chunk) - partial.chunk_begin(chunk) - partial.done(chunk);
  if (bytes.size() > room) {
    throw Error(ErrorCode::kCorrupt, "the server sends more bytes than were asked for");
  }
  file.partial.append(chunk, bytes);
  file.received += bytes.size();
}

bool is_done(const PartialFile& partial, size_t chunk) {
  return partial.done(chunk) == partial.chunk_end(chunk) - partial.chunk_begin(chunk);
}

// One attempt at the rest of a chunk.
void receive_chunk(HubConnection& connection, FileFetch& file, size_t chunk) {
  PartialFile& partial = file.partial;
  const HubConnection::Range range{partial.chunk_begin(chunk) + partial.done(chunk),
                                   partial.chunk_end(chunk) - 1};
  const bool is_whole = range.first == 0 && range.last + 1 == file.bytes;
  bool checked = false;
  connection.get(file.path, range,
                 [&](const FetchResponse& response, std::span<const std::byte> bytes) {
                   if (response.status == 200 && !is_whole) file.ranges_ignored = true;
                   if (file.ranges_ignored) return false;
                   if (!checked && response.status == 200) {
                     check_content_length(response, file.bytes);
                   } else if (!checked) {
                     check_content_range(response.header("content-range"), range.first, file.bytes);
                   }
                   checked = true;
                   append(file, chunk, bytes);
                   return true;
                 });
  if (!file.ranges_ignored && !is_done(partial, chunk)) {
    throw TransientFailure{"the server ended its answer early", 0};
  }
}

void receive_whole(HubConnection& connection, FileFetch& file) {
  PartialFile& partial = file.partial;
  file.received -= partial.total_done();
  for (size_t chunk = 0; chunk < partial.num_chunks(); ++chunk) partial.restart(chunk);
  size_t chunk = 0;
  connection.get(
      file.path, {}, [&](const FetchResponse& response, std::span<const std::byte> bytes) {
        check_content_length(response, file.bytes);
        while (!bytes.empty()) {
          if (chunk < partial.num_chunks() && is_done(partial, chunk)) ++chunk;
          if (chunk == partial.num_chunks()) {
            throw Error(ErrorCode::kCorrupt, "the server sends more bytes than its list says");
          }
          const uint64_t room =
              partial.chunk_end(chunk) - partial.chunk_begin(chunk) - partial.done(chunk);
          const auto part = bytes.first(std::min<uint64_t>(bytes.size(), room));
          append(file, chunk, part);
          bytes = bytes.subspan(part.size());
        }
        return true;
      });
  if (!partial.complete()) throw TransientFailure{"the server ended its answer early", 0};
}

}  // namespace

void fetch_chunk(HubConnection& connection, FileFetch& file, size_t chunk,
                 const RetryPolicy& policy, const std::stop_token& stop) {
  Retry retry(policy, stop);
  while (!file.ranges_ignored && !is_done(file.partial, chunk)) {
    const uint64_t before = file.partial.done(chunk);
    try {
      receive_chunk(connection, file, chunk);
    } catch (const TransientFailure& failure) {
      if (file.partial.done(chunk) - before >= kProgressBytes) retry.note_progress();
      retry.wait_after(failure);
    }
  }
}

void fetch_whole(HubConnection& connection, FileFetch& file, const RetryPolicy& policy,
                 const std::stop_token& stop) {
  Retry retry(policy, stop);
  while (!file.partial.complete()) {
    try {
      receive_whole(connection, file);
    } catch (const TransientFailure& failure) {
      retry.wait_after(failure);
    }
  }
}

}  // namespace trtmc
