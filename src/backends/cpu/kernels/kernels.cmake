# The kernels once for every instruction set that the target's processors may have; which one runs
# is decided there (dispatch.cc).
set(options -fno-math-errno)
trtmc_cpu_kernels(generic ${options})
set(TRTMC_KERNEL_OBJECTS $<TARGET_OBJECTS:trtmc_kernels_generic>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  trtmc_cpu_kernels(avx2 ${options} -mavx2 -mfma -mf16c)
  trtmc_cpu_kernels(avxvnni ${options} -mavx2 -mfma -mf16c -mavxvnni)
  set(avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c)
  trtmc_cpu_kernels(avx512 ${options} ${avx512})
  trtmc_cpu_kernels(avx512vnni ${options} ${avx512} -mavx512vnni)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # Its own header reads what it leaves undefined on purpose (GCC bug 105593).
    foreach(isa IN ITEMS avx512 avx512vnni)
      target_compile_options(trtmc_kernels_${isa} PRIVATE -Wno-uninitialized -Wno-maybe-uninitialized)
    endforeach()
  endif()
  list(APPEND TRTMC_KERNEL_OBJECTS
       $<TARGET_OBJECTS:trtmc_kernels_avx2> $<TARGET_OBJECTS:trtmc_kernels_avxvnni>
       $<TARGET_OBJECTS:trtmc_kernels_avx512> $<TARGET_OBJECTS:trtmc_kernels_avx512vnni>)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  # g++ would load all tokens of a tile before it multiplies the first, and then lacks registers for the sums.
  list(APPEND options $<$<CXX_COMPILER_ID:GNU>:-fno-schedule-insns>)
  trtmc_cpu_kernels(neon ${options})
  trtmc_cpu_kernels(neon_dotprod ${options} -march=armv8.2-a+dotprod)
  list(APPEND TRTMC_KERNEL_OBJECTS $<TARGET_OBJECTS:trtmc_kernels_neon> $<TARGET_OBJECTS:trtmc_kernels_neon_dotprod>)
endif()
