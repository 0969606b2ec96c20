# Libraries that other people's programs load by an environment variable (lib/inject/): libstave-<name>.so, beside the program in the build
# and in LIBDIR/stave when installed. They call the public headers only.
#
#   sv_inject(<name> [what it links…])     from lib/inject/<name>/*.c
#
# The headers of NVTX and CUPTI come with a CUDA toolkit and need no GPU. -DSV_WITH_NVTX=OFF and -DSV_WITH_CUPTI=OFF leave the libraries out; SV_CUDA_ROOT
# says where the toolkit is when it is not where they usually are.

#   sv_inject_from(<folder> <name> [what it links…])     from lib/inject/<folder>/*.c, without libstave unless it is named
function(sv_inject_from folder name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lib/inject/${folder}/*.c)
  set(target stave_inject_${name})
  add_library(${target} MODULE ${sources})
  target_link_libraries(${target} PRIVATE sv_flags Threads::Threads ${CMAKE_DL_LIBS} ${ARGN})
  target_link_options(${target} PRIVATE -Wl,--gc-sections -Wl,--exclude-libs,ALL -Wl,-z,nodelete -Wl,-soname,libstave-${name}.so)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME stave-${name} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  sv_run_path(${target} $ORIGIN $ORIGIN/..) # beside libstave in the build, below it when installed
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/stave)
endfunction()

function(sv_inject name)
  sv_inject_from(${name} ${name} stave ${ARGN})
endfunction()

set(SV_CUDA_ROOT "" CACHE PATH "the CUDA toolkit, for the headers of NVTX and CUPTI")
file(GLOB cuda_roots /usr/local/cuda /usr/local/cuda-* /opt/cuda)

# sv_cuda_header(<name> <header> <library>): the folder of it as the system target sv_dep_<name>, if it is there.
function(sv_cuda_header name header library)
  string(TOUPPER ${name} upper)
  option(SV_WITH_${upper} "use ${header}" ${SV_OPTIONAL})
  add_library(sv_dep_${name} INTERFACE)
  if(SV_WITH_${upper})
    find_path(SV_${upper}_INCLUDE ${header} HINTS ${SV_CUDA_ROOT} $ENV{CUDA_HOME} ${cuda_roots}
      PATH_SUFFIXES include extras/CUPTI/include targets/x86_64-linux/include)
    mark_as_advanced(SV_${upper}_INCLUDE)
  endif()
  if(SV_WITH_${upper} AND SV_${upper}_INCLUDE)
    target_include_directories(sv_dep_${name} SYSTEM INTERFACE ${SV_${upper}_INCLUDE})
    message(STATUS "${name}: ${SV_${upper}_INCLUDE}/${header}")
    set(SV_HAVE_${upper} ON PARENT_SCOPE)
  else()
    message(NOTICE "${name}: ${header} absent, libstave-${library}.so is not built")
    set(SV_HAVE_${upper} OFF PARENT_SCOPE)
  endif()
endfunction()

# Programs that are traced by the tests and benches: they know NVTX and nothing of Stave.
function(sv_inject_program kind folder name dependency)
  add_executable(${name} EXCLUDE_FROM_ALL ${folder}/${name}.c)
  target_link_libraries(${name} PRIVATE sv_flags ${dependency} Threads::Threads ${CMAKE_DL_LIBS})
  # Headers of others, and tables that leave out what is zero.
  target_compile_options(${name} PRIVATE -Wno-missing-field-initializers)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${folder})
  add_dependencies(${kind} ${name})
endfunction()

# Each interface has a line in the list, and its folder has a build.cmake.
set(list ${PROJECT_SOURCE_DIR}/src/record/session/injections.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
file(READ ${list} text)
string(REGEX MATCHALL " INJECTION\\([a-z]+," lines "${text}")
foreach(line ${lines})
  string(REGEX REPLACE " INJECTION\\(([a-z]+)," "\\1" name "${line}")
  include(${PROJECT_SOURCE_DIR}/lib/inject/${name}/build.cmake)
endforeach()
