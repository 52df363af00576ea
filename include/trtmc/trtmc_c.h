/* trtmc as a C library: what trtmc.h offers, for every language that can call C. docs/library.md
 * has the tour, examples/ has a program.
 *
 * Failing: a function that can fail returns a status and takes `trtmc_error** error`, which may be
 * NULL. On failure it is set to an error that the caller frees with trtmc_error_free(), and no
 * other output is touched. On success it is left alone. What it held before is not freed. A NULL
 * where an object, a text or an output is needed is TRTMC_INVALID_ARGUMENT. Nothing else carries
 * errors: there is no global.
 *
 * Memory: every object is freed by the function named after it, every string and array that comes
 * back as `char**` or `int32_t**` with trtmc_free(). Freeing NULL does nothing. Text is UTF-8;
 * input that has a length need not end in a zero byte, output that has a length also ends in one.
 *
 * Stability: within one TRTMC_C_ABI nothing here changes its meaning, and structs only grow at
 * their end. Each begins with its own size, which the TRTMC_…_INIT macros set, so that a program
 * compiled with an older header goes on working: docs/versioning.md.
 *
 * Threads: a model may be used by many threads at once, as may trtmc_stream_cancel(). A stream is
 * otherwise used by one thread at a time, and so is a chat together with its stream. Objects may be
 * freed in any order. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "trtmc/version.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TRTMC_C_ABI 1

/* "0.1.0", of the library that runs. Static. */
TRTMC_API const char* trtmc_version(void);
/* The TRTMC_C_ABI of the library that runs. */
TRTMC_API int trtmc_c_abi(void);

/* The numbers are the exit statuses of the program. */
typedef enum trtmc_status {
  TRTMC_OK = 0,
  TRTMC_INVALID_ARGUMENT = 2, /* Ask differently. */
  TRTMC_NOT_FOUND = 3,        /* The file or the name does not exist. */
  TRTMC_CORRUPT = 4,          /* The bytes are damaged or not what they claim to be. */
  TRTMC_UNSUPPORTED = 5,      /* Well-formed, but trtmc can't do it. */
  TRTMC_EXHAUSTED = 6,        /* No memory, disk or queue space is left. */
  TRTMC_INTERNAL = 70         /* A bug of trtmc. */
} trtmc_status;

typedef struct trtmc_error trtmc_error;
TRTMC_API trtmc_status trtmc_error_status(const trtmc_error* error);
/* A sentence; as long as the error lives. */
TRTMC_API const char* trtmc_error_message(const trtmc_error* error);
/* What to do; empty if there is nothing to say. */
TRTMC_API const char* trtmc_error_hint(const trtmc_error* error);
TRTMC_API void trtmc_error_free(trtmc_error* error);

TRTMC_API void trtmc_free(void* memory);

/* Where messages go: every line of at least the level `lowest`, without its newline, from any
 * thread, one call at a time. `sink` must not call trtmc. NULL brings standard error back. For the
 * whole process. */
typedef enum trtmc_log_level {
  TRTMC_LOG_DEBUG = 0,
  TRTMC_LOG_INFO = 1,
  TRTMC_LOG_WARNING = 2,
  TRTMC_LOG_ERROR = 3
} trtmc_log_level;
typedef void (*trtmc_log_sink)(trtmc_log_level level, const char* line, void* user_data);
TRTMC_API trtmc_status trtmc_set_log(int lowest, trtmc_log_sink sink, void* user_data,
                                     trtmc_error** error);

/* ---- Models ---- */

typedef struct trtmc_model trtmc_model;

typedef struct trtmc_model_options {
  size_t size;
  /* "auto", "cpu", "cuda", "tensorrt" or "reference"; NULL: "auto". What tensorrt computes in, and
     layers in float32 all the same, only the program can choose. */
  const char* backend;
  int32_t threads;          /* CPU threads; 0: one per core. */
  int32_t context_length;   /* Tokens that prompt and answer may have; 0: the model's own. */
  uint64_t kv_memory_bytes; /* For keys and values; 0: room for one whole context. */
  const char* kv_type;      /* "f32", "bf16", "q8", "fp8"; NULL: "f32". */
  /* "avx512vnni", "avx512", "avxvnni", "avx2", "neon_dotprod", "neon", "generic"; NULL: the best.
   */
  const char* cpu_isa;
  int32_t threads_batch; /* Of steps of several tokens: prompts, answers together; 0: as threads. */
  int32_t reserved;      /* 0, or it is refused. */
} trtmc_model_options;
#define TRTMC_MODEL_OPTIONS_INIT \
  { sizeof(trtmc_model_options), NULL, 0, 0, 0, NULL, NULL, 0, 0 }

/* Loads the bundle at `path`. `options` may be NULL. */
TRTMC_API trtmc_status trtmc_model_load(const char* path, const trtmc_model_options* options,
                                        trtmc_model** model, trtmc_error** error);
