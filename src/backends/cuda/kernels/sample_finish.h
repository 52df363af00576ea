// The last pass: a token is drawn by the sum of masses up to it, ids rising; or the most likely
// tokens are gathered.
#pragma once

#include "backends/cuda/kernels/sample_part.h"

namespace trtmc::cuda {

template <typename Block>
class SampleFinish : private SamplePart<Block> {
 public:
  using SamplePart<Block>::SamplePart;

  TRTMC_STEP void run() {
    if (best_key() == 0 || job_.kind == SampleKind::kGreedy) {
      if (part_ > 0) return;
      block_.each([&](int t) {
        if (t == 0) keep_token(best_key() == 0 ? -1 : best_token());
      });
      return;
    }
    share_row();
    if (!block_.is_last(arrived_)) return;
    block_.each([&](int t) {
      if (t < kRowParts) {
        shared_.shares[t] = {block_.load(&shares_[t].mass), block_.load(&shares_[t].at_edge)};
      }
    });
    if (job_.kind == SampleKind::kDraw) {
      draw();
    } else {
      take_edge();
    }
  }

 private:
  using Part = SamplePart<Block>;
  using Part::block_, Part::shared_, Part::job_, Part::state_, Part::shares_, Part::arrived_,
      Part::part_, Part::each_token, Part::each_in_order, Part::score, Part::key, Part::best_key,
      Part::best_token, Part::scale, Part::sum_before;

  TRTMC_STEP void keep_token(int32_t token) {
    state_.token = token;
    state_.logit = token >= 0 ? job_.logits[token] : 0;
  }

  // The key down to which tokens are left; 0: all above it.
  TRTMC_STEP uint32_t edge_key() const {
    return block_.load(job_.top_p < 1 ? &state_.edge_key : &state_.kth_key);
  }
  // How many of those at it.
  TRTMC_STEP uint64_t edge_kept() const {
    return job_.top_p < 1 ? block_.load(&state_.edge_kept) : ~uint64_t{0};
  }
  TRTMC_STEP uint64_t left_mass(float value, const MassScale& by) const {
    const uint64_t mass = mass_of(value, by);
    return mass >= job_.least_mass ? mass : 0;
  }

  TRTMC_STEP void keep_top(int slot, int token) {
    state_.top_tokens[slot] = token;
    state_.top_logits[slot] = job_.logits[token];
  }

  // What the part has of the row's masses: of kDraw those above the edge, of kMostLikely all; and
  // how many of its tokens are at the edge. Of kMostLikely those above it are taken already.
  TRTMC_STEP void share_row() {
    const bool draws = job_.kind == SampleKind::kDraw;
    const bool takes = !draws && job_.top_k > 0;
    const uint32_t edge = edge_key();
    const MassScale by = scale();
    block_.each([&](int t) {
      uint64_t mass = 0, at_edge = 0;
      each_token(t, [&](int i) {
        const float value = score(i);
        const uint32_t of = score_key(value);
        if (of == 0) return;
        if (of == edge) ++at_edge;
        if (of > edge || !draws) mass += left_mass(value, by);
        if (of > edge && takes) keep_top(block_.take_slot(&state_.num_top), i);
      });
      shared_.sums[t] = mass;
      shared_.counts[t] = at_edge;
    });
    sum_before(shared_.sums);
    sum_before(shared_.counts);
    block_.each([&](int t) {
      if (t == 0) {
        shares_[part_] = {shared_.sums[kSampleThreads], shared_.counts[kSampleThreads]};
      }
    });
  }

  // How many of a part's tokens at the edge lie before each thread's, into counts.
  TRTMC_STEP void count_edge(int part, uint32_t edge) {
    block_.each([&](int t) {
      uint64_t at_edge = 0;
      each_in_order(part, t, [&](int i) { at_edge += key(i) == edge ? 1 : 0; });
      shared_.counts[t] = at_edge;
    });
    sum_before(shared_.counts);
  }

  TRTMC_STEP void draw() {
    const uint32_t edge = edge_key();
    const MassScale by = scale();
    const uint64_t edge_mass = edge == 0 ? 0 : left_mass(score_of_key(edge), by);
    find_part(edge_mass);
    const int part = shared_.part;
    const uint64_t target = shared_.target, left = shared_.left;
    count_edge(part, edge);
    // Calls f(token, mass) in the order of ids.
    const auto each_mass = [&](int t, auto f) {
      uint64_t rank = shared_.counts[t];
      each_in_order(part, t, [&](int i) {
        const float value = score(i);
        const uint32_t of = score_key(value);
        if (of > edge) f(i, left_mass(value, by));
        if (of == edge && of != 0 && rank++ < left) f(i, edge_mass);
      });
    };
    block_.each([&](int t) {
      uint64_t own = 0;
      each_mass(t, [&](int, uint64_t mass) { own += mass; });
      shared_.sums[t] = own;
    });
    sum_before(shared_.sums);
    block_.each([&](int t) {
      uint64_t up_to = shared_.sums[t];
      if (!(up_to <= target && target < shared_.sums[t + 1])) return;
      each_mass(t, [&](int i, uint64_t mass) {
        if (up_to <= target && target < up_to + mass) keep_token(i);
        up_to += mass;
      });
    });
  }

  // The part in which the drawn token lies, what is drawn in it, and how many of its tokens at the
  // edge are left.
  TRTMC_STEP void find_part(uint64_t edge_mass) {
    block_.each([&](int t) {
      if (t > 0) return;
      const auto kept = [&](int part, uint64_t left) {
        const uint64_t there = shared_.shares[part].at_edge;
        return there < left ? there : left;
      };
      uint64_t total = 0, left = edge_kept();
      for (int part = 0; part < kRowParts; ++part) {
        total += shared_.shares[part].mass + kept(part, left) * edge_mass;
        left -= kept(part, left);
      }
      uint64_t target = draw_target(job_.uniform, total);
      left = edge_kept();
      int part = 0;
      for (; part + 1 < kRowParts; ++part) {
        const uint64_t mass = shared_.shares[part].mass + kept(part, left) * edge_mass;
        if (target < mass) break;
        target -= mass;
        left -= kept(part, left);
      }
      state_.total = total;
      shared_.part = part;
      shared_.target = target;
      shared_.left = left;
    });
  }

  // Fills up the most likely tokens with those at the edge, the smaller ids first.
  TRTMC_STEP void take_edge() {
    const uint32_t edge = edge_key();
    block_.each([&](int t) {
      if (t > 0) return;
      uint64_t total = 0;
      for (int part = 0; part < kRowParts; ++part) total += shared_.shares[part].mass;
      state_.total = total;
      shared_.num_top = block_.load(&state_.num_top);
      keep_token(job_.target >= 0 ? job_.target : best_token());
    });
    for (int part = 0; part < kRowParts; ++part) {
      const int taken = shared_.num_top;
      const int64_t left = edge == 0 ? 0 : job_.top_k - taken;
      const auto there = static_cast<int64_t>(shared_.shares[part].at_edge);
      if (left <= 0 || there == 0) continue;
      count_edge(part, edge);
      block_.each([&](int t) {
        auto rank = static_cast<int64_t>(shared_.counts[t]);
        each_in_order(part, t, [&](int i) {
          if (key(i) == edge && rank++ < left) keep_top(taken + static_cast<int>(rank) - 1, i);
        });
        if (t == 0) shared_.num_top = taken + static_cast<int>(there < left ? there : left);
      });
    }
    block_.each([&](int t) {
      if (t == 0) state_.num_top = shared_.num_top;
    });
  }
};

}  // namespace trtmc::cuda
