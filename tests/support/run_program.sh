#!/bin/sh
# Runs a program of GoogleTest for ctest. With LONGVIEW_REPORTS=FOLDER in the environment, the
# results of its tests are in FOLDER/NAME.xml afterwards.
#
#   run_program.sh NAME PROGRAM [ARGUMENT...]
name=$1
shift
[ -z "${LONGVIEW_REPORTS:-}" ] || export GTEST_OUTPUT="xml:$LONGVIEW_REPORTS/$name.xml"
exec "$@"
