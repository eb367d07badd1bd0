# Imported targets for the slim LibTorch of a PyPI wheel: libtorch::c10, libtorch::cpu,
# and libtorch::gomp, the OpenMP run time that LibTorch itself uses: a second one in the process
# would be a second pool of threads on the same cores.
#
# Input: LIBTORCH_ROOT, the directory that holds torch/ and nvidia/ (default: DEPS_DIR/libtorch).
# Link libtorch::cpu PRIVATE and only to targets that see no gRPC or protobuf:
# torch/include carries its own copies of those headers. They are passed with -idirafter so
# that the system's win if the two ever meet.
set(LIBTORCH_ROOT ${DEPS_DIR}/libtorch CACHE PATH "Directory that holds torch/ and nvidia/")

find_file(LibTorch_VERSION_FILE version.py PATHS ${LIBTORCH_ROOT}/torch NO_DEFAULT_PATH)
find_library(LibTorch_CPU_LIBRARY torch_cpu PATHS ${LIBTORCH_ROOT}/torch/lib NO_DEFAULT_PATH)
find_library(LibTorch_C10_LIBRARY c10 PATHS ${LIBTORCH_ROOT}/torch/lib NO_DEFAULT_PATH)
find_library(LibTorch_GOMP_LIBRARY NAMES libgomp.so.1 PATHS ${LIBTORCH_ROOT}/torch/lib
  NO_DEFAULT_PATH)
if(LibTorch_VERSION_FILE)
  file(STRINGS ${LibTorch_VERSION_FILE} _line REGEX "^__version__")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" LibTorch_VERSION "${_line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_GOMP_LIBRARY
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "run deploy/install_deps.sh, or set LIBTORCH_ROOT")

if(LibTorch_FOUND AND NOT TARGET libtorch::cpu)
  set(_after "SHELL:-idirafter ${LIBTORCH_ROOT}/torch/include")
  add_library(libtorch::c10 SHARED IMPORTED)
  set_target_properties(libtorch::c10 PROPERTIES IMPORTED_LOCATION ${LibTorch_C10_LIBRARY})
  add_library(libtorch::gomp SHARED IMPORTED)
  set_target_properties(libtorch::gomp PROPERTIES IMPORTED_LOCATION ${LibTorch_GOMP_LIBRARY})
  add_library(libtorch::cpu SHARED IMPORTED)
  set_target_properties(libtorch::cpu PROPERTIES
    IMPORTED_LOCATION ${LibTorch_CPU_LIBRARY}
    INTERFACE_LINK_LIBRARIES libtorch::c10
    INTERFACE_COMPILE_OPTIONS "${_after}"
    INTERFACE_COMPILE_DEFINITIONS AT_PER_OPERATOR_HEADERS)
endif()
