# The kernels once for every instruction set that the target's processors may have; which one runs
# is decided there (dispatch.cc).
set(options -fno-math-errno)
trtmc_cpu_kernels(generic ${options})
set(TRTMC_KERNEL_OBJECTS $<TARGET_OBJECTS:trtmc_kernels_generic>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  trtmc_cpu_kernels(avx2 ${options} -mavx2 -mfma -mf16c)
  trtmc_cpu_kernels(avx512 ${options} -mavx512f -mavx512bw -mavx512vl -mavx512dq)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # Its own header reads what it leaves undefined on purpose (GCC bug 105593).
    target_compile_options(trtmc_kernels_avx512 PRIVATE -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  list(APPEND TRTMC_KERNEL_OBJECTS
       $<TARGET_OBJECTS:trtmc_kernels_avx2> $<TARGET_OBJECTS:trtmc_kernels_avx512>)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  # g++ would load all tokens of a tile before it multiplies the first, and then lacks registers for the sums.
  trtmc_cpu_kernels(neon ${options} $<$<CXX_COMPILER_ID:GNU>:-fno-schedule-insns>)
  list(APPEND TRTMC_KERNEL_OBJECTS $<TARGET_OBJECTS:trtmc_kernels_neon>)
endif()