/* Streams and chats that use the model live on. */
TRTMC_API void trtmc_model_free(trtmc_model* model);

/* What the model is, as a JSON object: "family", "source", "source_revision", "licence",
 * "vocab_size", "context_length", "stop_ids", "has_tokenizer", "has_chat_template",
 * "has_reasoning", "has_tools", "device". Names may be added. */
TRTMC_API trtmc_status trtmc_model_info(const trtmc_model* model, char** json, trtmc_error** error);

#define TRTMC_TOKENIZE_ADD_SPECIAL 1u /* Add what the tokenizer puts around a text. */
#define TRTMC_TOKENIZE_PLAIN_TEXT 2u  /* "<|im_end|>" and the like are text. */
TRTMC_API trtmc_status trtmc_tokenize(const trtmc_model* model, const char* text, size_t length,
                                      uint32_t flags, int32_t** ids, size_t* count,
                                      trtmc_error** error);
#define TRTMC_DETOKENIZE_SKIP_SPECIAL 1u /* Leave special tokens out. */
/* The exact bytes, which may contain zeros and end within a code point. */
TRTMC_API trtmc_status trtmc_detokenize(const trtmc_model* model, const int32_t* ids, size_t count,
                                        uint32_t flags, char** text, size_t* length,
                                        trtmc_error** error);

/* The exact prompt for a conversation in JSON, as `trtmc prompt` reads it: an array of messages, or
 * an object with "messages", "tools", "add_generation_prompt" and "chat_template_kwargs". `date`
 * ("2026-09-04") is the day that the prompt may name; NULL: today. */
TRTMC_API trtmc_status trtmc_render(const trtmc_model* model, const char* conversation_json,
                                    const char* date, char** prompt, size_t* length,
                                    trtmc_error** error);

/* How likely `ids` are, in disjoint windows of `window` tokens (0: one window for all), each
 * shorter than the context. token_logprobs: room for `count` natural logarithms, or NULL; NaN for
 * the first of each window. logprob_sum, perplexity: each may be NULL. */
TRTMC_API trtmc_status trtmc_score(const trtmc_model* model, const int32_t* ids, size_t count,
                                   int32_t window, double* token_logprobs, double* logprob_sum,
                                   double* perplexity, trtmc_error** error);

/* ---- Answers ---- */

typedef struct trtmc_logit_bias {
  int32_t token;
  float bias;
} trtmc_logit_bias;

/* What an answer should be like. A number that is NaN or -1 where it says so comes from the bundle,
 * else it is the model's plain distribution. */
typedef struct trtmc_generation_options {
  size_t size;
  double temperature; /* 0 takes the most likely token each time; NaN: default. */
  double top_p;       /* Draw from those that make up this share; NaN: default. */
  double min_p;       /* Leave out those less likely than this times the best; NaN: default. */
  double repetition_penalty; /* NaN: default. */
  double presence_penalty;   /* NaN: default. */
  double frequency_penalty;  /* NaN: default. */
  int32_t top_k;             /* Draw from the N most likely tokens; 0: from all; -1: default. */
  int32_t max_tokens;        /* 0: to the context's end. */
  int32_t has_seed;          /* 0: other draws each time. */
  int32_t logprobs;          /* Alternatives to report per token; -1: no log-probabilities. */
  uint64_t seed;             /* Used if has_seed is not 0. */
  const char* const* stop;   /* The answer ends before any of these texts. */
  size_t stop_count;
  const trtmc_logit_bias* logit_bias;
  size_t logit_bias_count;
} trtmc_generation_options;
/* Fills `options` with the defaults. To be called before any use of the struct. */
TRTMC_API void trtmc_generation_options_init(trtmc_generation_options* options, size_t size);
#define TRTMC_GENERATION_OPTIONS_INIT(options) \
  trtmc_generation_options_init((options), sizeof(trtmc_generation_options))

typedef struct trtmc_stream trtmc_stream;

/* Answers a conversation in JSON, as trtmc_render() reads it. `options` and `date` may be NULL. */
TRTMC_API trtmc_status trtmc_model_chat(const trtmc_model* model, const char* conversation_json,
                                        const char* date, const trtmc_generation_options* options,
                                        trtmc_stream** stream, trtmc_error** error);
/* Continues a text, or ids, without a template. `options` may be NULL. */
TRTMC_API trtmc_status trtmc_model_complete(const trtmc_model* model, const char* text,
                                            size_t length, const trtmc_generation_options* options,
                                            trtmc_stream** stream, trtmc_error** error);
TRTMC_API trtmc_status trtmc_model_complete_ids(const trtmc_model* model, const int32_t* ids,
                                                size_t count,
                                                const trtmc_generation_options* options,
                                                trtmc_stream** stream, trtmc_error** error);

typedef struct trtmc_tool_call {
  const char* name;
  const char* arguments; /* JSON. */
} trtmc_tool_call;

