# What we link that is not ours. A package found becomes the target sv_dep_<name> and the definition SV_HAVE_<NAME>;
# an optional one that is absent is compiled out, and the program says so.
#
#   sv_dependency(<name> <pkg-config module> [REQUIRED] [PROGRAM] [QUIET] [LATE <library>] [ARCHIVES <library>…])
#
# PROGRAM: libstave.a does not need it. QUIET: who asks says that it is absent. LATE: not linked but loaded when it is first used (core/base/late.h), by the name SV_<NAME>_SONAME that the
# library has here.
#
# What is installed later is found: the build configures itself again when a folder of pkg-config changes.
#
# -DSV_WITH_<NAME>=OFF leaves an optional one out although it is there (the minimal preset leaves out all).
#
# -DSV_ARCHIVES=ON (the wheel preset) links lib<library>.a of the ARCHIVES, for a program that is copied to other machines; where one is absent the dependency
# is left out.
#
# Each new line here has its partner in tools/install-deps (the -dev package) and is linked by the part that uses it.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

option(SV_OPTIONAL "use the optional dependencies that are there" ON)

option(SV_ARCHIVES "link archives instead of shared libraries" OFF)

# sv_archives(<variable> <libraries…>): the files of their archives; nothing if one is absent.
function(sv_archives variable)
  set(files)
  set(${variable} "" PARENT_SCOPE)
  foreach(library ${ARGN})
    find_library(SV_ARCHIVE_${library} lib${library}.a)
    mark_as_advanced(SV_ARCHIVE_${library})
    if(NOT SV_ARCHIVE_${library})
      return()
    endif()
    list(APPEND files ${SV_ARCHIVE_${library}})
  endforeach()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()

# sv_soname(<variable> <library> <folders…>): the name by which the dynamic linker knows it; empty where it is not found.
function(sv_soname variable library)
  find_library(SV_LATE_${library} ${library} HINTS ${ARGN})
  mark_as_advanced(SV_LATE_${library})
  execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${SV_LATE_${library}} OUTPUT_VARIABLE header ERROR_QUIET)
  string(REGEX MATCH "SONAME +([^\n ]+)" unused "${header}")
  set(${variable} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

# Debian's libmicrohttpd.a calls GnuTLS, which has no whole set of archives. Stave asks it for no TLS: the names are defined here, and each returns
# GNUTLS_E_UNIMPLEMENTED_FEATURE. A server that is asked for TLS nevertheless does not start.
function(sv_without_tls variable archive)
  execute_process(COMMAND ${CMAKE_NM} -u ${archive} OUTPUT_VARIABLE undefined ERROR_QUIET)
  string(REGEX MATCHALL "gnutls_[a-z0-9_]+" names "${undefined}")
  list(REMOVE_DUPLICATES names)
  set(text "")
  foreach(name ${names})
    if(name MATCHES "^gnutls_global_(de)?init$") # called when the program is loaded
      string(APPEND text "int ${name}(void) { return 0; }\n")
    elseif(name STREQUAL gnutls_strerror)
      string(APPEND text "const char *${name}(int code) { return (void)code, \"built without TLS\"; }\n")
    else()
      string(APPEND text "int ${name}(void) { return -1250; }\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/no_tls.c CONTENT "${text}" @ONLY)
  add_library(sv_no_tls STATIC ${CMAKE_BINARY_DIR}/generated/no_tls.c)
  set(${variable} ${archive} sv_no_tls PARENT_SCOPE)
endfunction()

function(sv_dependency name module)
  cmake_parse_arguments(PARSE_ARGV 2 arg "REQUIRED;PROGRAM;QUIET" "LATE" "ARCHIVES")
  string(TOUPPER ${name} upper)
  option(SV_WITH_${upper} "use ${module}" ${SV_OPTIONAL})
  if(SV_WITH_${upper} OR arg_REQUIRED)
    pkg_check_modules(SV_${upper} QUIET IMPORTED_TARGET ${module})
  endif()
  add_library(sv_dep_${name} INTERFACE)
  set(libraries PkgConfig::SV_${upper})
  set(soname)
  if(SV_ARCHIVES AND arg_ARCHIVES AND SV_${upper}_FOUND)
    sv_archives(libraries ${arg_ARCHIVES})
    if(libraries AND name STREQUAL microhttpd)
      sv_without_tls(libraries ${libraries})
    endif()
    target_include_directories(sv_dep_${name} SYSTEM INTERFACE ${SV_${upper}_INCLUDE_DIRS})
  elseif(arg_LATE AND SV_${upper}_FOUND)
    sv_soname(soname ${arg_LATE} ${SV_${upper}_LIBRARY_DIRS})
    set(libraries)
  endif()
  if(SV_${upper}_FOUND AND (libraries OR soname))
    target_link_libraries(sv_dep_${name} INTERFACE ${libraries})
    if(soname)
      target_include_directories(sv_dep_${name} SYSTEM INTERFACE ${SV_${upper}_INCLUDE_DIRS})
      target_compile_definitions(sv_dep_${name} INTERFACE SV_${upper}_SONAME="${soname}")
    endif()
    target_compile_definitions(sv_dep_${name} INTERFACE SV_HAVE_${upper}=1)
    message(STATUS "${name}: ${SV_${upper}_VERSION}")
    if(NOT arg_PROGRAM)
      set_property(GLOBAL APPEND PROPERTY SV_LINK_NAMES ${SV_${upper}_LIBRARIES})
    endif()
  elseif(arg_REQUIRED)
    message(FATAL_ERROR "${module} is missing: run tools/install-deps build")
  elseif(NOT arg_QUIET)
    message(NOTICE "${name}: absent, compiled out")
  endif()
endfunction()

set(folders "$ENV{PKG_CONFIG_LIBDIR}") # in the place of the usual ones
if(NOT folders)
  execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --variable pc_path pkg-config OUTPUT_VARIABLE folders OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
string(REPLACE ":" ";" folders "${folders}")
foreach(folder ${folders})
  if(IS_DIRECTORY ${folder})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder})
  endif()
