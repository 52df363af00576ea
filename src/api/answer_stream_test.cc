#include "api/answer_stream.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/fake_executor.h"

namespace trtmc {
namespace {

TEST(AnswerStream, AnErrorOfTheEngineKeepsItsCode) {
  FakeExecutor executor(
      50,
      {.num_blocks = 8, .block_size = 4, .max_tokens_per_step = 8, .max_sequences_per_step = 1});
  executor.fail_next_step(Error(ErrorCode::kExhausted, "no memory for scratch"));
  Engine engine(
      {.executor = &executor, .tokenizer = nullptr, .vocab_size = 50, .context_length = 32}, {});
  GenerationRequest request;
  request.prompt = {1};
  AnswerStream stream(engine, std::move(request), std::nullopt);
  const Error error = error_of([&] { stream.next(); });
  EXPECT_EQ(error.code(), ErrorCode::kExhausted);
  EXPECT_STREQ(error.what(), "no memory for scratch");
}

}  // namespace
}  // namespace trtmc
