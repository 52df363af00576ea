/* ask BUNDLE QUESTION: streams an answer, in C. */
#include <stdio.h>
#include <trtmc/trtmc_c.h>

static int print(const trtmc_delta* delta, void* user_data) {
  fwrite(delta->content, 1, delta->content_length, user_data);
  return fflush(user_data); /* Anything but 0 ends the answer. */
}

int main(int argc, char** argv) {
  trtmc_error* error = NULL;
  trtmc_model* model = NULL;
  trtmc_chat* chat = NULL;
  trtmc_stream* stream = NULL;
  trtmc_status status = argc == 3 ? TRTMC_OK : TRTMC_INVALID_ARGUMENT;

  if (status == TRTMC_OK) status = trtmc_model_load(argv[1], NULL, &model, &error);
  if (status == TRTMC_OK) status = trtmc_chat_new(model, NULL, &chat, &error);
  if (status == TRTMC_OK) status = trtmc_chat_ask(chat, argv[2], NULL, &stream, &error);
  if (status == TRTMC_OK) status = trtmc_stream_read(stream, print, stdout, &error);
  if (error != NULL) fprintf(stderr, "%s\n", trtmc_error_message(error));
  trtmc_stream_free(stream);
  trtmc_chat_free(chat);
  trtmc_model_free(model);
  trtmc_error_free(error);
  return status;
}
