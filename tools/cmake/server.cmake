# stave-server and stave-load: the target `server`. stave-server needs StarPU, libmicrohttpd, a BLAS and OpenCL; where one of them is absent it is left out, and
# this says so. The load generator needs none of them.
sv_dependency(starpu starpu-1.3 PROGRAM QUIET)
sv_dependency(blas openblas PROGRAM QUIET)
sv_dependency(ocl_loader OpenCL PROGRAM QUIET)

file(GLOB program CONFIGURE_DEPENDS server/program/*.c)
file(GLOB load CONFIGURE_DEPENDS server/load/*.c)
add_executable(stave_load ${load} ${program})
target_link_libraries(stave_load PRIVATE sv_server sv_cmd)
set_target_properties(stave_load PROPERTIES OUTPUT_NAME stave-load)
set(server_programs stave_load)

if(TARGET PkgConfig::SV_STARPU AND TARGET PkgConfig::SV_MICROHTTPD AND TARGET PkgConfig::SV_BLAS AND TARGET PkgConfig::SV_OCL_LOADER)
  file(GLOB run CONFIGURE_DEPENDS server/run/*.c)
  add_executable(stave_server ${run} ${program})
  target_link_libraries(stave_server PRIVATE sv_server sv_serving sv_cmd
    sv_dep_starpu sv_dep_microhttpd sv_dep_blas sv_dep_ocl_loader Threads::Threads m)
  target_compile_definitions(stave_server PRIVATE CL_TARGET_OPENCL_VERSION=120)
  set_target_properties(stave_server PROPERTIES OUTPUT_NAME stave-server)
  sv_run_path(stave_server)
  list(APPEND server_programs stave_server)
  add_custom_target(server DEPENDS ${server_programs})
else()
  set(why "stave-server: left out: it needs StarPU, libmicrohttpd, OpenBLAS and OpenCL (make server installs them)")
  message(NOTICE "${why}")
  add_custom_target(server COMMAND ${CMAKE_COMMAND} -E echo "${why}" COMMAND false VERBATIM)
endif()
# The server is a component of its own: the Debian package leaves it out, or every user of stave would install StarPU.
install(TARGETS stave_load)
if(TARGET stave_server)
  install(TARGETS stave_server COMPONENT server)
endif()
