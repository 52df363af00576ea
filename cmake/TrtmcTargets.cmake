# The few functions that every CMakeLists.txt of the tree is written in.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# The shared library shows what is marked TRTMC_API and nothing else.
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# No a * b + c in one rounding that was not asked for: numbers are those of Transformers, Python and gguf on
# every processor, and g++ would fuse wherever the processor can.
add_compile_options(-ffp-contract=off)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
if(TRTMC_SANITIZE)
  add_compile_options(-fsanitize=${TRTMC_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TRTMC_SANITIZE})
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Debug" OR TRTMC_SANITIZE)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()

set(TRTMC_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)
# g++ 12 sees uninitialised reads in moved std::variants where there are none; clang and the
# sanitizers find the real ones.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND TRTMC_WARNINGS -Wno-maybe-uninitialized)
  # g++ 13 takes a reference that is returned for one into an argument's temporary.
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    list(APPEND TRTMC_WARNINGS -Wno-dangling-reference)
  endif()
endif()

# trtmc_library(NAME base SRCS error.cc HDRS error.h DEPS fmt::fmt)
# A folder of src/ as a static library `trtmc::base`. DEPS is the whole list of what it may use.
function(trtmc_library)
  cmake_parse_arguments(A "" "NAME" "SRCS;HDRS;DEPS" ${ARGN})
  add_library(trtmc_${A_NAME} STATIC ${A_SRCS})
  add_library(trtmc::${A_NAME} ALIAS trtmc_${A_NAME})
  target_sources(trtmc_${A_NAME} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${A_HDRS})
  target_link_libraries(trtmc_${A_NAME} PUBLIC ${A_DEPS})
  target_compile_options(trtmc_${A_NAME} PRIVATE ${TRTMC_WARNINGS})
  set_target_properties(trtmc_${A_NAME} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON LINKER_LANGUAGE CXX)
endfunction()

