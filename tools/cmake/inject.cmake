# Libraries that other people's programs load by an environment variable (lib/inject/): libstave-<name>.so, beside the program in the build
# and in LIBDIR/stave when installed. They call the public headers only.
#
#   sv_inject(<name> [what it stands on…])     from lib/inject/<name>/*.c
#
# The headers of NVTX and CUPTI come with a CUDA toolkit and need no GPU. -DSV_WITH_NVTX=OFF and -DSV_WITH_CUPTI=OFF leave the libraries out; SV_CUDA_ROOT
# says where the toolkit is when it is not where they usually are.

function(sv_inject name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lib/inject/${name}/*.c)
  set(target stave_inject_${name})
  add_library(${target} MODULE ${sources})
  target_link_libraries(${target} PRIVATE sv_flags stave Threads::Threads ${CMAKE_DL_LIBS} ${ARGN})
  target_link_options(${target} PRIVATE -Wl,--gc-sections -Wl,--exclude-libs,ALL -Wl,-z,nodelete -Wl,-soname,libstave-${name}.so)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME stave-${name} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  sv_run_path(${target} $ORIGIN $ORIGIN/..) # beside libstave in the build, below it when installed
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/stave)
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

sv_cuda_header(nvtx nvtx3/nvToolsExt.h nvtx)
if(SV_HAVE_NVTX)
  sv_inject(nvtx sv_dep_nvtx)
  foreach(program nvtx_all nvtx_limits nvtx_wild)
    sv_inject_program(tests tests/inject ${program} sv_dep_nvtx)
  endforeach()
  add_library(nvtx_object MODULE EXCLUDE_FROM_ALL tests/inject/nvtx_object.c)
  target_link_libraries(nvtx_object PRIVATE sv_flags sv_dep_nvtx)
  set_target_properties(nvtx_object PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/inject)
  add_dependencies(tests nvtx_object)
  sv_inject_program(benches bench/inject nvtx_push sv_dep_nvtx)
endif()

# OpenCL's layers: the headers alone, since a layer is handed the functions of the library below it. The programs of its tests: one that loads the
# loader by name, one linked with it (which is the bench's, too).
sv_dependency(opencl OpenCL-Headers PROGRAM)
if(SV_OPENCL_FOUND)
  sv_inject(opencl sv_dep_opencl stave_gpu_static)
  pkg_check_modules(SV_OPENCL_LOADER QUIET IMPORTED_TARGET OpenCL)
  add_executable(cl_late EXCLUDE_FROM_ALL tests/inject/opencl/cl_late.c)
  target_link_libraries(cl_late PRIVATE sv_flags sv_dep_opencl ${CMAKE_DL_LIBS})
  add_executable(cl_fake EXCLUDE_FROM_ALL tests/inject/opencl/cl_fake.c)
  target_link_libraries(cl_fake PRIVATE sv_flags sv_dep_opencl Threads::Threads ${CMAKE_DL_LIBS})
  set(programs cl_late cl_fake)
  if(SV_OPENCL_LOADER_FOUND)
    add_executable(cl_play EXCLUDE_FROM_ALL tests/inject/opencl/cl_play.c tests/inject/opencl/cl_play_more.c)
    target_link_libraries(cl_play PRIVATE sv_flags PkgConfig::SV_OPENCL_LOADER Threads::Threads)
    list(APPEND programs cl_play)
  endif()
  set_target_properties(${programs} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/inject)
  add_dependencies(tests ${programs})
  add_dependencies(benches ${programs})
endif()

sv_cuda_header(cupti cupti.h cuda)
if(SV_HAVE_CUPTI)
  sv_inject(cuda sv_dep_cupti stave_gpu_static)
  sv_inject_program(tests tests/inject cuda_program sv_dep_cupti)
  add_library(fake_cupti MODULE EXCLUDE_FROM_ALL tests/inject/fake_cupti.c)
  target_link_libraries(fake_cupti PRIVATE sv_flags sv_dep_cupti ${CMAKE_DL_LIBS})
  target_compile_options(fake_cupti PRIVATE -Wno-missing-field-initializers)
  set_target_properties(fake_cupti PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/inject)
  add_dependencies(tests fake_cupti)
endif()

# ITT: the collector's side is declared in lib/inject/itt itself, since Debian has no package of it.
sv_inject(itt)
add_executable(itt_play EXCLUDE_FROM_ALL tests/inject/itt/itt_play.c)
target_link_libraries(itt_play PRIVATE sv_flags Threads::Threads ${CMAKE_DL_LIBS})
set(programs itt_play)
find_library(SV_DNNL_LIBRARY dnnl)
find_path(SV_DNNL_INCLUDE dnnl.h)
if(SV_DNNL_LIBRARY AND SV_DNNL_INCLUDE)
  add_executable(itt_dnnl EXCLUDE_FROM_ALL tests/inject/itt/itt_dnnl.c)
  target_link_libraries(itt_dnnl PRIVATE sv_flags ${SV_DNNL_LIBRARY})
  target_include_directories(itt_dnnl SYSTEM PRIVATE ${SV_DNNL_INCLUDE})
  list(APPEND programs itt_dnnl)
endif()
set_target_properties(${programs} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/inject)
add_dependencies(tests ${programs})
