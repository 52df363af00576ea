// The commands: each does what its options say, prints the answer, and throws for what it can't do.
#pragma once

#include "cli/console.h"
#include "cli/options.h"

namespace trtmc {

void execute(const HelpCommand& command, Console& console);
void execute(const VersionCommand& command, Console& console);
void execute(const BuildCommand& command, Console& console);
void execute(const PullCommand& command, Console& console);
void execute(const ListCommand& command, Console& console);
void execute(const RmCommand& command, Console& console);
void execute(const RunCommand& command, Console& console);
void execute(const ChatCommand& command, Console& console);
void execute(const ServeCommand& command, Console& console);
void execute(const PromptCommand& command, Console& console);
void execute(const TokenizeCommand& command, Console& console);
void execute(const DetokenizeCommand& command, Console& console);
void execute(const ScoreCommand& command, Console& console);
void execute(const VerifyCommand& command, Console& console);
void execute(const InspectCommand& command, Console& console);
void execute(const ExportCommand& command, Console& console);
void execute(const BenchCommand& command, Console& console);

}  // namespace trtmc
