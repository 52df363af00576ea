#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/cpu_info.h"
#include "base/error.h"

namespace trtmc {
namespace {

// How often a waiting thread looks before it sleeps: about 0.1 ms, longer than the gaps between the
// runs of one step, short enough not to take a core from somebody else.
constexpr int kSpins = 2000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until `done()`: looks for a while, then sleeps on `condition`.
template <typename Done>
void spin_then_sleep(std::mutex& mutex, std::condition_variable& condition, Done done) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (done()) return;
    relax();
  }
  std::unique_lock lock(mutex);
  condition.wait(lock, done);
}

void wake(std::mutex& mutex, std::condition_variable& condition) {
  // Taking the lock orders the change before a sleeper's last look.
  { std::lock_guard lock(mutex); }
  condition.notify_all();
}

}  // namespace

struct ThreadPool::State {
  int num_threads;
  std::vector<std::thread> workers;

  std::atomic<uint64_t> round = 0;  // Rises with each run; its change starts the workers.
  std::atomic<int> running = 0;     // Workers that have not finished the round.
  std::atomic<bool> stop = false;   // Read after a round has started.
  FunctionRef<void(int)>* task = nullptr;

  std::mutex start_mutex, end_mutex;
  std::condition_variable start_condition, end_condition;

  void work(int thread) {
    for (uint64_t seen = 0;; ++seen) {
      spin_then_sleep(start_mutex, start_condition,
                      [&] { return round.load(std::memory_order_acquire) != seen; });
      if (stop.load(std::memory_order_relaxed)) return;
      (*task)(thread);
      if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) wake(end_mutex, end_condition);
    }
  }

  void start_round() {
    running.store(num_threads - 1, std::memory_order_relaxed);
    round.fetch_add(1, std::memory_order_release);
    wake(start_mutex, start_condition);
  }

  void join() {
    stop.store(true, std::memory_order_relaxed);
    start_round();
    for (std::thread& worker : workers) worker.join();
  }
};

ThreadPool::ThreadPool(int num_threads) : state_(std::make_unique<State>()) {
  TRTMC_CHECK(num_threads >= 1, "a thread pool has at least its caller");
  state_->num_threads = num_threads;
  const std::vector<int> cores = usable_cores();
  // With more threads than cores the scheduler must be free to move them.
  const bool pin = static_cast<size_t>(num_threads) <= cores.size();
  try {
    for (int thread = 1; thread < num_threads; ++thread) {
      state_->workers.emplace_back([state = state_.get(), thread] { state->work(thread); });
      if (!pin) continue;
      // The caller is not ours to pin; it goes where no worker is. A refused mask costs speed only.
      const size_t core = static_cast<size_t>(cores[static_cast<size_t>(thread)]);
      std::vector<cpu_set_t> mask(core / CPU_SETSIZE + 1);
      const size_t mask_bytes = mask.size() * sizeof(cpu_set_t);
      CPU_SET_S(core, mask_bytes, mask.data());
      pthread_setaffinity_np(state_->workers.back().native_handle(), mask_bytes, mask.data());
    }
  } catch (const std::system_error&) {
    state_->join();
    throw Error(ErrorCode::kExhausted,
                "the system refused to start " + std::to_string(num_threads) + " threads",
                "ask for fewer threads");
  }
}

ThreadPool::~ThreadPool() {
  if (state_) state_->join();
}

int ThreadPool::num_threads() const { return state_->num_threads; }

void ThreadPool::run(FunctionRef<void(int)> task) {
  if (state_->num_threads == 1) return task(0);
  state_->task = &task;
  state_->start_round();
  task(0);
  spin_then_sleep(state_->end_mutex, state_->end_condition,
                  [this] { return state_->running.load(std::memory_order_acquire) == 0; });
}

int ThreadPool::default_num_threads() {
  const int cores = static_cast<int>(usable_cores().size());
  const auto quota = cgroup_cpu_quota();
  // A thread beyond the quota would only make the group stall all of them.
  if (!quota || *quota >= cores) return cores;
  return std::max(1, static_cast<int>(*quota));
}

}  // namespace trtmc
