# longview_test(NAME SOURCES file... LIBRARIES library... [GOLDEN] [DEVICE] [SHARDS count]
#               [ENVIRONMENT NAME=value...] [WORKING_DIRECTORY folder])
#
# Adds a program of GoogleTest and registers it with ctest. GOLDEN: it reads LONGVIEW_GOLDEN_DIR.
# DEVICE: it loads the plugin where one is built, and runs with the allocator and threads that suit
# models on a device. SHARDS: its tests are dealt out over so many processes.
#
# A program is one process, since LibTorch takes longer to start than most tests take to run.
# With LONGVIEW_REPORTS=FOLDER in ctest's environment each program leaves the results of its single
# tests there (tests/support/run_program.sh), which tests/support/summary.py counts.
#
# longview_rerun_test(NAME SUFFIX suffix ENVIRONMENT NAME=value...) registers it once more.
set(LONGVIEW_TEST_SECONDS 600 CACHE STRING "Seconds after which a test program counts as hanging")

# A device's memory on the host comes in large blocks that live for one test: the heap keeps them,
# instead of having the kernel clear their pages again and again. What runs on a device is on one
# thread there, and what is beside it is too small for more.
set(LONGVIEW_DEVICE_TEST_ENVIRONMENT OMP_NUM_THREADS=1 MALLOC_MMAP_MAX_=0
  MALLOC_TRIM_THRESHOLD_=20000000000 MALLOC_TOP_PAD_=268435456)

function(longview_test name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "GOLDEN;DEVICE" "WORKING_DIRECTORY;SHARDS"
    "SOURCES;LIBRARIES;ENVIRONMENT")
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_SOURCES)
    message(FATAL_ERROR "longview_test(${name}): ${ARG_UNPARSED_ARGUMENTS} is no argument, or there "
      "are no SOURCES")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES})
  if(NOT "GTest::gmock_main" IN_LIST ARG_LIBRARIES)
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
  endif()
  if(ARG_GOLDEN)
    target_compile_definitions(${name} PRIVATE LONGVIEW_GOLDEN_DIR="${LONGVIEW_GOLDEN_DIR}")
  endif()
  if(ARG_DEVICE)
    list(APPEND ARG_ENVIRONMENT ${LONGVIEW_DEVICE_TEST_ENVIRONMENT})
    if(TARGET longview_cuda)
      add_dependencies(${name} longview_cuda)
    endif()
  endif()
  if(NOT ARG_SHARDS)
    longview_register_test(${name} ${name} "${ARG_WORKING_DIRECTORY}" ${ARG_ENVIRONMENT})
    return()
  endif()
  math(EXPR last "${ARG_SHARDS} - 1")
  foreach(shard RANGE ${last})
    longview_register_test(${name}_shard${shard} ${name} "${ARG_WORKING_DIRECTORY}"
      ${ARG_ENVIRONMENT} GTEST_TOTAL_SHARDS=${ARG_SHARDS} GTEST_SHARD_INDEX=${shard})
  endforeach()
endfunction()

function(longview_rerun_test program)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "SUFFIX" "ENVIRONMENT")
  longview_register_test(${program}${ARG_SUFFIX} ${program} "" ${ARG_ENVIRONMENT})
endfunction()

# An empty `folder` is the one of the build.
function(longview_register_test name program folder)
  if(NOT folder)
    set(folder ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  add_test(NAME ${name} WORKING_DIRECTORY ${folder}
    COMMAND ${CMAKE_SOURCE_DIR}/tests/support/run_program.sh ${name} $<TARGET_FILE:${program}>)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${LONGVIEW_TEST_SECONDS} ENVIRONMENT "${ARGN}")
endfunction()
