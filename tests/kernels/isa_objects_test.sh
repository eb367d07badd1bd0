#!/bin/sh
# Files compiled for one instruction set must not define functions that other files may define
# too: the linker keeps one copy, and an AVX-512 copy would crash older CPUs.
# Usage: isa_objects_test.sh OBJECT...
checked=0
for object in "$@"; do
  case "$object" in
    *_avx*.o | *_amx*.o) ;;
    *) continue ;;
  esac
  checked=$((checked + 1))
  shared=$(nm -C "$object" | grep ' W ')
  if [ -n "$shared" ]; then
    echo "$object defines functions that the linker may share:"
    echo "$shared"
    exit 1
  fi
done
[ "$checked" -ge 7 ] || { echo "only $checked instruction set objects found"; exit 1; }
echo "$checked objects, none shares a function"
