// A mapped file that is cut short while it is in use, or whose disk fails, ends the program:
// nothing can go on without its bytes. This has it end with a sentence and exit status 4, not a
// crash.
#pragma once

namespace trtmc {

// Call once, at the start.
void install_read_faults();

}  // namespace trtmc
