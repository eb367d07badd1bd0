# longview_test(PROGRAM [SUFFIX s] [ENVIRONMENT NAME=value...] [WORKING_DIRECTORY folder])
#
# Adds a program of GoogleTest to ctest. A whole program is one process, since LibTorch takes longer
# to start than most tests take to run. With LONGVIEW_REPORTS=FOLDER in ctest's environment each
# program leaves the results of its single tests there (tests/support/run_program.sh), which
# tests/support/summary.py counts.
# SUFFIX tells two runs of one program apart.
set(LONGVIEW_TEST_SECONDS 600 CACHE STRING "Seconds after which a test program counts as hanging")

function(longview_test program)
  cmake_parse_arguments(ARG "" "SUFFIX;WORKING_DIRECTORY" "ENVIRONMENT" ${ARGN})
  set(name ${program}${ARG_SUFFIX})
  set(folder ${CMAKE_CURRENT_BINARY_DIR})
  if(ARG_WORKING_DIRECTORY)
    set(folder ${ARG_WORKING_DIRECTORY})
  endif()
  add_test(NAME ${name} WORKING_DIRECTORY ${folder}
    COMMAND ${CMAKE_SOURCE_DIR}/tests/support/run_program.sh ${name} $<TARGET_FILE:${program}>)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${LONGVIEW_TEST_SECONDS}
    ENVIRONMENT "${ARG_ENVIRONMENT}")
endfunction()
