# The kernel programs: src/record/bpf/NAME.bpf.c → NAME_KIND.bpf.o (clang) → NAME_KIND.skel.h (bpftool), which src/record includes; once for each
# kind of hooks (src/record/bpf/hooks.h).
# Needs no root and no BTF of the building machine. Without clang, bpftool or libbpf the program says that it was built without eBPF.
#
#   sv_ebpf(<target> <name>…)

option(SV_WITH_EBPF "build the kernel programs where clang, bpftool and libbpf are there" ${SV_OPTIONAL})
find_program(SV_BPF_CLANG clang)
find_program(SV_BPFTOOL bpftool PATHS /usr/sbin /sbin /usr/local/sbin)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(SV_BPF_ARCH x86)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(SV_BPF_ARCH arm64)
endif()

# The kernel's side of each probe: a line of the list makes an #include.
function(sv_kernel_probes list out)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
  file(STRINGS ${list} lines REGEX "^SV_PROBE\\([a-z_]+,")
  set(text "/* Made from src/record/probes/list.h. */\n")
  foreach(line ${lines})
    string(REGEX REPLACE "^SV_PROBE\\(([a-z_]+),.*" "\\1" name "${line}")
    string(APPEND text "#include \"record/bpf/${name}.h\"\n")
  endforeach()
  file(CONFIGURE OUTPUT ${out} CONTENT "${text}" @ONLY)
endfunction()

function(sv_ebpf target)
  if(NOT (SV_WITH_EBPF AND SV_BPF_CLANG AND SV_BPFTOOL AND SV_BPF_ARCH AND SV_BPF_FOUND))
    message(NOTICE "ebpf: absent, compiled out")
    return()
  endif()
  set(folder ${CMAKE_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${folder})
  set(include)
  if(CMAKE_LIBRARY_ARCHITECTURE)
    set(include -I/usr/include/${CMAKE_LIBRARY_ARCHITECTURE})
  endif()
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/record/bpf/*.h)
  sv_kernel_probes(${PROJECT_SOURCE_DIR}/src/record/probes/list.h ${folder}/kernel_probes.h)
  list(APPEND headers ${PROJECT_SOURCE_DIR}/src/record/probes/list.h ${folder}/kernel_probes.h)
  foreach(name ${ARGN})
    set(source ${PROJECT_SOURCE_DIR}/src/record/bpf/${name}.bpf.c)
    foreach(kind btf raw plain)
      string(TOUPPER ${kind} define)
      set(object ${name}_${kind})
      add_custom_command(OUTPUT ${folder}/${object}.skel.h
        COMMAND ${SV_BPF_CLANG} -O2 -g -Wall -target bpf -D__TARGET_ARCH_${SV_BPF_ARCH} -DSV_HOOKS_${define} ${include}
          -I${PROJECT_SOURCE_DIR}/src -I${folder}
          -fdebug-prefix-map=${PROJECT_SOURCE_DIR}/= -c ${source} -o ${folder}/${object}.bpf.o
        COMMAND ${SV_BPFTOOL} gen skeleton ${folder}/${object}.bpf.o name ${object}_bpf > ${folder}/${object}.skel.h
        COMMAND sed -i -e "1i /* NOLINTBEGIN: generated */" -e "$a /* NOLINTEND */" ${folder}/${object}.skel.h
        DEPENDS ${source} ${headers} VERBATIM)
      target_sources(${target} PRIVATE ${folder}/${object}.skel.h)
    endforeach()
  endforeach()
  target_include_directories(${target} SYSTEM PRIVATE ${folder})
  target_compile_definitions(${target} PRIVATE SV_HAVE_EBPF=1)
endfunction()
