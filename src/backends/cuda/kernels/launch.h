// How a kernel is launched: on which stream, and whether it may begin before the kernel in front of
// it has ended. Launch functions report nothing; cudaGetLastError() has what went wrong.
#pragma once

struct CUstream_st;

namespace trtmc::cuda {

struct Launch {
  CUstream_st* stream;
  // Programmatic dependent launch (devices of 9.0 and later): every kernel of ours waits in
  // wait_for_predecessors() before it touches anything but weights.
  bool overlaps;
};

}  // namespace trtmc::cuda
