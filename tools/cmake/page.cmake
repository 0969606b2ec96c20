# sv_page(<target> <folder>): the files of the folder become part of the target: a table sv_page_files (src/view/page.h) and their bytes, which
# the assembler takes from the files as they are.
function(sv_page target folder)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.html ${PROJECT_SOURCE_DIR}/${folder}/*.css
    ${PROJECT_SOURCE_DIR}/${folder}/*.js ${PROJECT_SOURCE_DIR}/${folder}/*.svg)
  set(type_html "text/html; charset=utf-8")
  set(type_css "text/css; charset=utf-8")
  set(type_js "text/javascript; charset=utf-8")
  set(type_svg "image/svg+xml")
  set(code "/* Made by tools/cmake/page.cmake. */\n#include \"view/page.h\"\n\n")
  set(table "")
  set(number 0)
  foreach(file ${files})
    get_filename_component(name ${file} NAME)
    get_filename_component(suffix ${file} LAST_EXT)
    string(SUBSTRING ${suffix} 1 -1 suffix)
    string(APPEND code "__asm__(\".section .rodata\\n.global sv_page_${number}\\n.hidden sv_page_${number}\\nsv_page_${number}:\\n.incbin \\\"${file}\\\"\\n"
      ".global sv_page_end_${number}\\n.hidden sv_page_end_${number}\\nsv_page_end_${number}:\\n.byte 0\\n.previous\\n\");\n"
      "extern const unsigned char sv_page_${number}[], sv_page_end_${number}[];\n")
    string(APPEND table "    {\"/${name}\", \"${type_${suffix}}\", sv_page_${number}, sv_page_end_${number}},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  string(APPEND code "\nconst struct sv_page_file sv_page_files[] = {\n${table}    {0},\n};\n")
  set(out ${PROJECT_BINARY_DIR}/generated/page_files.c)
  file(CONFIGURE OUTPUT ${out} CONTENT "${code}" @ONLY)
  set_source_files_properties(${out} PROPERTIES OBJECT_DEPENDS "${files}")
  target_sources(${target} PRIVATE ${out})
endfunction()
