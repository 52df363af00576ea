// A file that arrives in chunks, in any order and over several runs of the program.
//
// On disk it is the file's bytes, and behind them 8 bytes a chunk: how much of the chunk is there
// (little-endian). A count is written after its bytes, so that what a kill leaves can be resumed;
// should the power fail between the two, the hash at the end finds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <span>
#include <vector>

namespace trtmc {

class PartialFile {
 public:
  // Opens what an earlier run left at `path`, or begins anew. Reserves the space: kExhausted.
  // `chunk_bytes` must be the same in every run, or the file is begun anew.
  PartialFile(std::filesystem::path path, uint64_t bytes, uint64_t chunk_bytes);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  size_t num_chunks() const { return done_.size(); }
  uint64_t chunk_begin(size_t chunk) const { return chunk * chunk_bytes_; }
  uint64_t chunk_end(size_t chunk) const;
  uint64_t done(size_t chunk) const;  // Bytes of the chunk that are there, from its begin.
  uint64_t total_done() const;
  bool complete() const { return total_done() == bytes_; }

  // Appends to a chunk, which has room for them. Several threads may write at once, each its own
  // chunk.
  void append(size_t chunk, std::span<const std::byte> bytes);
  // Takes a chunk's bytes back: they are to be written anew.
  void restart(size_t chunk);

  // Cuts the counts off and flushes to disk: the file is then the bytes alone. It must be complete.
  void finish();

 private:
  void load_counts();
  void write_at(uint64_t offset, std::span<const std::byte> bytes);
  void store_count(size_t chunk, uint64_t count);

  std::filesystem::path path_;
  uint64_t bytes_, chunk_bytes_;
  int fd_ = -1;
  mutable std::mutex mutex_;    // Guards done_.
  std::vector<uint64_t> done_;  // [num_chunks]
};

}  // namespace trtmc
