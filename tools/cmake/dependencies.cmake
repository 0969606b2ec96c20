# What we link that is not ours. A package found becomes the target sv_dep_<name> and the definition SV_HAVE_<NAME>;
# an optional one that is absent is compiled out, and the program says so.
#
#   sv_dependency(<name> <pkg-config module> [REQUIRED] [PROGRAM])     PROGRAM: libstave.a does not need it
#
# -DSV_WITH_<NAME>=OFF leaves an optional one out although it is there (the minimal preset leaves out all).
#
# Each new line here has its partner in tools/install-deps (the -dev package) and is linked by the part that uses it.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

option(SV_OPTIONAL "use the optional dependencies that are there" ON)

function(sv_dependency name module)
  string(TOUPPER ${name} upper)
  option(SV_WITH_${upper} "use ${module}" ${SV_OPTIONAL})
  if(SV_WITH_${upper} OR "REQUIRED" IN_LIST ARGN)
    pkg_check_modules(SV_${upper} QUIET IMPORTED_TARGET ${module})
  endif()
  add_library(sv_dep_${name} INTERFACE)
  if(SV_${upper}_FOUND)
    target_link_libraries(sv_dep_${name} INTERFACE PkgConfig::SV_${upper})
    target_compile_definitions(sv_dep_${name} INTERFACE SV_HAVE_${upper}=1)
    message(STATUS "${name}: ${SV_${upper}_VERSION}")
    if(NOT "PROGRAM" IN_LIST ARGN)
      set_property(GLOBAL APPEND PROPERTY SV_LINK_NAMES ${SV_${upper}_LIBRARIES})
    endif()
  elseif("REQUIRED" IN_LIST ARGN)
    message(FATAL_ERROR "${module} is missing: run tools/install-deps build")
  else()
    message(NOTICE "${name}: absent, compiled out")
  endif()
endfunction()

sv_dependency(zlib zlib REQUIRED)
sv_dependency(zstd libzstd)
sv_dependency(sqlite sqlite3 PROGRAM)
sv_dependency(edit libedit PROGRAM)
sv_dependency(cairo cairo-ft PROGRAM)
sv_dependency(fontconfig fontconfig PROGRAM)
sv_dependency(bpf libbpf PROGRAM)
sv_dependency(microhttpd libmicrohttpd PROGRAM)
sv_dependency(curl libcurl>=7.85 PROGRAM)
