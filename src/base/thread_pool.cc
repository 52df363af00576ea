#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
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

// How long a waiting thread looks before it sleeps: longer than the gaps between the runs of one
// step, short enough that the thread it waits for, if another process took its core, gets this one.
constexpr auto kSpinTime = std::chrono::microseconds(100);
constexpr int kLooksPerTime = 32;  // A look is cheaper than the time.

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
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int look = 0; look < kLooksPerTime; ++look) {
      if (done()) return;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  std::unique_lock lock(mutex);
  condition.wait(lock, done);
}

void wake(std::mutex& mutex, std::condition_variable& condition) {
  // Taking the lock orders the change before a sleeper's last look.
  { std::lock_guard lock(mutex); }
  condition.notify_all();
}

// A round as its threads see it, in one word so that entering and closing it exclude each other.
struct Round {
  static constexpr uint64_t kEntered = 1;  // The lowest 16 bits count the workers that are in it.
  static constexpr uint64_t kEnteredMask = (1 << 16) - 1;
  static constexpr uint64_t kClosed = 1 << 16;  // Nobody may enter any more.
  static constexpr uint64_t kNumber = 1 << 17;  // From here on: which round it is.

  static uint64_t number(uint64_t word) { return word / kNumber; }
};

// Keeps a worker off the siblings of the cores that the pool counts. A refused mask costs speed
// only.
void keep_to(const std::vector<int>& cores, std::thread& worker) {
  const auto last = static_cast<size_t>(cores.back());
  std::vector<cpu_set_t> mask(last / CPU_SETSIZE + 1);
  const size_t mask_bytes = mask.size() * sizeof(cpu_set_t);
  for (const int core : cores) CPU_SET_S(static_cast<size_t>(core), mask_bytes, mask.data());
  pthread_setaffinity_np(worker.native_handle(), mask_bytes, mask.data());
}

}  // namespace

struct ThreadPool::State {
  int num_threads;
  std::vector<std::thread> workers;

  std::atomic<uint64_t> round = Round::kClosed;
  std::atomic<uint64_t> left = 0;  // Workers that have entered the round and left it.
  std::atomic<bool> stop = false;  // Read after a round has started.
  FunctionRef<void(int)>* task = nullptr;

  std::mutex start_mutex, end_mutex;
  std::condition_variable start_condition, end_condition;

  // Waits for a round after `seen` that is open, and enters it. Returns its number.
  uint64_t enter(uint64_t seen) {
    uint64_t word;
    const auto is_open = [&] {
      word = round.load(std::memory_order_acquire);
      return Round::number(word) != seen && (word & Round::kClosed) == 0;
    };
    do {
      spin_then_sleep(start_mutex, start_condition, is_open);
    } while (
        !round.compare_exchange_strong(word, word + Round::kEntered, std::memory_order_acquire));
    return Round::number(word);
  }

  void work(int thread) {
    uint64_t seen = 0;
    for (;;) {
      seen = enter(seen);
      if (stop.load(std::memory_order_relaxed)) return;
      (*task)(thread);
      left.fetch_add(1, std::memory_order_release);
      wake(end_mutex, end_condition);
    }
  }

  void start_round() {
    left.store(0, std::memory_order_relaxed);
    const uint64_t number = Round::number(round.load(std::memory_order_relaxed)) + 1;
    round.store(number * Round::kNumber, std::memory_order_release);
    wake(start_mutex, start_condition);
  }

  // Waits until so many workers have left the round.
  void wait_for(uint64_t workers_left) {
    spin_then_sleep(end_mutex, end_condition,
                    [&] { return left.load(std::memory_order_acquire) == workers_left; });
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
  try {
    for (int thread = 1; thread < num_threads; ++thread) {
      state_->workers.emplace_back([state = state_.get(), thread] { state->work(thread); });
      // With more threads than cores the scheduler must be free to use all that there is.
      if (static_cast<size_t>(num_threads) <= cores.size()) keep_to(cores, state_->workers.back());
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
  state_->wait_for(state_->workers.size());
}

void ThreadPool::share(int64_t num_units, FunctionRef<void(int64_t, int)> work) {
  if (num_units <= 1 || state_->num_threads == 1) {
    for (int64_t unit = 0; unit < num_units; ++unit) work(unit, 0);
    return;
  }
  std::atomic<int64_t> next = 0;
  const auto take_units = [&](int thread) {
    for (int64_t unit; (unit = next.fetch_add(1, std::memory_order_relaxed)) < num_units;) {
      work(unit, thread);
    }
  };
  FunctionRef<void(int)> task = take_units;
  state_->task = &task;
  state_->start_round();
  task(0);
  const uint64_t closed = state_->round.fetch_or(Round::kClosed, std::memory_order_relaxed);
  state_->wait_for(closed & Round::kEnteredMask);
}

int ThreadPool::default_num_threads() {
  const int cores = static_cast<int>(usable_cores().size());
  const auto quota = cgroup_cpu_quota();
  // A thread beyond the quota would only make the group stall all of them.
  if (!quota || *quota >= cores) return cores;
  return std::max(1, static_cast<int>(*quota));
}

}  // namespace trtmc