# trtmc_test(NAME base SRCS error_test.cc DEPS trtmc::base [LABELS unit] [TIMEOUT 60])
# One GoogleTest program `<name>_tests`; each of its tests is a ctest. WHOLE: the program is one, because its
# tests share what is costly to make.
function(trtmc_test)
  cmake_parse_arguments(A "WHOLE" "NAME;TIMEOUT" "SRCS;DEPS;LABELS" ${ARGN})
  if(NOT TRTMC_TESTS)
    return()
  endif()
  if(NOT A_LABELS)
    set(A_LABELS unit)
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  if(CMAKE_CROSSCOMPILING)  # Run by an emulator, which takes tens of times as long.
    list(APPEND A_LABELS slow)
    math(EXPR A_TIMEOUT "10 * ${A_TIMEOUT}")
  endif()
  add_executable(${A_NAME}_tests ${A_SRCS})
  target_link_libraries(${A_NAME}_tests PRIVATE ${A_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_options(${A_NAME}_tests PRIVATE ${TRTMC_WARNINGS})
  target_include_directories(${A_NAME}_tests PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${A_NAME}_tests PRIVATE
    TRTMC_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TRTMC_BINARY_DIR="${PROJECT_BINARY_DIR}")
  # A test of a value is called by the name that its suite gives the value, not by how it prints.
  if(A_WHOLE)
    add_test(NAME ${A_NAME}.all COMMAND ${A_NAME}_tests --gtest_brief=1)
    set_tests_properties(${A_NAME}.all PROPERTIES LABELS "${A_LABELS}" TIMEOUT ${A_TIMEOUT})
    return()
  endif()
  gtest_discover_tests(${A_NAME}_tests DISCOVERY_MODE PRE_TEST NO_PRETTY_VALUES
    TEST_PREFIX "${A_NAME}." PROPERTIES LABELS "${A_LABELS}" TIMEOUT ${A_TIMEOUT})
endfunction()

# trtmc_fuzz(NAME json [SRCS more.cc] DEPS trtmc::base)
# fuzz/<name>_fuzz.cc as a libFuzzer program under the `asan` preset, elsewhere with a main() of ours; a
# ctest replays fuzz/corpus/<name>/ through either, and the big seeds of fuzz/packed/<name>/, unpacked.
function(trtmc_fuzz)
  cmake_parse_arguments(A "" "NAME" "SRCS;DEPS" ${ARGN})
  set(source ${PROJECT_SOURCE_DIR}/fuzz/${A_NAME}_fuzz.cc ${A_SRCS})
  if(TRTMC_FUZZ)
    add_executable(${A_NAME}_fuzz ${source})
    target_compile_options(${A_NAME}_fuzz PRIVATE -fsanitize=fuzzer)
    target_link_options(${A_NAME}_fuzz PRIVATE -fsanitize=fuzzer)
    set(replay_only -runs=0)
  else()
    add_executable(${A_NAME}_fuzz ${source} ${PROJECT_SOURCE_DIR}/fuzz/replay_main.cc)
  endif()
  set(corpora ${PROJECT_SOURCE_DIR}/fuzz/corpus/${A_NAME})
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/fuzz/packed/${A_NAME})
    list(APPEND corpora ${PROJECT_BINARY_DIR}/testdata/fuzz/packed/${A_NAME})
    add_dependencies(${A_NAME}_fuzz trtmc_test_data)
  endif()
  add_test(NAME fuzz_replay.${A_NAME} COMMAND ${A_NAME}_fuzz ${replay_only} ${corpora})
  set_tests_properties(fuzz_replay.${A_NAME} PROPERTIES LABELS fuzz_replay TIMEOUT 120)
  target_compile_options(${A_NAME}_fuzz PRIVATE ${TRTMC_WARNINGS})
  target_link_libraries(${A_NAME}_fuzz PRIVATE ${A_DEPS})
  target_include_directories(${A_NAME}_fuzz PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${A_NAME}_fuzz PRIVATE TRTMC_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endfunction()

# trtmc_cpu_kernels(avx2 -mavx2 -mfma -mf16c)
# The sources of the CPU kernels, compiled for one instruction set as an object library.
function(trtmc_cpu_kernels isa)
  set(folder ${PROJECT_SOURCE_DIR}/src/backends/cpu/kernels)
  add_library(trtmc_kernels_${isa} OBJECT ${folder}/kernels.cc ${folder}/quantized.cc)
  target_include_directories(trtmc_kernels_${isa} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(trtmc_kernels_${isa} PRIVATE TRTMC_ISA=${isa} TRTMC_ISA_${isa}=1)
  # Optimised even in a debug build: a test of the kernels is a test of the code that ships.
  # A sanitizer's checks may keep clang from unrolling as asked.
  target_compile_options(trtmc_kernels_${isa} PRIVATE ${TRTMC_WARNINGS} $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>
    ${ARGN} -O3 -fno-lto -U_GLIBCXX_ASSERTIONS)
  if(TRTMC_TESTS AND NOT TRTMC_SANITIZE)
    add_test(NAME structure.kernels_${isa}_have_no_weak_symbols
             COMMAND ${PROJECT_SOURCE_DIR}/tools/check_weak_symbols.sh $<TARGET_OBJECTS:trtmc_kernels_${isa}>)
    set_tests_properties(structure.kernels_${isa}_have_no_weak_symbols PROPERTIES LABELS structure)
  endif()
endfunction()

# trtmc_family(NAME smollm3 SYMBOL kSmolLm3Family SRCS smollm3.cc)
# One line in src/families/<name>/family.cmake; the table all_families() is made from these.
function(trtmc_family)
  cmake_parse_arguments(A "" "NAME;SYMBOL" "SRCS" ${ARGN})
  list(TRANSFORM A_SRCS PREPEND ${PROJECT_SOURCE_DIR}/src/families/${A_NAME}/)
  trtmc_library(NAME family_${A_NAME} SRCS ${A_SRCS} DEPS trtmc::family_api)
  set_property(GLOBAL APPEND PROPERTY TRTMC_FAMILY_SYMBOLS ${A_SYMBOL})
  set_property(GLOBAL APPEND PROPERTY TRTMC_FAMILY_LIBS trtmc::family_${A_NAME})
endfunction()
