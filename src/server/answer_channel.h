// One answer between those who make it, on any thread, and the connection that sends it. The maker
// has the Exchange, the connection the channel.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/exchange.h"
#include "server/served_request.h"

namespace trtmc {

// Of a stream's bytes that its client has not taken. What comes at once may be more than what a
// client of good will can take at once.
struct UnsentLimit {
  size_t bytes = size_t{1} << 20;           // More of them end the stream if for
  std::chrono::milliseconds time{1'000};    // that long none has been taken.
  static constexpr size_t kMostTimes = 64;  // So many times the bytes end it anyway.
};

class AnswerChannel {
 public:
  // `wake` tells the connection that take() has something; it may be called by any thread, and must
  // not throw.
  AnswerChannel(std::function<void()> wake, const UnsentLimit& limit, ServedRequestLog log);
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
  void on_progress();                 // The client has taken bytes.
  void on_sent(size_t stream_bytes);  // Of those taken.
  bool is_lost() const;               // See lose().
  // The client is gone: whoever makes the answer is told. Once; nothing after the end.
  void lose();
  ServedRequest& served() { return served_; }  // The connection's until it drops the channel.

  // The maker's.

  void respond(HttpResponse response);
  void start_stream(HttpResponse head);
  void write(std::string bytes);
  void end_stream();
  // Instead of what is left. kNoAnswer: 500, or a stream breaks off. kNoMemory: 503, or a last
  // event of a stream. What is said is made by the connection's side: this needs no memory.
  enum class Failure { kNoAnswer, kNoMemory };
  void fail(Failure failure) noexcept;
  void on_gone(std::function<void()> action);
  void note_route(std::string_view pattern);
  void note_model(std::string_view name);
  void note_tokens(int prompt, int completion);

 private:
  bool is_too_much(size_t unsent_bytes) const;
  bool is_over() const { return is_lost_ || output_.has_ended || output_.is_broken; }
  void tell_connection(std::unique_lock<std::mutex>& lock);

  const std::function<void()> wake_;
  const UnsentLimit limit_;
  const ServedRequestLog log_;
  ServedRequest served_;

  mutable std::mutex mutex_;        // Of all below.
  Output output_;                   // has_ended and is_broken stay, the rest goes when it is taken.
  std::optional<Failure> failure_;  // Not said yet.
  bool has_head_ = false;
  bool is_lost_ = false;
  bool is_awake_ = false;  // The connection knows already.
  size_t unsent_bytes_ = 0;
  // When the client last took bytes, or nothing was unsent.
  std::chrono::steady_clock::time_point progress_ = std::chrono::steady_clock::now();
  std::function<void()> gone_action_;
  std::string route_, model_;
  std::optional<int> prompt_tokens_, completion_tokens_;
};

// The maker's end of `channel`. `body_hold` goes when the request's body does.
std::shared_ptr<Exchange> make_exchange(HttpRequest request, std::shared_ptr<AnswerChannel> channel,
                                        std::shared_ptr<void> body_hold = {});

}  // namespace trtmc
