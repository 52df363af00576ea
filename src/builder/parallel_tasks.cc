#include "builder/parallel_tasks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

namespace trtmc {
namespace {

constexpr auto kProgressInterval = std::chrono::milliseconds(20);

// Ends a task whose result nobody wants any more.
struct Stopped {};

class Run {
 public:
  Run(std::vector<ParallelTask> tasks, const BuildProgress& progress)
      : tasks_(std::move(tasks)), progress_(progress) {
    std::stable_sort(tasks_.begin(), tasks_.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    for (const ParallelTask& task : tasks_) total_ += task.bytes;
  }

  // One thread's part. The caller's thread stays to the end, to report.
  void work(bool is_caller) {
    guarded([&] {
      for (size_t next; (next = next_task_.fetch_add(1)) < tasks_.size(); ++num_finished_) {
        tasks_[next].run([&](uint64_t bytes) {
          done_ += bytes;
          look_up(is_caller);
        });
      }
      while (is_caller && num_finished_ < tasks_.size()) {
        std::this_thread::sleep_for(kProgressInterval);
        look_up(is_caller);
      }
      look_up(is_caller);  // The end, whoever did the last task.
    });
  }

  void rethrow_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void look_up(bool is_caller) {
    if (failed_) throw Stopped();
    if (is_caller && progress_) progress_(done_, total_);
  }

  // Keeps the first exception, since none may leave a pool's thread.
  template <typename Body>
  void guarded(const Body& body) {
    try {
      body();
    } catch (...) {
      const std::lock_guard lock(failure_mutex_);
      if (!failure_) failure_ = std::current_exception();
      failed_ = true;
    }
  }

  std::vector<ParallelTask> tasks_;
  const BuildProgress& progress_;
  uint64_t total_ = 0;
  std::atomic<size_t> next_task_ = 0;
  std::atomic<size_t> num_finished_ = 0;
  std::atomic<uint64_t> done_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex failure_mutex_;
  std::exception_ptr failure_;  // Set before failed_, so never a Stopped.
};

}  // namespace

void run_tasks(std::vector<ParallelTask> tasks, ThreadPool& pool, const BuildProgress& progress) {
  Run run(std::move(tasks), progress);
  pool.run([&](int thread) { run.work(thread == 0); });
  run.rethrow_failure();
}

}  // namespace trtmc