typedef struct trtmc_token_logprob {
  int32_t token;
  float logprob; /* Natural logarithm. */
} trtmc_token_logprob;

/* What one step of an answer adds. What it points to is valid until the stream is read on or freed.
 * Never NULL but where it says so. */
typedef struct trtmc_delta {
  size_t size;
  const char* content; /* Whole code points; may be empty. Zero-terminated, as `reasoning`. */
  size_t content_length;
  const char* reasoning;
  size_t reasoning_length;
  const trtmc_tool_call* tool_calls; /* Whole calls; NULL if there are none. */
  size_t tool_call_count;
  int32_t token;                  /* -1: none, text that was held back until it was certain. */
  float logprob;                  /* If asked for; of the model's own distribution. */
  const trtmc_token_logprob* top; /* If asked for, best first; else NULL. */
  size_t top_count;
} trtmc_delta;
#define TRTMC_DELTA_INIT \
  { sizeof(trtmc_delta), NULL, 0, NULL, 0, NULL, 0, -1, 0, NULL, 0 }

/* Waits for the next delta. *more is 1 if there is one, 0 at the end. */
TRTMC_API trtmc_status trtmc_stream_next(trtmc_stream* stream, trtmc_delta* delta, int* more,
                                         trtmc_error** error);

/* Called with each delta, which is valid during the call. Not 0 cancels the answer. */
typedef int (*trtmc_delta_callback)(const trtmc_delta* delta, void* user_data);
/* Reads the stream to its end, on the calling thread. `on_delta` may be NULL. */
TRTMC_API trtmc_status trtmc_stream_read(trtmc_stream* stream, trtmc_delta_callback on_delta,
                                         void* user_data, trtmc_error** error);

/* The answer as far as it was read; valid until the stream is read on or freed. */
typedef struct trtmc_answer {
  size_t size;
  const char* content;
  size_t content_length;
  const char* reasoning;
  size_t reasoning_length;
  const trtmc_tool_call* tool_calls;
  size_t tool_call_count;
  const int32_t* ids; /* Without the stop token. */
  size_t id_count;
  const char* finish_reason; /* "stop", "length", "cancelled", "tool_calls". Static. */
  int32_t prompt_tokens;
  int32_t completion_tokens;
  int32_t cached_tokens; /* Of the prompt. */
  double prefill_ms;     /* From the request to the first token. */
  double decode_ms;      /* From the first token to the last. */
} trtmc_answer;
#define TRTMC_ANSWER_INIT \
  { sizeof(trtmc_answer), NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, 0, 0, 0, 0 }
TRTMC_API trtmc_status trtmc_stream_answer(trtmc_stream* stream, trtmc_answer* answer,
                                           trtmc_error** error);

/* Ends the answer soon, as "cancelled". From any thread, as long as the stream lives. */
TRTMC_API void trtmc_stream_cancel(trtmc_stream* stream);
/* Cancels what has not ended. */
TRTMC_API void trtmc_stream_free(trtmc_stream* stream);

/* ---- Conversations ---- */

typedef struct trtmc_chat trtmc_chat;

typedef struct trtmc_chat_options {
  size_t size;
  const char* system; /* The system message; NULL: none. */
  const char* date;   /* The day that the prompt names; NULL: today. */
  const char* tools;  /* A JSON array of tools that the model may call; NULL: none. */
  int32_t think;      /* 1: reason first, 0: do not, -1: as the template has it. */
  int32_t reserved;   /* 0, or it is refused. */
} trtmc_chat_options;
#define TRTMC_CHAT_OPTIONS_INIT \
  { sizeof(trtmc_chat_options), NULL, NULL, NULL, -1, 0 }

/* `options` may be NULL. */
TRTMC_API trtmc_status trtmc_chat_new(const trtmc_model* model, const trtmc_chat_options* options,
                                      trtmc_chat** chat, trtmc_error** error);
/* Says `text` to the model. The answer joins the history, without its reasoning, when its stream
 * has been read to the end or is freed; until then nothing else can be asked. */
TRTMC_API trtmc_status trtmc_chat_ask(trtmc_chat* chat, const char* text,
                                      const trtmc_generation_options* options,
                                      trtmc_stream** stream, trtmc_error** error);
/* What the tools that the last answer called have returned, in the order of its calls. */
TRTMC_API trtmc_status trtmc_chat_give_results(trtmc_chat* chat, const char* const* results,
                                               size_t count,
                                               const trtmc_generation_options* options,
                                               trtmc_stream** stream, trtmc_error** error);
/* The conversation as a JSON array of messages, without the system message; and back. */
TRTMC_API trtmc_status trtmc_chat_history(const trtmc_chat* chat, char** json, trtmc_error** error);
TRTMC_API trtmc_status trtmc_chat_set_history(trtmc_chat* chat, const char* json,
                                              trtmc_error** error);
TRTMC_API void trtmc_chat_free(trtmc_chat* chat);

#ifdef __cplusplus
}
#endif
