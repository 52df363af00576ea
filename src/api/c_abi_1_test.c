/* TRTMC_C_ABI 1 as it was published, for the data model of 64-bit Linux: programs that were
 * compiled with it rely on these numbers. A line here may be added, for what a struct grows by, and
 * none may change. */
#include <stddef.h>

#include "trtmc/trtmc_c.h"

#define AT(type, field, offset) \
  _Static_assert(offsetof(type, field) == (offset), #type "." #field " moved")
#define IS(name, value) _Static_assert((name) == (value), #name " changed")

IS(TRTMC_C_ABI, 1);

IS(TRTMC_OK, 0);
IS(TRTMC_INVALID_ARGUMENT, 2);
IS(TRTMC_NOT_FOUND, 3);
IS(TRTMC_CORRUPT, 4);
IS(TRTMC_UNSUPPORTED, 5);
IS(TRTMC_EXHAUSTED, 6);
IS(TRTMC_INTERNAL, 70);
IS(TRTMC_LOG_DEBUG, 0);
IS(TRTMC_LOG_INFO, 1);
IS(TRTMC_LOG_WARNING, 2);
IS(TRTMC_LOG_ERROR, 3);
IS(TRTMC_TOKENIZE_ADD_SPECIAL, 1);
IS(TRTMC_TOKENIZE_PLAIN_TEXT, 2);
IS(TRTMC_DETOKENIZE_SKIP_SPECIAL, 1);

AT(trtmc_model_options, size, 0);
AT(trtmc_model_options, backend, 8);
AT(trtmc_model_options, threads, 16);
AT(trtmc_model_options, context_length, 20);
AT(trtmc_model_options, kv_memory_bytes, 24);
AT(trtmc_model_options, kv_type, 32);
AT(trtmc_model_options, cpu_isa, 40);
AT(trtmc_model_options, threads_batch, 48);
AT(trtmc_model_options, reserved, 52);

/* Passed in arrays, so these can't grow. */
IS(sizeof(trtmc_logit_bias), 8);
IS(sizeof(trtmc_tool_call), 16);
IS(sizeof(trtmc_token_logprob), 8);

AT(trtmc_generation_options, size, 0);
AT(trtmc_generation_options, temperature, 8);
AT(trtmc_generation_options, top_p, 16);
AT(trtmc_generation_options, min_p, 24);
AT(trtmc_generation_options, repetition_penalty, 32);
AT(trtmc_generation_options, presence_penalty, 40);
AT(trtmc_generation_options, frequency_penalty, 48);
AT(trtmc_generation_options, top_k, 56);
AT(trtmc_generation_options, max_tokens, 60);
AT(trtmc_generation_options, has_seed, 64);
AT(trtmc_generation_options, logprobs, 68);
AT(trtmc_generation_options, seed, 72);
AT(trtmc_generation_options, stop, 80);
AT(trtmc_generation_options, stop_count, 88);
AT(trtmc_generation_options, logit_bias, 96);
AT(trtmc_generation_options, logit_bias_count, 104);

AT(trtmc_delta, size, 0);
AT(trtmc_delta, content, 8);
AT(trtmc_delta, content_length, 16);
AT(trtmc_delta, reasoning, 24);
AT(trtmc_delta, reasoning_length, 32);
AT(trtmc_delta, tool_calls, 40);
AT(trtmc_delta, tool_call_count, 48);
AT(trtmc_delta, token, 56);
AT(trtmc_delta, logprob, 60);
AT(trtmc_delta, top, 64);
AT(trtmc_delta, top_count, 72);

AT(trtmc_answer, size, 0);
AT(trtmc_answer, content, 8);
AT(trtmc_answer, content_length, 16);
AT(trtmc_answer, reasoning, 24);
AT(trtmc_answer, reasoning_length, 32);
AT(trtmc_answer, tool_calls, 40);
AT(trtmc_answer, tool_call_count, 48);
AT(trtmc_answer, ids, 56);
AT(trtmc_answer, id_count, 64);
AT(trtmc_answer, finish_reason, 72);
AT(trtmc_answer, prompt_tokens, 80);
AT(trtmc_answer, completion_tokens, 84);
AT(trtmc_answer, cached_tokens, 88);
AT(trtmc_answer, prefill_ms, 96);
AT(trtmc_answer, decode_ms, 104);

AT(trtmc_chat_options, size, 0);
AT(trtmc_chat_options, system, 8);
AT(trtmc_chat_options, date, 16);
AT(trtmc_chat_options, tools, 24);
AT(trtmc_chat_options, think, 32);
AT(trtmc_chat_options, reserved, 36);
