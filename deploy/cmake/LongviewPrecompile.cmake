# Fewer and shorter compilations: headers cost more here than the code that includes them.
#
# * Unity builds: the units of a library compile CMAKE_UNITY_BUILD_BATCH_SIZE at a time, so two units of one library do not
#   define one name, also not in their unnamed namespaces.
# * Precompiled headers: deploy/cmake/precompiled/<kind>.h, for all targets of a folder.
#
# The preset `alone` compiles every unit by itself instead, with what it includes itself.

# Adds the target longview_precompiled_<kind>, which compiles <kind>.h with the flags of the folder it is called in.
# ARGN: libraries whose headers <kind>.h includes.
function(longview_add_precompiled kind)
  set(holder longview_precompiled_${kind})
  add_library(${holder} OBJECT ${CMAKE_SOURCE_DIR}/deploy/cmake/precompiled/holder.cc)
  target_include_directories(${holder} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${holder} PRIVATE ${ARGN})
  target_precompile_headers(${holder} PRIVATE ${CMAKE_SOURCE_DIR}/deploy/cmake/precompiled/${kind}.h)
endfunction()

# Compiles all C++ targets of a folder and its subfolders with <kind>.h in front. Units with compile options of their own (an
# instruction set, say) keep out of it.
function(longview_precompile folder kind)
  get_property(subfolders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(subfolder ${subfolders})
    longview_precompile(${subfolder} ${kind})
  endforeach()
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(NOT type MATCHES "^(STATIC_LIBRARY|OBJECT_LIBRARY|EXECUTABLE)$")
      continue()
    endif()
    get_target_property(sources ${target} SOURCES)
    get_target_property(home ${target} SOURCE_DIR)
    foreach(source ${sources})
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${home})
      get_source_file_property(options ${source} TARGET_DIRECTORY ${target} COMPILE_OPTIONS)
      if(options)
        set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
      endif()
    endforeach()
    # GCC takes a precompiled header only where the macros of its compilation are defined too; some releases of Abseil
    # define NOMINMAX for whoever links them.
    target_compile_options(${target} PRIVATE
      $<FILTER:$<TARGET_PROPERTY:longview_precompiled_${kind},COMPILE_OPTIONS>,INCLUDE,^-D>)
    target_precompile_headers(${target} REUSE_FROM longview_precompiled_${kind})
  endforeach()
endfunction()
