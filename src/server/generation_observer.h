// Who wants to know how fast a model answers: metrics.
#pragma once

#include "trtmc/values.h"

namespace trtmc {

// Called by the event pump's thread, so it must be quick; thread-safe, since models have it in
// turn.
class GenerationObserver {
 public:
  virtual ~GenerationObserver() = default;

  // A client's request has its first token, so long after it was submitted.
  virtual void first_token(double seconds) = 0;
  // An answer has one more token, so long after its last.
  virtual void next_token(double seconds) = 0;
  // One of the answers is complete.
  virtual void ended(FinishReason reason) = 0;
  // All of the request's are, or have failed.
  virtual void request_ended(double seconds) = 0;
};

}  // namespace trtmc
