# Defines longview::client. Needs the gRPC, protobuf and Abseil that it was built with.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(absl)
find_dependency(Protobuf)
find_dependency(gRPC CONFIG)
include(${CMAKE_CURRENT_LIST_DIR}/longview-client-targets.cmake)
