# Building the CUDA backend: nvcc for the kernels, the ordinary compiler for the rest. Included only
# where TRTMC_CUDA is on; nothing else in the tree needs nvcc.
find_package(CUDAToolkit 13.0 REQUIRED)

# trtmc_cuda_objects(OUTPUT rms_norm.cu gemv.cu)
# Compiles each source for every architecture of TRTMC_CUDA_ARCHITECTURES; OUTPUT gets the objects. By
# commands of our own, since CMake 3.25 does not know architectures such as 90a.
function(trtmc_cuda_objects output)
  set(flags -std=c++20 -O3 --expt-relaxed-constexpr -lineinfo -ccbin ${CMAKE_CXX_COMPILER} -I${PROJECT_SOURCE_DIR}/src -Werror all-warnings
      -Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra)
  foreach(architecture IN LISTS TRTMC_CUDA_ARCHITECTURES)
    list(APPEND flags -gencode=arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  if(CCACHE)
    set(launcher ${CCACHE})
  endif()
  set(objects "")
  foreach(source IN LISTS ARGN)
    cmake_path(GET source STEM name)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.cu.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${launcher} ${CUDAToolkit_NVCC_EXECUTABLE} ${flags} -MD -MF ${object}.d
              -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source} DEPFILE ${object}.d
      COMMENT "Building CUDA object ${name}.cu.o" VERBATIM COMMAND_EXPAND_LISTS)
    list(APPEND objects ${object})
  endforeach()
  set(${output} ${objects} PARENT_SCOPE)
endfunction()

# trtmc_backend_module(NAME cuda SRCS module.cc DEPS trtmc::backend_api)
# libtrtmc_backend_<name>.so beside the program, which exports its one entry and hides the rest.
function(trtmc_backend_module)
  cmake_parse_arguments(A "" "NAME" "SRCS;DEPS" ${ARGN})
  set(target trtmc_backend_${A_NAME})
  add_library(${target} MODULE ${A_SRCS})
  target_link_libraries(${target} PRIVATE ${A_DEPS})
  target_compile_options(${target} PRIVATE ${TRTMC_WARNINGS} -fvisibility=hidden)
  target_link_options(${target} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/backend_module.map)
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin LINKER_LANGUAGE CXX
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/backend_module.map)
  if(TRTMC_TESTS)
    add_test(NAME structure.module_${A_NAME}_exports_one_symbol
             COMMAND ${PROJECT_SOURCE_DIR}/tools/check_module_symbols.sh $<TARGET_FILE:${target}>)
    set_tests_properties(structure.module_${A_NAME}_exports_one_symbol PROPERTIES LABELS structure)
  endif()
endfunction()
