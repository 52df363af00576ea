// A part of a row, and the threads that go over it.
//
// The steps of sampling know neither threads nor atomics but through `Block`: on a device it is a
// block of one, in a test a loop. A Block has
//   each(f)            f(thread) by each of kSampleThreads threads; ends when all have
//   load(p)            *p, where other blocks of the pass may have written
//   add(p, x), max     of 64 bits in the memory of all blocks
//   add_shared(p, x)   of 32 bits in the block's own; what was there before
//   take_slot(p)       the number at p, and one more there, for one block after the other
//   is_last(p)         whether the other blocks of the row have been here
// Integers make the order of all these of no account.
#pragma once

#include "backends/cuda/kernels/sample_job.h"
#include "model/sampling_math.h"

#ifdef __CUDACC__
#define TRTMC_STEP __device__ __forceinline__
#else
#define TRTMC_STEP inline
#endif

namespace trtmc::cuda {

// Of one block.
struct SampleShared {
  static constexpr int kGroup = 16;  // Threads whose numbers one thread adds up.
  static constexpr int kGroups = kSampleThreads / kGroup;
  uint32_t low[kDigitValues], high[kDigitValues];  // Of amounts by a digit's value.
  uint64_t sums[kSampleThreads + 1];               // Of threads.
  uint64_t counts[kSampleThreads + 1];
  uint64_t groups[kGroups + 1];
  RowShare shares[kRowParts];
  uint64_t needed, target, left;
  uint32_t prefix;
  int32_t selecting, part, num_top;
};

template <typename Block>
class SamplePart {
 public:
  TRTMC_STEP SamplePart(Block& block, SampleShared& shared, const SamplePassArgs& args, int row,
                        int part)
      : block_(block),
        shared_(shared),
        job_(args.jobs[row]),
        state_(args.states[row]),
        amounts_(args.amounts + int64_t{row} * kDigitValues),
        shares_(args.shares + int64_t{row} * kRowParts),
        arrived_(args.arrived + row),
        part_(part) {}

 protected:
  TRTMC_STEP int part_size() const { return (job_.vocab_size + kRowParts - 1) / kRowParts; }
  TRTMC_STEP int begin_of(int part) const {
    const int begin = part * part_size();
    return begin < job_.vocab_size ? begin : job_.vocab_size;
  }
  TRTMC_STEP int begin() const { return begin_of(part_); }
  TRTMC_STEP int end() const { return begin_of(part_ + 1); }

  // Calls f(token) for those of the part that are the thread's: as they lie side by side.
  template <typename F>
  TRTMC_STEP void each_token(int thread, F f) const {
    for (int i = begin() + thread; i < end(); i += kSampleThreads) f(i);
  }
  // For those of `part` that are the thread's where ids must rise from thread to thread.
  template <typename F>
  TRTMC_STEP void each_in_order(int part, int thread, F f) const {
    const int chunk = (part_size() + kSampleThreads - 1) / kSampleThreads;
    const int first = begin_of(part) + thread * chunk, last = begin_of(part + 1);
    for (int i = first; i < first + chunk && i < last; ++i) f(i);
  }

  TRTMC_STEP float score(int token) const {
    return (job_.scores != nullptr ? job_.scores : job_.logits)[token];
  }
  TRTMC_STEP uint32_t key(int token) const { return score_key(score(token)); }

  TRTMC_STEP uint32_t best_key() const {
    return static_cast<uint32_t>(block_.load(&state_.best) >> 32);
  }
  TRTMC_STEP int32_t best_token() const {
    return static_cast<int32_t>(~static_cast<uint32_t>(block_.load(&state_.best)));
  }
  TRTMC_STEP MassScale scale() const {
    return {finite_score(score_of_key(best_key())), job_.exponents_per_score, job_.mass_bits};
  }

  // ---- Sums over the threads of the block

  // Makes numbers[i] the sum of those before it; numbers[kSampleThreads] is that of all.
  TRTMC_STEP void sum_before(uint64_t* numbers) {
    constexpr int kGroup = SampleShared::kGroup, kGroups = SampleShared::kGroups;
    const auto rising = [](uint64_t* of, int count) {
      uint64_t before = 0;
      for (int i = 0; i < count; ++i) {
        const uint64_t own = of[i];
        of[i] = before;
        before += own;
      }
      return before;
    };
    block_.each([&](int t) {
      if (t < kGroups) shared_.groups[t] = rising(numbers + t * kGroup, kGroup);
    });
    block_.each([&](int t) {
      if (t == 0) numbers[kSampleThreads] = rising(shared_.groups, kGroups);
    });
    block_.each([&](int t) { numbers[t] += shared_.groups[t / kGroup]; });
  }

  Block& block_;
  SampleShared& shared_;
  const SampleJob& job_;
  SampleState& state_;
  uint64_t* amounts_;
  RowShare* shares_;
  int32_t* arrived_;
  int part_;
};

}  // namespace trtmc::cuda
