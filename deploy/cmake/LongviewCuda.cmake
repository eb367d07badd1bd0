# The CUDA compiler, for the plugin of kernels/cuda: from PyPI wheels (DEPS_DIR/cuda, see
# deploy/install_deps.sh --cuda) or any toolkit that LONGVIEW_CUDA_ROOT names.
#
# LONGVIEW_CUDA: AUTO builds the plugin if the compiler is found, ON demands it, OFF leaves it out.
# Sets LONGVIEW_CUDA_ENABLED. Include it from the top folder, after the C++ settings.
#
# The wheels have neither lib64 nor a libcudart.so to link, so find_package(CUDAToolkit) fails on
# them: the plugin links the static runtime and needs no more than the folder it lies in.
set(LONGVIEW_CUDA AUTO CACHE STRING "Build the CUDA plugin: AUTO, ON or OFF")
set(LONGVIEW_CUDA_ROOT ${DEPS_DIR}/cuda/nvidia/cu13 CACHE PATH "A CUDA toolkit: bin/nvcc and lib/")
set(LONGVIEW_CUDA_ENABLED OFF)

if(LONGVIEW_CUDA STREQUAL "AUTO" AND LONGVIEW_SANITIZE)
  message(STATUS "CUDA plugin: left out of instrumented builds")
elseif(LONGVIEW_CUDA)
  find_program(LONGVIEW_NVCC nvcc PATHS ${LONGVIEW_CUDA_ROOT}/bin NO_DEFAULT_PATH)
  if(LONGVIEW_NVCC)
    set(LONGVIEW_CUDA_ENABLED ON)
  elseif(LONGVIEW_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA plugin: left out, no nvcc in ${LONGVIEW_CUDA_ROOT}/bin")
  else()
    message(FATAL_ERROR "LONGVIEW_CUDA is ${LONGVIEW_CUDA}, but ${LONGVIEW_CUDA_ROOT}/bin has no nvcc: "
      "run deploy/install_deps.sh --cuda, or set LONGVIEW_CUDA_ROOT")
  endif()
endif()

if(LONGVIEW_CUDA_ENABLED)
  set(CMAKE_CUDA_COMPILER ${LONGVIEW_NVCC})
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  set(CMAKE_CUDA_FLAGS_INIT "-L${LONGVIEW_CUDA_ROOT}/lib")
  # Ampere and Hopper as machine code; newer devices compile the PTX when they load it.
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  enable_language(CUDA)
  if(CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
  endif()
  # CMake 3.25 knows no C++20 for CUDA and would quietly fall back to the compiler's default.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
  message(STATUS "CUDA plugin: ${LONGVIEW_NVCC}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
endif()
