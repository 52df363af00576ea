// The options that several commands have, declared once.
#pragma once

#include "cli/command_parser.h"
#include "cli/options.h"

namespace trtmc {

// A setter for a path, which must not be empty.
CommandParser::Setter path_into(std::filesystem::path& target);

void declare_bundle(CommandParser& parser, std::filesystem::path& bundle);
void declare_log(CommandParser& parser, LogOptions& log);
void declare_json(CommandParser& parser, bool& json);
void declare_threads(CommandParser& parser, int& threads);
// Backend, threads of both kinds, context, KV memory and type, precision, instruction set.
void declare_load(CommandParser& parser, LoadOptions& load);
void declare_speculate(CommandParser& parser, EngineOptions& engine);
void declare_file(CommandParser& parser, std::filesystem::path& file, std::string_view what);
void declare_date(CommandParser& parser, std::string& date);
// --system, --think, --no-think, --date.
void declare_chat(CommandParser& parser, ChatOptions& chat);
void declare_sampling(CommandParser& parser, GenerationOptions& sampling);

// After parse(): contradictions among them.
void check_log(const CommandParser& parser, LogOptions& log);
void check_load(const CommandParser& parser, const LoadOptions& load);
void check_chat(const CommandParser& parser);
void check_sampling(const CommandParser& parser, const GenerationOptions& sampling);

}  // namespace trtmc
