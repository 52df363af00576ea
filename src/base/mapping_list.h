// The files that are mapped now. Reading a mapping beyond the end of a file that was cut meanwhile,
// or one whose disk fails, is no error that a call returns but the signal SIGBUS: its handler asks
// here which file it was.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace trtmc {

// Of MappedFile. Mappings beyond the first thousand or so stay nameless.
void note_mapping(std::span<const std::byte> mapping, const std::string& path);
void forget_mapping(std::span<const std::byte> mapping);

// The path of the file that is mapped at `address`, or null. May be called in a signal handler.
const char* mapped_path_at(const void* address);

}  // namespace trtmc
