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
  tensorpool_unity(${program} ALONE ${TENSORPOOL_TESTS_ALONE})
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
