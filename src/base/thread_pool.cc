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
  static constexpr uint64_t kMask = (1 << 16) - 1;
  static constexpr uint64_t kThreads = 1 << 16;    // The next 16: threads that it is for.
  static constexpr uint64_t kClosed = 1ULL << 32;  // Nobody may enter any more.
  static constexpr uint64_t kNumber = 1ULL << 33;  // From here on: which round it is.

  static uint64_t entered(uint64_t word) { return word & kMask; }
  static int threads(uint64_t word) { return static_cast<int>(word / kThreads & kMask); }
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
  int in_use;  // Threads that the next round is for.
  std::vector<std::thread> workers;

  std::atomic<uint64_t> round;
  std::atomic<uint64_t> left = 0;  // Workers that have entered the round and left it.
  std::atomic<bool> stop = false;  // Read after a round has started.
  FunctionRef<void(int)>* task = nullptr;

  std::mutex start_mutex, end_mutex;
  std::condition_variable start_condition, end_condition;
  std::condition_variable use_condition;  // Of those whom no round is for, so that none wakes them.

  // Waits for a round after `seen` that is for `thread` and open, and enters it. Returns its
  // number.
  uint64_t enter(int thread, uint64_t seen) {
    uint64_t word;
    const auto is_mine = [&] {
      word = round.load(std::memory_order_acquire);
      return thread < Round::threads(word);
    };
    const auto is_open_or_not_mine = [&] {
      return !is_mine() || (Round::number(word) != seen && (word & Round::kClosed) == 0);
    };
    for (;;) {
      if (!is_mine()) {
        std::unique_lock lock(start_mutex);
        use_condition.wait(lock, is_mine);
      }
      spin_then_sleep(start_mutex, start_condition, is_open_or_not_mine);
      if (thread < Round::threads(word) &&
          round.compare_exchange_strong(word, word + Round::kEntered, std::memory_order_acquire)) {
        return Round::number(word);
      }
    }
  }

  void work(int thread) {
    uint64_t seen = 0;
    for (;;) {
      seen = enter(thread, seen);
      if (stop.load(std::memory_order_relaxed)) return;
      (*task)(thread);
      left.fetch_add(1, std::memory_order_release);
      wake(end_mutex, end_condition);
    }
  }

  void start_round(int threads) {
    left.store(0, std::memory_order_relaxed);
    const uint64_t last = round.load(std::memory_order_relaxed);
    round.store((Round::number(last) + 1) * Round::kNumber +
                    static_cast<uint64_t>(threads) * Round::kThreads,
                std::memory_order_release);
    wake(start_mutex, start_condition);
    if (threads > Round::threads(last)) use_condition.notify_all();
  }

  // Waits until so many workers have left the round.
  void wait_for(uint64_t workers_left) {
    spin_then_sleep(end_mutex, end_condition,
                    [&] { return left.load(std::memory_order_acquire) == workers_left; });
  }

  void join() {
    stop.store(true, std::memory_order_relaxed);
    start_round(num_threads);
    for (std::thread& worker : workers) worker.join();
  }
};

ThreadPool::ThreadPool(int num_threads) : state_(std::make_unique<State>()) {
  TRTMC_CHECK(num_threads >= 1, "a thread pool has at least its caller");
  state_->num_threads = num_threads;
  state_->in_use = num_threads;
  state_->round = static_cast<uint64_t>(num_threads) * Round::kThreads + Round::kClosed;
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

void ThreadPool::use(int count) {
  TRTMC_CHECK(count >= 1 && count <= state_->num_threads, "threads that the pool does not have");
  state_->in_use = count;
}

void ThreadPool::run(FunctionRef<void(int)> task) {
  if (state_->in_use == 1) return task(0);
  state_->task = &task;
  state_->start_round(state_->in_use);
  task(0);
  state_->wait_for(static_cast<uint64_t>(state_->in_use) - 1);
}

void ThreadPool::share(int64_t num_units, FunctionRef<void(int64_t, int)> work) {
  if (num_units <= 1 || state_->in_use == 1) {
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
  state_->start_round(state_->in_use);
  task(0);
  const uint64_t closed = state_->round.fetch_or(Round::kClosed, std::memory_order_relaxed);
  state_->wait_for(Round::entered(closed));
}

int ThreadPool::default_num_threads() {
  return num_threads_for(static_cast<int>(usable_cores().size()), cgroup_cpu_quota());
}

}  // namespace trtmc
