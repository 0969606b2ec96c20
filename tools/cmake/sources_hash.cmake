# sv_sources_hash(<target> <folders…>): adds a file that defines sv_kept_build, a hash of the C sources in the folders and of the settings that change what
# they do. An index of a trace is used only by what was built from the same sources: the program and libstave-read share it.
if(CMAKE_SCRIPT_MODE_FILE) # in the build, when a source has changed
  file(STRINGS ${LIST} sources)
  set(all "${SETTINGS}")
  foreach(source ${sources})
    file(SHA256 ${source} hash)
    string(APPEND all ${hash})
  endforeach()
  string(SHA256 all "${all}")
  string(SUBSTRING ${all} 0 16 all)
  file(WRITE ${OUT} "/* Made by tools/cmake/sources_hash.cmake. */\n#include \"files/kept.h\"\n\nconst uint64_t sv_kept_build = 0x${all};\n")
  return()
endif()

function(sv_sources_hash target)
  set(patterns)
  foreach(folder ${ARGN})
    list(APPEND patterns ${PROJECT_SOURCE_DIR}/${folder}/*.c ${PROJECT_SOURCE_DIR}/${folder}/*.h)
  endforeach()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns})
  get_property(settings GLOBAL PROPERTY SV_LINK_NAMES)
  list(APPEND settings ${CMAKE_BUILD_TYPE} ${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION} ${SV_SANITIZE})
  string(REPLACE ";" "+" settings "${settings}")
  set(file ${CMAKE_BINARY_DIR}/generated/sources_hash.c)
  list(JOIN sources "\n" lines)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/sources.txt CONTENT "${lines}\n" @ONLY)
  add_custom_command(OUTPUT ${file}
    COMMAND ${CMAKE_COMMAND} -DLIST=${CMAKE_BINARY_DIR}/generated/sources.txt -DSETTINGS=${settings} -DOUT=${file}
      -P ${PROJECT_SOURCE_DIR}/tools/cmake/sources_hash.cmake
    DEPENDS ${sources} ${CMAKE_BINARY_DIR}/generated/sources.txt ${PROJECT_SOURCE_DIR}/tools/cmake/sources_hash.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${file})
endfunction()
