#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_bundle.h"

namespace trtmc {
namespace {

// The prompt's id is none of the vocabulary, which is found when the answer is to begin.
TEST(RunCommand, LogprobsWithoutATokenizerAreRefusedBeforeTheAnswer) {
  const TemporaryFolder folder;
  RunCommand command;
  command.bundle = folder.path() / "x.trtmc";
  command.prompt_ids = {1000};
  command.json = true;
  write_tiny_bundle(command.bundle, {.tokenizer = "", .chat_template = ""});
  Console console;
  EXPECT_EQ(error_of([&] { execute(command, console); }).code(), ErrorCode::kInvalidArgument);
  command.sampling.logprobs = 0;
  const Error error = error_of([&] { execute(command, console); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error.what(), testing::HasSubstr("no tokenizer"));
}

}  // namespace
}  // namespace trtmc
