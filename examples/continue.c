/* continue BUNDLE TEXT MAX_TOKENS: goes on with a text as it is, the most likely token each time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trtmc/trtmc_c.h>

static int print(const trtmc_delta* delta, void* user_data) {
  fwrite(delta->content, 1, delta->content_length, (FILE*)user_data);
  fflush((FILE*)user_data);
  return 0; /* Anything else would end the answer. */
}

int main(int argc, char** argv) {
  trtmc_error* error = NULL;
  trtmc_model* model = NULL;
  trtmc_stream* stream = NULL;
  trtmc_generation_options options;
  trtmc_status status;

  if (argc != 4) {
    fprintf(stderr, "usage: continue BUNDLE TEXT MAX_TOKENS\n");
    return 2;
  }
  TRTMC_GENERATION_OPTIONS_INIT(&options);
  options.temperature = 0;
  options.max_tokens = atoi(argv[3]);
  status = trtmc_model_load(argv[1], NULL, &model, &error);
  if (status == TRTMC_OK) {
    status = trtmc_model_complete(model, argv[2], strlen(argv[2]), &options, &stream, &error);
  }
  if (status == TRTMC_OK) status = trtmc_stream_read(stream, print, stdout, &error);
  if (status != TRTMC_OK) fprintf(stderr, "%s\n", trtmc_error_message(error));
  trtmc_stream_free(stream);
  trtmc_model_free(model);
  trtmc_error_free(error);
  return status;
}
