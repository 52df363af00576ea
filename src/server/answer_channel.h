// One answer between those who make it, on any thread, and the connection that sends it. The maker
// has the Exchange, the connection the channel.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/exchange.h"
#include "server/served_request.h"

namespace trtmc {

class AnswerChannel {
 public:
  // `wake` tells the connection that take() has something; it may be called by any thread.
  AnswerChannel(std::function<void()> wake, size_t max_unsent_bytes, ServedRequestLog log);
  ~AnswerChannel();  // Logs.
  AnswerChannel(const AnswerChannel&) = delete;

  // The connection's side.

  struct Output {
    std::optional<HttpResponse> head;  // Once.
    bool is_stream = false;            // Else the head has the whole body.
    std::string bytes;                 // Of a stream.
    bool has_ended = false;
    bool is_broken = false;  // Too much was unsent, or the maker died within a stream.
  };
  Output take();
  void on_sent(size_t stream_bytes);  // Of those taken.
  // The client is gone: whoever makes the answer is told. Once; nothing after the end.
  void lose();
  ServedRequest& served() { return served_; }  // The connection's until it drops the channel.

  // The maker's.

  void respond(HttpResponse response);
  void start_stream(HttpResponse head);
  void write(std::string bytes);
  void end_stream();
  // The maker is gone. Where there is no memory to say so, the connection is broken off.
  void abandon() noexcept;
  void on_gone(std::function<void()> action);
  void note_route(std::string_view pattern);
  void note_model(std::string_view name);
  void note_tokens(int prompt, int completion);

 private:
  bool is_over() const { return is_lost_ || output_.has_ended || output_.is_broken; }
  bool has_begun();
  void break_off();
  void tell_connection(std::unique_lock<std::mutex>& lock);

  const std::function<void()> wake_;
  const size_t max_unsent_bytes_;
  const ServedRequestLog log_;
  ServedRequest served_;

  std::mutex mutex_;  // Of all below.
  Output output_;     // has_ended and is_broken stay, the rest goes when it is taken.
  bool has_head_ = false;
  bool is_lost_ = false;
  bool is_awake_ = false;  // The connection knows already.
  size_t unsent_bytes_ = 0;
  std::function<void()> gone_action_;
  std::string route_, model_;
  std::optional<int> prompt_tokens_, completion_tokens_;
};

// The maker's end of `channel`.
std::shared_ptr<Exchange> make_exchange(HttpRequest request,
                                        std::shared_ptr<AnswerChannel> channel);

}  // namespace trtmc
