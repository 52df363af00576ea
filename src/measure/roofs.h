// What this machine can do at most, measured: the figures that speeds are quoted beside.
#pragma once

#include <cstddef>
#include <span>

#include "base/thread_pool.h"

namespace trtmc {

// Bytes a second at which the pool's threads read `memory` together, each a stretch of its own.
// `memory` should be several times the last cache; of less than 256 bytes it is 0.
double read_bandwidth(ThreadPool& pool, std::span<const std::byte> memory);

// Single-precision operations a second (a multiply-add is two) of the pool's threads together, from
// registers, with the widest unit there is.
double multiply_add_peak(ThreadPool& pool);

// The same of dot products of bytes, added up in 32 bits, by vector units: a matrix unit such as
// AMX, which no kernel uses, could do more.
double byte_dot_peak(ThreadPool& pool);

}  // namespace trtmc
