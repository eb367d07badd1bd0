# `cmake --install build --prefix DIR` and `cpack --config build/CPackConfig.cmake`: programs,
# bundled models and every shared library beyond glibc, in one relocatable tree.
#
#   bin/              longview-server, longview
#   lib/longview/     Debian's libraries; torch/lib and nvidia/cu13/lib as in the wheel, because
#                     LibTorch finds its neighbours by that layout
#   share/longview/   zoo/ (the server finds it from its own place), licences/, sbom.spdx.json
#   deploy/           serve.sh, so that the tree answers a first request by itself
include(GNUInstallDirs)

set(_private ${CMAKE_INSTALL_LIBDIR}/longview)
set(_share ${CMAKE_INSTALL_DATADIR}/longview)
if(NOT CMAKE_INSTALL_LIBDIR STREQUAL "lib")
  set(_private lib/longview)
endif()

# RPATH and not RUNPATH: only the former also holds for what the libraries themselves need.
foreach(program longview-server longview_program)
  target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
  set_target_properties(${program} PROPERTIES
    INSTALL_RPATH "$ORIGIN/../${_private};$ORIGIN/../${_private}/torch/lib")
endforeach()

install(TARGETS longview-server longview_program
  RUNTIME_DEPENDENCY_SET longview_needs
  RUNTIME DESTINATION bin COMPONENT runtime)
install(RUNTIME_DEPENDENCY_SET longview_needs
  PRE_EXCLUDE_REGEXES
    "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv|util|anl)\\.so"
    "^lib(torch|c10|gomp|cupti|cudart)"
  POST_EXCLUDE_REGEXES "libtorch/"
  LIBRARY DESTINATION ${_private} COMPONENT runtime)

# LibTorch's three libraries lose their local symbols (a fifth of their size); NVIDIA's stay as
# they came.
install(CODE "
  set(destination \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${_private}/torch/lib\")
  file(MAKE_DIRECTORY \"\${destination}\")
  foreach(library libtorch_cpu.so libc10.so libgomp.so.1)
    message(STATUS \"Stripping into place: \${destination}/\${library}\")
    execute_process(
      COMMAND ${CMAKE_STRIP} --strip-unneeded -o \"\${destination}/\${library}\"
              \"${LIBTORCH_ROOT}/torch/lib/\${library}\"
      COMMAND_ERROR_IS_FATAL ANY)
  endforeach()" COMPONENT runtime)
install(PROGRAMS
  ${LIBTORCH_ROOT}/nvidia/cu13/lib/libcupti.so.13 ${LIBTORCH_ROOT}/nvidia/cu13/lib/libcudart.so.13
  DESTINATION ${_private}/nvidia/cu13/lib COMPONENT runtime)
# The server looks for its plugin beside itself.
if(TARGET longview_cuda)
  install(TARGETS longview_cuda LIBRARY DESTINATION bin COMPONENT runtime OPTIONAL)
endif()

install(DIRECTORY models/zoo/ DESTINATION ${_share}/zoo COMPONENT runtime)
install(PROGRAMS deploy/serve.sh DESTINATION deploy COMPONENT runtime)
install(FILES deploy/lib.sh DESTINATION deploy COMPONENT runtime)
install(FILES LICENSE deploy/LICENSES.md DESTINATION ${_share}/licences COMPONENT runtime)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
install(CODE "
  execute_process(
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/deploy/package/sbom.py
            --prefix \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\" --libraries ${_private}
            --libtorch ${LIBTORCH_ROOT} --version ${PROJECT_VERSION}
            --cargo-lock ${CMAKE_SOURCE_DIR}/models/text/tokenizer_ffi/Cargo.lock
            --out ${_share}
    COMMAND_ERROR_IS_FATAL ANY)" COMPONENT runtime)

set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME longview)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_FILE_NAME longview-${PROJECT_VERSION}-linux-x86_64)
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR})
include(CPack)
