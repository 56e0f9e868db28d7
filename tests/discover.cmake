# tensorpool_test_paths(PROGRAM MACRO="PATH"...): macros for those sources of the program that name one of its macros,
# or include a header that does. Objects of all other sources do not depend on the folder of the checkout, so compiler
# caches find those of another one.
function(tensorpool_test_paths program)
  set_property(TARGET ${program} APPEND PROPERTY TENSORPOOL_PATHS ${ARGN})
endfunction()

# Called at the end of this folder, when all sources and paths of the program are known.
function(tensorpool_finish_tests program)
  get_target_property(paths ${program} TENSORPOOL_PATHS)
  if(paths)
    list(TRANSFORM paths REPLACE "=.*" "" OUTPUT_VARIABLE macros)
    list(JOIN macros "|" macros)
    get_target_property(sources ${program} SOURCES)
    get_target_property(folder ${program} SOURCE_DIR)
    list(FILTER sources INCLUDE REGEX "\\.cpp$")
    foreach(source IN LISTS sources)
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE)
      cmake_path(GET source PARENT_PATH own_folder)
      file(READ ${source} text)
      string(REGEX MATCHALL "#include \"[^\"\n]+" headers "${text}")
      list(TRANSFORM headers REPLACE "#include \"" "")
      foreach(header IN LISTS headers)
        foreach(path ${own_folder}/${header} ${PROJECT_SOURCE_DIR}/tests/${header})
          if(EXISTS ${path})
            file(READ ${path} of_header)
            string(APPEND text "${of_header}")
          endif()
        endforeach()
      endforeach()
      if(text MATCHES "(^|[^A-Z_])(${macros})([^A-Z_]|$)")
        set_source_files_properties(${source} TARGET_DIRECTORY ${program} PROPERTIES COMPILE_DEFINITIONS "${paths}")
      endif()
    endforeach()
  endif()
  tensorpool_unity(${program} ALONE ${TENSORPOOL_TESTS_ALONE})
endfunction()

# tensorpool_discover_tests(PROGRAM PREFIX [PROPERTY VALUE...] [CASES SUITE...] [PREFIXES FOLDER=PREFIX...]): each
# suite of a program becomes a test PREFIX.SUITE, which is one process. Suites under CASES, or in
# TENSORPOOL_CASES_<PREFIX>, become a test for each case, PREFIX.SUITE.CASE, because their cases need a process each;
# the place that names them says why. With PREFIXES, the folder of a suite's source decides its prefix. Parameters and
# types of a suite are part of it. A test is skipped if all of its cases are. Long ones have a COST, so that they begin
# first.
#
# What TENSORPOOL_WITHOUT_<PREFIX> names, a list of GoogleTest's patterns, is left out.
#
# Suites in TENSORPOOL_MEMORY, TENSORPOOL_PROCESSORS or TENSORPOOL_DISK, as PREFIX.SUITE, take much of that resource of
# the machine. They get its RESOURCE_LOCK, as other tests do: of those that have it, ctest runs one at a time.
set(TENSORPOOL_LIST_SUITES ${CMAKE_CURRENT_LIST_DIR}/list_suites.cmake)
function(tensorpool_discover_tests program prefix)
  cmake_parse_arguments(PARSE_ARGV 2 discover "" "" "CASES;PREFIXES")
  target_precompile_headers(${program} REUSE_FROM test_headers)
  cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY [[${PROJECT_SOURCE_DIR}/tests]]
                                           CALL tensorpool_finish_tests ${program})")
  list(APPEND discover_CASES ${TENSORPOOL_CASES_${prefix}})
  list(JOIN TENSORPOOL_WITHOUT_${prefix} ":" without)
  set(properties TIMEOUT 300 ${discover_UNPARSED_ARGUMENTS})
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${program}_suites.cmake)
  set(folder ${CMAKE_CURRENT_BINARY_DIR})
  if(discover_PREFIXES)
    # Of its own: Python would take the folder of a part for a package of that name.
    string(APPEND folder /${program}_work)
    file(MAKE_DIRECTORY ${folder})
  endif()
  add_custom_command(TARGET ${program} POST_BUILD BYPRODUCTS ${list}
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${program}> -DPREFIX=${prefix} -DLIST=${list}
            "-DPREFIXES=${discover_PREFIXES}" "-DCASES=${discover_CASES}" "-DWITHOUT=${without}" "-DPROPERTIES=${properties}"
            "-DMEMORY=${TENSORPOOL_MEMORY}" "-DPROCESSORS=${TENSORPOOL_PROCESSORS}" "-DDISK=${TENSORPOOL_DISK}"
            -DFOLDER=${folder} -P ${TENSORPOOL_LIST_SUITES}
    VERBATIM)
  set(include_list ${CMAKE_CURRENT_BINARY_DIR}/${program}_include.cmake)
  file(WRITE ${include_list} "if(EXISTS \"${list}\")\n  include(\"${list}\")\nelse()\n"
                             "  add_test(${prefix}.${program}_is_not_built ${program}_is_not_built)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include_list})
endfunction()
