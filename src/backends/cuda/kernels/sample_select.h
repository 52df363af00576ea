// A digit of a selection: the largest key down to which a row has as much as is needed. That is
// top_k tokens, or top_p of the masses of those that top_k leaves.
#pragma once

#include "backends/cuda/kernels/sample_part.h"

namespace trtmc::cuda {

template <typename Block, bool kByMass>
class SampleSelect : private SamplePart<Block> {
 public:
  using SamplePart<Block>::SamplePart;

  TRTMC_STEP void run(int digit) {
    if (best_key() == 0) return;
    block_.each([&](int t) {
      if (t == 0) {
        shared_.selecting = digit == 0 ? 1 : block_.load(&state_.selecting);
        shared_.prefix = digit == 0 ? 0 : block_.load(&state_.prefix);
        shared_.needed = digit == 0 ? 0 : block_.load(&state_.needed);
      }
      for (int i = t; i < kDigitValues; i += kSampleThreads) shared_.low[i] = shared_.high[i] = 0;
    });
    if (shared_.selecting == 0) return;
    add_amounts(digit);
    block_.each([&](int t) {
      for (int i = t; i < kDigitValues; i += kSampleThreads) {
        const uint64_t amount = uint64_t{shared_.high[i]} << 32 | shared_.low[i];
        if (amount != 0) block_.add(&amounts_[i], amount);
      }
    });
    if (block_.is_last(arrived_)) choose_value(digit);
  }

 private:
  using Part = SamplePart<Block>;
  using Part::block_, Part::shared_, Part::job_, Part::state_, Part::amounts_, Part::arrived_,
      Part::each_token, Part::score, Part::best_key, Part::scale, Part::sum_before;

  TRTMC_STEP void add_amounts(int digit) {
    uint32_t lowest = 1;  // Above what is no score.
    if (kByMass && block_.load(&state_.kth_key) > 0) lowest = block_.load(&state_.kth_key);
    const uint32_t prefix = shared_.prefix;
    const MassScale by = scale();
    block_.each([&](int t) {
      each_token(t, [&](int i) {
        const float value = score(i);
        const uint32_t of = score_key(value);
        if (of < lowest) return;
        if (digit > 0 && of >> digit_shift(digit - 1) != prefix) return;
        const uint64_t amount = kByMass ? mass_of(value, by) : 1;
        if (amount == 0) return;
        const uint32_t place = of >> digit_shift(digit) & ((1U << digit_bits(digit)) - 1);
        const auto low = static_cast<uint32_t>(amount);
        const uint32_t before = block_.add_shared(&shared_.low[place], low);
        const uint32_t carry = before + low < before ? 1 : 0;
        const uint32_t high = static_cast<uint32_t>(amount >> 32) + carry;
        if (high != 0) block_.add_shared(&shared_.high[place], high);
      });
    });
  }

  TRTMC_STEP void choose_value(int digit) {
    constexpr int kValues = kDigitValues / kSampleThreads;  // Of a thread, from the highest down.
    const auto place = [](int t, int i) { return kDigitValues - 1 - (t * kValues + i); };
    block_.each([&](int t) {
      uint64_t own = 0;
      for (int i = 0; i < kValues; ++i) own += block_.load(&amounts_[place(t, i)]);
      shared_.sums[t] = own;
    });
    sum_before(shared_.sums);
    block_.each([&](int t) {
      if (t > 0 || digit > 0) return;
      const uint64_t total = shared_.sums[kSampleThreads];
      shared_.needed =
          kByMass ? nucleus_mass(job_.top_p, total) : static_cast<uint64_t>(job_.top_k);
      // Fewer than top_k: all of them.
      shared_.selecting = shared_.needed <= total ? 1 : 0;
      state_.selecting = shared_.selecting;
    });
    const uint64_t needed = shared_.needed;
    const uint32_t prefix = shared_.prefix;
    const bool selecting = shared_.selecting != 0;
    block_.each([&](int t) {
      uint64_t above = shared_.sums[t];
      if (selecting && above < needed && needed <= shared_.sums[t + 1]) {
        int i = 0;
        while (above + block_.load(&amounts_[place(t, i)]) < needed) {
          above += block_.load(&amounts_[place(t, i++)]);
        }
        const uint32_t selected = prefix << digit_bits(digit) | static_cast<uint32_t>(place(t, i));
        keep_digit(digit, selected, needed - above);
      }
      for (int i = 0; i < kValues; ++i) amounts_[place(t, i)] = 0;
    });
  }

  // By the one thread whose value it is.
  TRTMC_STEP void keep_digit(int digit, uint32_t selected, uint64_t needed) {
    state_.prefix = selected;
    state_.needed = needed;
    if (digit + 1 < kDigits) return;
    if (kByMass) {
      const uint64_t mass = mass_of(score_of_key(selected), scale());
      state_.edge_key = selected;
      state_.edge_kept = (needed + mass - 1) / mass;
    } else {
      state_.kth_key = selected;
    }
  }
};

}  // namespace trtmc::cuda
