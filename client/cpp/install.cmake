# `cmake --install build --component client --prefix DIR`: the library for programs of other
# repositories, see README.md. Not part of an install without a component.
add_library(longview_client_package STATIC
  $<TARGET_OBJECTS:longview_client> $<TARGET_OBJECTS:longview_proto>)
set_target_properties(longview_client_package PROPERTIES
  LINKER_LANGUAGE CXX OUTPUT_NAME longview-client EXPORT_NAME client)
target_compile_features(longview_client_package INTERFACE cxx_std_20)
target_include_directories(longview_client_package
  INTERFACE $<INSTALL_INTERFACE:include/longview-client>)
target_link_libraries(longview_client_package
  INTERFACE gRPC::grpc++ protobuf::libprotobuf absl::status absl::statusor absl::strings)

include(CMakePackageConfigHelpers)
set(_cmake lib/cmake/longview-client)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/longview-client-config-version.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(TARGETS longview_client_package EXPORT longview-client
  ARCHIVE DESTINATION lib COMPONENT client EXCLUDE_FROM_ALL)
install(EXPORT longview-client NAMESPACE longview:: FILE longview-client-targets.cmake
  DESTINATION ${_cmake} COMPONENT client EXCLUDE_FROM_ALL)
install(FILES longview-client-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/longview-client-config-version.cmake
  DESTINATION ${_cmake} COMPONENT client EXCLUDE_FROM_ALL)
install(FILES channel.h client.h retry_policy.h
  DESTINATION include/longview-client/client/cpp COMPONENT client EXCLUDE_FROM_ALL)
install(DIRECTORY ${CMAKE_BINARY_DIR}/proto/longview DESTINATION include/longview-client
  COMPONENT client EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.pb.h")
