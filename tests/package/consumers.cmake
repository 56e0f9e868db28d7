# tensorpool as other projects get it: installed and found by CMake or pkg-config, or taken in by
# add_subdirectory; static and shared. Each is configured, built and run from nothing, with all that
# only tests, measurements and tools need out of sight.
find_program(PKG_CONFIG pkg-config)

set(same_tools
  --build-generator ${CMAKE_GENERATOR} --build-noclean --build-options
  -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER} -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
  -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
  -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON -DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON
  -DCMAKE_DISABLE_FIND_PACKAGE_OpenCV=ON -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON)
set(consumer ${CMAKE_CURRENT_LIST_DIR}/consumer)
set(c_program ${PROJECT_SOURCE_DIR}/tests/adaptors/c_program.c)

function(add_package_test name)
  add_test(NAME package.${name} COMMAND ${ARGN})
  set_tests_properties(package.${name} PROPERTIES
    PROCESSORS 2 TIMEOUT 600 ENVIRONMENT CMAKE_BUILD_PARALLEL_LEVEL=2)
endfunction()

# Configures and builds the consumer, and runs its own tests.
function(add_consumer_test name)
  add_package_test(${name} ${CMAKE_CTEST_COMMAND}
    --build-and-test ${consumer} ${CMAKE_CURRENT_BINARY_DIR}/${name} ${same_tools} ${ARGN}
    --test-command ${CMAKE_CTEST_COMMAND} --output-on-failure --no-tests=error)
endfunction()

foreach(kind static shared)
  if(kind STREQUAL "shared")
    set(shared ON)
  else()
    set(shared OFF)
  endif()
  set(prefix ${CMAKE_CURRENT_BINARY_DIR}/${kind}.prefix)

  add_package_test(${kind}.install ${CMAKE_CTEST_COMMAND}
    --build-and-test ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/${kind}.install
    --build-target install ${same_tools} -DBUILD_SHARED_LIBS=${shared}
    -DCMAKE_INSTALL_PREFIX=${prefix} -DCMAKE_INSTALL_LIBDIR=lib -DTENSORPOOL_BUILD_TESTS=OFF
    -DTENSORPOOL_BUILD_PERF=OFF -DTENSORPOOL_BUILD_TOOLS=OFF)
  set_tests_properties(package.${kind}.install PROPERTIES FIXTURES_SETUP ${kind}_install)

  add_consumer_test(${kind}.find_package
    -DCMAKE_PREFIX_PATH=${prefix} -DTENSORPOOL_VERSION=${PROJECT_VERSION})
  set(users package.${kind}.find_package)

  if(PKG_CONFIG)
    add_package_test(${kind}.pkg_config ${CMAKE_COMMAND}
      -DKIND=${kind} -DPREFIX=${prefix} -DPKG_CONFIG=${PKG_CONFIG}
      -DC_COMPILER=${CMAKE_C_COMPILER} -DCXX_COMPILER=${CMAKE_CXX_COMPILER}
      -DC_SOURCE=${c_program} -DCXX_SOURCE=${consumer}/consumer.cpp
      -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/${kind}.pkg_config
      -P ${CMAKE_CURRENT_LIST_DIR}/build_with_pkg_config.cmake)
    list(APPEND users package.${kind}.pkg_config)
  endif()

  if(shared AND NOT APPLE AND NOT WIN32)
    add_package_test(shared.symbols ${CMAKE_COMMAND} -DNM=${CMAKE_NM}
      -DLIBRARY=${prefix}/lib/libtensorpool.so -P ${CMAKE_CURRENT_LIST_DIR}/check_symbols.cmake)
    list(APPEND users package.shared.symbols)
  endif()
  set_tests_properties(${users} PROPERTIES FIXTURES_REQUIRED ${kind}_install)

  add_consumer_test(${kind}.add_subdirectory
    -DBUILD_SHARED_LIBS=${shared} -DTENSORPOOL_SOURCE_FOLDER=${PROJECT_SOURCE_DIR})
endforeach()
