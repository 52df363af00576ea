// How fast a model runs: steps of an executor under the clock, beside what the machine can do at
// most in the same rounds. What is fed has no meaning; speed does not depend on it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "base/thread_pool.h"
#include "bundle/bundle.h"

namespace trtmc {

enum class SpeedKind { kPrefill, kDecode };
std::string_view to_string(SpeedKind kind);  // "prefill", "decode"

// `batch` sequences of `depth` tokens each go on by `tokens` tokens: in chunks as large as a step
// takes (prefill), or one a step (decode).
struct SpeedCase {
  SpeedKind kind = SpeedKind::kDecode;
  int tokens = 64;
  int depth = 0;
  int batch = 1;
};

struct Range {
  explicit Range(std::vector<double> values);  // At least one.
  double min, median, max;
};

// The work of one round of a case.
struct Work {
  double bytes = 0;       // Of weights, once a step, and of the keys and values that are seen.
  double operations = 0;  // Of the products and of attention, a multiply-add being two.
};

// `chunk`: tokens that a step of a prefill takes. `kv_bytes_per_token`: of all layers.
Work work_of(const DecoderSpec& spec, uint64_t weight_bytes, uint64_t kv_bytes_per_token,
             const SpeedCase& of, int chunk);

struct Speed {
  SpeedCase of;
  Range tokens_per_second;       // Of all sequences together.
  double bytes_per_second;       // At the median.
  double operations_per_second;  // Likewise.
  // The machine's own, or the device's where it has memory of its own, measured in each round:
  // medians.
  double read_roof;      // Bytes a second, of weights where there are enough.
  double copy_roof;      // Bytes read and written a second; 0: not measured.
  double multiply_roof;  // Operations a second: single-precision, of bytes where weights are
                         // quantised, or of the device's products; 0: not measured here.
  double roof_share;     // A decode's of the first, a prefill's of the second; 0 without it.
  int num_threads;       // That computed the case, and that the machine's roofs are of.
  uint64_t logits_hash;  // Of the bits of the last step's logits: equal where the numbers are.
};

class SpeedMeter {
 public:
  // Borrows both. The roofs are those of as many threads as the executor computes a case on.
  SpeedMeter(const Bundle& bundle, Executor& executor);

  // `repeat` rounds, after one that is not counted. Throws kInvalidArgument if the case needs more
  // KV memory, or more sequences in a step, than the executor has.
  Speed measure(const SpeedCase& of, int repeat);

 private:
  struct Round {
    double seconds;
    uint64_t logits_hash;
  };

  int chunk_of(const SpeedCase& of) const;
  void lay_out(const SpeedCase& of);
  void fill(const SpeedCase& of);
  Round run(const SpeedCase& of);
  DeviceRoofs roofs(ThreadPool& pool);
  const Logits& step(const SpeedCase& of, int position, int count);

  const Bundle& bundle_;
  Executor& executor_;
  std::vector<BlockId> block_tables_;  // [batch, max_blocks_]
  int max_blocks_ = 0;
};

}  // namespace trtmc
