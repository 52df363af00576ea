#include "engine/sequence.h"

namespace trtmc {

bool Sequence::before(const Sequence& other) const {
  if (priority != other.priority) return priority > other.priority;
  return id < other.id;
}

}  // namespace trtmc
