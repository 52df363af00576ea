#include "cli/hub_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "cli/interrupts.h"
#include "cli/option_values.h"
#include "hub/curl_transport.h"

namespace trtmc {
namespace {

HubClient make_client(const HubSettings& settings) {
  return {settings, curl_transport_factory(settings.stall_timeout_s)};
}

// The lines that a download shows: what is fetched, how far it is, how long it took.
class PullLines {
 public:
  PullLines(const HubSource& source, bool with_progress, Console& console)
      : console_(console),
        name_(source.id.str()),
        with_progress_(with_progress),
        start_(std::chrono::steady_clock::now()) {}

  void show_resolved(const Snapshot& snapshot) {
    name_.append("@").append(short_commit(snapshot.commit));
    if (snapshot.downloaded_bytes == 0 || console_.quiet()) return;
    console_.note(fmt::format(
        "pulling   {}   {} files, {}{}\n", name_, snapshot.files.size(),
        format_bytes(snapshot.bytes),
        snapshot.downloaded_bytes == snapshot.bytes
            ? ""
            : fmt::format(", {} of them not here yet", format_bytes(snapshot.downloaded_bytes))));
  }

  void show_progress(uint64_t done, uint64_t total) {
    if (!with_progress_ || total == 0) return;
    if (!first_) first_ = done;  // What an earlier run fetched says nothing about the speed.
    const double seconds_so_far = seconds();
    const double rate = seconds_so_far > 0
                            ? static_cast<double>(done - std::min(done, *first_)) / seconds_so_far
                            : 0;
    console_.progress(fmt::format("pulling   {}   {} of {} {:>3} %  {}/s", name_,
                                  format_bytes(done), format_bytes(total), 100 * done / total,
                                  format_bytes(static_cast<uint64_t>(rate))));
  }

  void show_done(const Snapshot& snapshot) {
    console_.end_progress();
    if (snapshot.downloaded_bytes == 0 || console_.quiet()) return;
    console_.note(fmt::format("pulled    {}   {:<20} 100 %  {:.0f} s\n", name_,
                              format_bytes(snapshot.downloaded_bytes), seconds()));
  }

 private:
  double seconds() const {
    return milliseconds_between(start_, std::chrono::steady_clock::now()) / 1000;
  }

  Console& console_;
  std::string name_;
  bool with_progress_;
  SteadyTime start_;
  std::optional<uint64_t> first_;
};

}  // namespace

std::optional<HubSource> hub_source_of(std::string_view text) {
  const std::string_view id = text.substr(0, text.find('@'));
  // Nobody is asked for "models/a.gguf", which means a file, there or not.
  if (text.ends_with(".gguf")) return {};
  if (id.find('/') == id.npos || !parse_hub_id(id)) return {};
  return parse_hub_source(text);
}

Snapshot pull(const HubSource& source, Console& console,
              std::function<void(const std::string& config)> on_config) {
  const HubSettings settings = read_hub_settings(process_environment);
  PullLines lines(source, settings.progress, console);
  std::stop_source stop;
  const InterruptScope interrupt([&] { stop.request_stop(); });
  const PullObserver observer{
      .on_resolved = [&](const Snapshot& snapshot) { lines.show_resolved(snapshot); },
      .on_config = std::move(on_config),
      .on_progress = [&](uint64_t done, uint64_t total) { lines.show_progress(done, total); }};
  try {
    Snapshot snapshot = make_client(settings).pull(source, observer, stop.get_token());
    lines.show_done(snapshot);
    return snapshot;
  } catch (const DownloadStopped&) {
    console.end_progress();
    if (!console.quiet()) console.note("stopped; what has arrived is kept for the next time\n");
    throw Interrupted();
  }
}

Snapshot find_cached(const HubSource& source) {
  return make_client(read_hub_settings(process_environment)).cached(source);
}

}  // namespace trtmc
