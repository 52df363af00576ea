// The worst figure seen, and where.
#pragma once

#include <string>

#include "verify/verify.h"

namespace trtmc {

class Worst {
 public:
  explicit Worst(bool at_most) : at_most_(at_most) {}
  void take(double figure, const std::string& where);
  bool empty() const { return empty_; }
  Check check(std::string name, double threshold) const;

 private:
  bool at_most_;
  bool empty_ = true;
  double figure_ = 0;
  std::string where_;
};

}  // namespace trtmc
