#include "engine/sequence.h"

namespace trtmc {

bool Sequence::before(const Sequence& other) const {
  if (turn != other.turn) return turn < other.turn;
  return id < other.id;
}

}  // namespace trtmc
