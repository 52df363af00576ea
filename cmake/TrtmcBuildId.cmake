# TRTMC_BUILD_ID: the commit that a build is made from, or "unknown" outside a git checkout. logs/HEAD
# changes with every commit.
execute_process(COMMAND git rev-parse --short=12 HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                OUTPUT_VARIABLE TRTMC_BUILD_ID OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
execute_process(COMMAND git rev-parse --path-format=absolute --git-path logs/HEAD
                WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                OUTPUT_VARIABLE git_log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT TRTMC_BUILD_ID)
  set(TRTMC_BUILD_ID unknown)
endif()
if(EXISTS "${git_log}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${git_log})
endif()

# trtmc_build_id_sources(build_info.cc): sources that are compiled with TRTMC_VERSION and TRTMC_BUILD_ID.
function(trtmc_build_id_sources)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_DEFINITIONS
    "TRTMC_VERSION=\"${PROJECT_VERSION}\";TRTMC_BUILD_ID=\"${TRTMC_BUILD_ID}\"")
endfunction()
