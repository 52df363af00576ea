#include "server/answer_channel.h"

#include <utility>

#include "base/error.h"
#include "server/api_error.h"
#include "server/sse.h"

namespace trtmc {
namespace {

class ChannelExchange final : public Exchange {
 public:
  ChannelExchange(HttpRequest request, std::shared_ptr<AnswerChannel> channel,
                  std::shared_ptr<void> body_hold)
      : Exchange(std::move(request), std::move(body_hold)), channel_(std::move(channel)) {}
  ~ChannelExchange() override { channel_->fail(AnswerChannel::Failure::kNoAnswer); }

  void respond(HttpResponse response) override { channel_->respond(std::move(response)); }
  void start_stream(HttpResponse head) override { channel_->start_stream(std::move(head)); }
  void write(std::string bytes) override { channel_->write(std::move(bytes)); }
  void end_stream() override { channel_->end_stream(); }
  void fail_for_memory() noexcept override { channel_->fail(AnswerChannel::Failure::kNoMemory); }
  bool is_gone() const override { return channel_->is_lost(); }
  void on_gone(std::function<void()> action) override { channel_->on_gone(std::move(action)); }
  void note_route(std::string_view pattern) override { channel_->note_route(pattern); }
  void note_model(std::string_view name) override { channel_->note_model(name); }
  void note_tokens(int prompt, int completion) override {
    channel_->note_tokens(prompt, completion);
  }

 private:
  const std::shared_ptr<AnswerChannel> channel_;
};

ApiError error_of(AnswerChannel::Failure failure) {
  if (failure == AnswerChannel::Failure::kNoMemory) {
    return api_error({ErrorCode::kExhausted, std::string(kOutOfMemory)});
  }
  return {.status = 500, .message = "the request was not answered", .type = "server_error"};
}

}  // namespace

AnswerChannel::AnswerChannel(std::function<void()> wake, const UnsentLimit& limit,
                             ServedRequestLog log)
    : wake_(std::move(wake)), limit_(limit), log_(std::move(log)) {}

AnswerChannel::~AnswerChannel() {
  if (!log_) return;
  served_.route = std::move(route_);
  served_.model = std::move(model_);
  served_.prompt_tokens = prompt_tokens_;
  served_.completion_tokens = completion_tokens_;
  try {
    log_(served_);
  } catch (...) {
    return;  // A line of the log is not worth the program.
  }
}

AnswerChannel::Output AnswerChannel::take() {
  std::unique_lock lock(mutex_);
  is_awake_ = false;
  Output taken = std::move(output_);
  output_ = {};
  output_.is_stream = taken.is_stream;
  output_.has_ended = taken.has_ended;
  output_.is_broken = taken.is_broken;
  const auto failure = std::exchange(failure_, std::nullopt);
  lock.unlock();
  if (!failure) return taken;
  if (taken.is_stream) {
    taken.bytes += error_event(error_of(*failure));
  } else {
    taken.head = error_response(error_of(*failure));
  }
  return taken;
}

void AnswerChannel::on_sent(size_t stream_bytes) {
  const std::lock_guard lock(mutex_);
  unsent_bytes_ -= stream_bytes;
}

void AnswerChannel::on_progress() {
  const std::lock_guard lock(mutex_);
  progress_ = std::chrono::steady_clock::now();
}

bool AnswerChannel::is_lost() const {
  const std::lock_guard lock(mutex_);
  return is_lost_;
}

bool AnswerChannel::is_too_much(size_t unsent_bytes) const {
  if (unsent_bytes <= limit_.bytes) return false;
  return unsent_bytes / UnsentLimit::kMostTimes > limit_.bytes ||
         std::chrono::steady_clock::now() - progress_ >= limit_.time;
}

void AnswerChannel::lose() {
  std::function<void()> action;
  {
    const std::lock_guard lock(mutex_);
    if (is_lost_ || output_.has_ended) return;
    is_lost_ = true;
    action = std::exchange(gone_action_, nullptr);
  }
  if (action) action();
}

void AnswerChannel::tell_connection(std::unique_lock<std::mutex>& lock) {
  const bool tell = !std::exchange(is_awake_, true);
  // What the action holds may be the last to hold this channel's maker.
  const std::function<void()> dropped =
      output_.has_ended ? std::exchange(gone_action_, nullptr) : nullptr;
  lock.unlock();
  if (tell) wake_();
}

void AnswerChannel::respond(HttpResponse response) {
  std::unique_lock lock(mutex_);
  if (is_over() || has_head_) return;
  has_head_ = true;
  output_.head = std::move(response);
  output_.has_ended = true;
  tell_connection(lock);
}

void AnswerChannel::start_stream(HttpResponse head) {
  std::unique_lock lock(mutex_);
  if (is_over() || has_head_) return;
  has_head_ = true;
  output_.is_stream = true;
  output_.bytes = std::move(head.body);
  unsent_bytes_ = output_.bytes.size();
  progress_ = std::chrono::steady_clock::now();
  head.body.clear();
  output_.head = std::move(head);
  tell_connection(lock);
}

void AnswerChannel::write(std::string bytes) {
  std::unique_lock lock(mutex_);
  if (is_over() || !output_.is_stream || bytes.empty()) return;
  if (unsent_bytes_ == 0) progress_ = std::chrono::steady_clock::now();  // It has taken all so far.
  const size_t unsent_bytes = unsent_bytes_ + bytes.size();
  if (is_too_much(unsent_bytes)) {
    output_.is_broken = true;
    output_.bytes.clear();
  } else if (output_.bytes.empty()) {
    output_.bytes = std::move(bytes);
  } else {
    output_.bytes += bytes;
  }
  unsent_bytes_ = unsent_bytes;
  tell_connection(lock);
}

void AnswerChannel::end_stream() {
  std::unique_lock lock(mutex_);
  if (is_over() || !output_.is_stream) return;
  output_.has_ended = true;
  tell_connection(lock);
}

void AnswerChannel::fail(Failure failure) noexcept {
  std::unique_lock lock(mutex_);
  if (is_over()) return;
  if (has_head_ && failure == Failure::kNoAnswer) {
    output_.is_broken = true;
  } else {
    failure_ = failure;
    output_.has_ended = true;
  }
  tell_connection(lock);
}

void AnswerChannel::on_gone(std::function<void()> action) {
  std::function<void()> dropped;  // Dies without the lock.
  std::unique_lock lock(mutex_);
  dropped = std::move(gone_action_);
  gone_action_ = nullptr;
  if (output_.has_ended) return lock.unlock();
  if (!is_lost_) {
    gone_action_ = std::move(action);
    return lock.unlock();
  }
  lock.unlock();
  action();
}

void AnswerChannel::note_route(std::string_view pattern) {
  const std::lock_guard lock(mutex_);
  route_ = pattern;
}

void AnswerChannel::note_model(std::string_view name) {
  const std::lock_guard lock(mutex_);
  model_ = name;
}

void AnswerChannel::note_tokens(int prompt, int completion) {
  const std::lock_guard lock(mutex_);
  prompt_tokens_ = prompt;
  completion_tokens_ = completion;
}

std::shared_ptr<Exchange> make_exchange(HttpRequest request, std::shared_ptr<AnswerChannel> channel,
                                        std::shared_ptr<void> body_hold) {
  return std::make_shared<ChannelExchange>(std::move(request), std::move(channel),
                                           std::move(body_hold));
}

}  // namespace trtmc
