#include "cli/console.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/utf8.h"

namespace trtmc {
namespace {

constexpr uint64_t kMaxTextBytes = uint64_t{1} << 30;
constexpr size_t kMaxReportBytes = 4096;  // Of a sentence: it may quote what a file holds.

// False with errno set if not everything could be written.
bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

bool is_control(char32_t value) {
  return (value < 0x20 && value != '\n' && value != '\t') || (value >= 0x7f && value < 0xa0);
}

// Appends every line, as text with its time, flushed, so that it can be followed. The first one
// that can't be written is complained about.
LogSink log_to_file(const std::filesystem::path& path, LogFormat format,
                    std::function<void(std::string)> complain) {
  const std::shared_ptr<std::FILE> file(std::fopen(path.c_str(), "ae"), [](std::FILE* f) {
    if (f != nullptr) std::fclose(f);
  });
  if (!file) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--log-file {}: {}", path.string(), std::strerror(errno)));
  }
  return [file, path, format, complain = std::move(complain), failed = false](
             LogLevel level, std::string_view line) mutable {
    const std::string text =
        format == LogFormat::kJson
            ? fmt::format("{}\n", line)
            : fmt::format("{:%Y-%m-%dT%H:%M:%SZ} {:<7} {}\n", fmt::gmtime(std::time(nullptr)),
                          to_string(level), line);
    const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
                         std::fflush(file.get()) == 0;
    if (written || std::exchange(failed, true)) return;
    complain(fmt::format("--log-file {}: {}; lines are missing there", path.string(),
                         std::strerror(errno)));
  };
}

}  // namespace

Console::Console(int out, int err)
    : out_(out),
      err_(err),
      out_is_terminal_(isatty(out) == 1),
      err_is_terminal_(isatty(err) == 1) {}

void Console::print(std::string_view text) {
  const bool done =
      out_is_terminal_ ? write_all(out_, escape_controls(text)) : write_all(out_, text);
  if (done) return;
  if (errno == EPIPE) throw OutputClosed();
  const bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  throw Error(full ? ErrorCode::kExhausted : ErrorCode::kInvalidArgument,
              fmt::format("standard output: {}", std::strerror(errno)));
}

void Console::print_json(const Json& json) { print(json.dump() + "\n"); }

// What can't be said on standard error can't be said at all, so failures end here.
void Console::write_err(std::string_view bytes) { write_all(err_, bytes); }

void Console::note(std::string_view text) {
  end_progress();
  write_err(err_is_terminal_ ? escape_controls(text) : std::string(text));
}

void Console::dim(std::string_view text) {
  if (!err_is_terminal_) return note(text);
  write_err("\x1b[2m" + escape_controls(text) + "\x1b[22m");
}

void Console::progress(std::string_view line) {
  if (!err_is_terminal_ || quiet_) return;
  write_err("\r\x1b[K" + escape_controls(line));
  progress_shown_ = true;
}

void Console::end_progress() {
  if (!progress_shown_) return;
  write_err("\r\x1b[K");
  progress_shown_ = false;
}

void Console::report(const Error& error) {
  std::string sentence = error.what();
  if (sentence.size() > kMaxReportBytes) {
    sentence.resize(kMaxReportBytes);
    sentence.resize(kMaxReportBytes - incomplete_utf8_tail(sentence));
    sentence += "…";
  }
  note(fmt::format("trtmc: {}\n", sentence));
  if (!error.hint().empty()) note(fmt::format("hint: {}\n", error.hint()));
}

LogSink Console::configure_log(const LogOptions& options) {
  quiet_ = options.quiet;
  set_log_level(options.quiet     ? LogLevel::kError
                : options.verbose ? LogLevel::kDebug
                                  : LogLevel::kInfo);
  set_log_format(options.format);
  if (!options.file.empty()) {
    const auto complain = [this](const std::string& what) {
      note(fmt::format("warning: {}\n", what));
    };
    LogSink sink = log_to_file(options.file, options.format, complain);
    set_log_sink(sink);
    return sink;
  }
  LogSink sink = [this, format = options.format](LogLevel level, std::string_view line) {
    const bool is_plain = level < LogLevel::kWarning || format == LogFormat::kJson;
    note(is_plain ? fmt::format("{}\n", line) : fmt::format("{}: {}\n", to_string(level), line));
  };
  set_log_sink(sink);
  return sink;
}

std::string escape_controls(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const auto point = decode_utf8(text);
    const auto length = point ? static_cast<size_t>(point->length) : 1;
    if (point && !is_control(point->value)) {
      escaped += text.substr(0, length);
    } else {
      const auto value = point ? static_cast<uint32_t>(point->value)
                               : static_cast<uint32_t>(static_cast<unsigned char>(text[0]));
      escaped += fmt::format("\\x{:02x}", value);
    }
    text.remove_prefix(length);
  }
  return escaped;
}

std::string read_text(const TextSource& source, std::string_view what) {
  if (source.argument) return *source.argument;
  return read_text(source.file, what);
}

std::string read_text(const std::filesystem::path& file, std::string_view what) {
  if (!file.empty()) return read_file(file, kMaxTextBytes);
  if (isatty(0) == 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("standard input is a terminal, expected {} there", what),
                "pipe it in, or use --file FILE");
  }
  return read_file("-", kMaxTextBytes);
}

Json read_json(const std::filesystem::path& file, std::string_view what) {
  const std::string text = read_text(file, what);
  return with_context(file.empty() ? "standard input" : file.string(),
                      [&] { return Json::parse(text); });
}

}  // namespace trtmc
