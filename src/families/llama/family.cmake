trtmc_family(NAME llama SYMBOL kLlamaFamily SRCS llama.cc)
