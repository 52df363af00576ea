// Completions of the command line for shells, made of the options as they were declared: commands,
// options, the values of those that have few, file names for the rest.
#pragma once

#include <string>

#include "cli/command_description.h"

namespace trtmc {

std::string bash_completion(const ProgramDescription& program);
std::string zsh_completion(const ProgramDescription& program);
std::string fish_completion(const ProgramDescription& program);

}  // namespace trtmc
