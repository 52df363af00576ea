// A C11 program's use of the library: what compiles here compiles for users.
#include <stdlib.h>
#include <string.h>

#include "trtmc/trtmc_c.h"

struct collected {
  char text[4096];
  int deltas;
  int most; /* Deltas after which to stop; 0: none. */
};

static int collect(const trtmc_delta* delta, void* user_data) {
  struct collected* const into = user_data;
  strncat(into->text, delta->content, sizeof into->text - strlen(into->text) - 1);
  return ++into->deltas == into->most;
}

/* Continues `prompt` greedily, stopped after `most` deltas if that is not 0. text: [4096]. */
trtmc_status c_continuation(const trtmc_model* model, const char* prompt, int max_tokens, int most,
                            char* text, trtmc_answer* answer_out, trtmc_error** error) {
  trtmc_generation_options options;
  trtmc_stream* stream = NULL;
  struct collected into = {"", 0, most};
  trtmc_answer answer = TRTMC_ANSWER_INIT;
  trtmc_status status;

  TRTMC_GENERATION_OPTIONS_INIT(&options);
  options.temperature = 0;
  options.max_tokens = max_tokens;
  status = trtmc_model_complete(model, prompt, strlen(prompt), &options, &stream, error);
  if (status == TRTMC_OK) status = trtmc_stream_read(stream, collect, &into, error);
  if (status == TRTMC_OK) status = trtmc_stream_answer(stream, &answer, error);
  if (status == TRTMC_OK) {
    strcpy(text, into.text);
    *answer_out = answer;
    answer_out->content = NULL; /* Ends with the stream, as all that it points to. */
  }
  trtmc_stream_free(stream);
  return status;
}

/* With the options and the outputs that only need defaults. */
trtmc_status c_load(const char* path, trtmc_model** model, trtmc_error** error) {
  trtmc_model_options options = TRTMC_MODEL_OPTIONS_INIT;
  options.threads = 1;
  return trtmc_model_load(path, &options, model, error);
}
