# Building the TensorRT backend against the headers in TRTMC_TENSORRT_INCLUDE. Its library is opened when it is
# used, so none is linked. Included only where that is set.
include(${PROJECT_SOURCE_DIR}/cmake/TrtmcCuda.cmake)
if(NOT EXISTS ${TRTMC_TENSORRT_INCLUDE}/NvInfer.h)
  message(FATAL_ERROR "TRTMC_TENSORRT_INCLUDE: ${TRTMC_TENSORRT_INCLUDE} has no NvInfer.h")
endif()
file(STRINGS ${TRTMC_TENSORRT_INCLUDE}/NvInferVersion.h trtmc_tensorrt_lines
     REGEX "^#define (NV_TENSORRT|TRT)_(MAJOR|MINOR)(_ENTERPRISE)? +[0-9]+")
string(REGEX REPLACE "[^;0-9]*_MAJOR[^;0-9]*([0-9]+).*_MINOR[^;0-9]*([0-9]+).*" "\\1.\\2" trtmc_tensorrt_version
       "${trtmc_tensorrt_lines}")
if(NOT trtmc_tensorrt_version VERSION_GREATER_EQUAL 10.14)
  message(FATAL_ERROR "TRTMC_TENSORRT_INCLUDE: ${TRTMC_TENSORRT_INCLUDE} has the headers of TensorRT "
                      "${trtmc_tensorrt_version}, expected 10.14 or later, the first with attention layers")
endif()

# trtmc_tensorrt_parts(tensorrt /usr/include/x86_64-linux-gnu)
# All of the backend but its module, compiled against the headers of one version, as trtmc_<name>_parts. Who links
# it chooses the CUDA runtime.
function(trtmc_tensorrt_parts name headers)
  set(folder ${PROJECT_SOURCE_DIR}/src/backends/tensorrt)
  add_library(trtmc_${name}_parts STATIC ${folder}/nvinfer_library.cc ${folder}/nvinfer_log.cc ${folder}/nvinfer_sink.cc
    ${folder}/repeated_step.cc ${folder}/run_inputs.cc ${folder}/sequence_caches.cc ${folder}/trt_engine.cc
    ${folder}/trt_executor.cc)
  target_include_directories(trtmc_${name}_parts SYSTEM PUBLIC ${headers} ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(trtmc_${name}_parts PUBLIC trtmc::backend_api trtmc::graph trtmc::backend_tensorrt_plans
    trtmc::backend_cuda_plans)
  target_compile_options(trtmc_${name}_parts PRIVATE ${TRTMC_WARNINGS} -fvisibility=hidden)
endfunction()
