trtmc_family(NAME smollm3 SYMBOL kSmolLm3Family SRCS smollm3.cc rope_schedule.cc)
