# longview_library(NAME SOURCES...)
#
# Adds a static library whose headers, and those of what links it, are named from the top folder.
function(longview_library name)
  add_library(${name} STATIC ${ARGN})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
endfunction()