endforeach()

sv_dependency(zlib zlib REQUIRED ARCHIVES z)
sv_dependency(zstd libzstd ARCHIVES zstd)
sv_dependency(sqlite sqlite3 PROGRAM ARCHIVES sqlite3)
sv_dependency(edit libedit PROGRAM)
sv_dependency(cairo cairo-ft PROGRAM LATE cairo)
sv_dependency(bpf libbpf PROGRAM ARCHIVES bpf elf z)
sv_dependency(dw libdw PROGRAM ARCHIVES dw elf lzma bz2 z)
sv_dependency(microhttpd libmicrohttpd PROGRAM LATE microhttpd ARCHIVES microhttpd)
sv_dependency(curl libcurl>=7.85 PROGRAM LATE curl)

# libgrpc is loaded when a server is opened, by the name that it has here: of the package the build needs only the headers.
option(SV_WITH_GRPC "use grpc_unsecure" ${SV_OPTIONAL})
add_library(sv_dep_grpc INTERFACE)
if(SV_WITH_GRPC)
  pkg_check_modules(SV_GRPC QUIET grpc_unsecure)
endif()
if(SV_GRPC_FOUND)
  sv_soname(soname grpc_unsecure ${SV_GRPC_LIBRARY_DIRS})
  # Older and newer ones have other functions.
  include(CheckCSourceCompiles)
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  set(CMAKE_REQUIRED_INCLUDES ${SV_GRPC_INCLUDE_DIRS})
  check_c_source_compiles("#include <grpc/grpc.h>\n#include <grpc/grpc_security.h>\n#include <grpc/support/log.h>\n
    void *a(void) { gpr_set_log_function(0); return grpc_insecure_server_credentials_create(); }" SV_GRPC_FITS)
  unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
  unset(CMAKE_REQUIRED_INCLUDES)
endif()
if(SV_GRPC_FOUND AND soname AND SV_GRPC_FITS)
  target_include_directories(sv_dep_grpc SYSTEM INTERFACE ${SV_GRPC_INCLUDE_DIRS})
  target_compile_definitions(sv_dep_grpc INTERFACE SV_HAVE_GRPC=1 SV_GRPC_SONAME="${soname}")
  message(STATUS "grpc: ${SV_GRPC_VERSION}, ${soname}")
else()
  message(NOTICE "grpc: absent, compiled out")
endif()
