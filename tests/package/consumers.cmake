# tensorpool as other projects use it: this build, installed, and found by CMake or pkg-config; and
# the core by add_subdirectory. Each is configured, built and run from scratch. Packages that only
# tests, benchmarks and tools need are hidden.
find_program(PKG_CONFIG pkg-config)

set(same_tools
  -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER} -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
  -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE})
foreach(package GTest benchmark OpenCV PkgConfig nlohmann_json fmt CLI11)
  list(APPEND same_tools -DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
endforeach()
set(consumer ${CMAKE_CURRENT_LIST_DIR}/consumer)
set(prefix ${CMAKE_CURRENT_BINARY_DIR}/prefix)
set(core_prefix ${CMAKE_CURRENT_BINARY_DIR}/core_prefix)

function(add_package_test name)
  add_test(NAME package.${name} COMMAND ${ARGN})
  set_tests_properties(package.${name} PROPERTIES TIMEOUT 600)
endfunction()

# Configures and builds the consumer, and runs its own tests.
function(add_consumer_test name)
  add_package_test(${name} ${CMAKE_CTEST_COMMAND}
    --build-and-test ${consumer} ${CMAKE_CURRENT_BINARY_DIR}/${name}
    --build-generator ${CMAKE_GENERATOR} --build-noclean --build-options ${same_tools} ${ARGN}
    --test-command ${CMAKE_CTEST_COMMAND} --output-on-failure --no-tests=error)
endfunction()

# Orders tests after the one that installs something.
function(tensorpool_need_install fixture)
  list(TRANSFORM ARGN PREPEND package.)
  set_tests_properties(${ARGN} PROPERTIES FIXTURES_REQUIRED ${fixture})
endfunction()

add_package_test(install ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${prefix})
set_tests_properties(package.install PROPERTIES FIXTURES_SETUP install)
set(find_installed -DCMAKE_PREFIX_PATH=${prefix} -DTENSORPOOL_VERSION=${PROJECT_VERSION})

add_consumer_test(find_package ${find_installed})
list(JOIN TENSORPOOL_INSTALLED_COMPONENTS "$<SEMICOLON>" components)
add_consumer_test(find_components ${find_installed} "-DTENSORPOOL_COMPONENTS=${components}")
set(users find_package find_components)

if(PKG_CONFIG)
  if(BUILD_SHARED_LIBS)
    set(kind shared)
  else()
    set(kind static)
  endif()
  add_package_test(pkg_config ${CMAKE_COMMAND}
    -DKIND=${kind} -DPREFIX=${prefix} -DLIBRARIES=${CMAKE_INSTALL_LIBDIR} -DPKG_CONFIG=${PKG_CONFIG}
    -DC_COMPILER=${CMAKE_C_COMPILER} -DCXX_COMPILER=${CMAKE_CXX_COMPILER}
    -DC_SOURCE=${PROJECT_SOURCE_DIR}/tests/adaptors/c_program.c -DCXX_SOURCE=${consumer}/core.cpp
    -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/pkg_config
    -P ${CMAKE_CURRENT_LIST_DIR}/build_with_pkg_config.cmake)
  list(APPEND users pkg_config)
endif()
if(BUILD_SHARED_LIBS )
  add_package_test(symbols ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DLIBRARY=$<TARGET_FILE:tensorpool>
    -P ${CMAKE_CURRENT_LIST_DIR}/check_symbols.cmake)
  if(TENSORPOOL_HAS_PROBES)
    add_package_test(probes ${CMAKE_COMMAND} -DREADELF=${CMAKE_READELF}
      -DLIBRARY=$<TARGET_FILE:tensorpool> -P ${CMAKE_CURRENT_LIST_DIR}/check_probes.cmake)
  endif()
endif()
tensorpool_need_install(install ${users})

foreach(part RANGE 1 2)
  add_package_test(combinations_of_components_are_configured.${part}_of_2 ${CMAKE_COMMAND}
    -DSOURCES=${PROJECT_SOURCE_DIR} -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/combinations.${part}
    -DGENERATOR=${CMAKE_GENERATOR} -DSHARED=${BUILD_SHARED_LIBS} -DPART=${part}
    -DC_COMPILER=${CMAKE_C_COMPILER} -DCXX_COMPILER=${CMAKE_CXX_COMPILER}
    -P ${CMAKE_CURRENT_LIST_DIR}/configure_combinations.cmake)
endforeach()

# The core alone, from its sources: built once, in the static build, and installed.
if(BUILD_SHARED_LIBS)
  return()
endif()
set(without_the_rest)
foreach(component DEVICE MODELS PLANNING STASH INTERPOSE PYTHON TORCH)
  list(APPEND without_the_rest -DTENSORPOOL_BUILD_${component}=OFF)
endforeach()
set(core_options ${without_the_rest} -DTENSORPOOL_INSTALL=ON
  -DCMAKE_CXX_FLAGS_RELEASE=-O0  # optimized code is tested elsewhere
  -DTENSORPOOL_SOURCE_FOLDER=${PROJECT_SOURCE_DIR})
add_consumer_test(add_subdirectory ${core_options})
# Compiled with the tests, so that the test above finds it compiled.
set(core_build ${CMAKE_CURRENT_BINARY_DIR}/add_subdirectory)
set(make_core ${CMAKE_COMMAND} --build ${core_build})
if(CMAKE_GENERATOR MATCHES "Makefiles")
  set(make_core $(MAKE) -C ${core_build})  # with the jobs of this build
endif()
add_custom_target(core_by_add_subdirectory ALL
  COMMAND ${CMAKE_COMMAND} -S ${consumer} -B ${core_build} -G ${CMAKE_GENERATOR} ${same_tools} ${core_options}
  COMMAND ${make_core}
  VERBATIM)
set_tests_properties(package.add_subdirectory PROPERTIES FIXTURES_SETUP core_build)

# Other generators do not keep lists of dependencies.
if(CMAKE_GENERATOR MATCHES "Makefiles" AND CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  add_package_test(core_needs_only_boost ${CMAKE_COMMAND}
    -DBUILD=${core_build} -DSOURCES=${PROJECT_SOURCE_DIR}
    -P ${CMAKE_CURRENT_LIST_DIR}/check_core_headers.cmake)
  tensorpool_need_install(core_build core_needs_only_boost)
endif()
add_package_test(core_install ${CMAKE_COMMAND}
  --install ${core_build} --prefix ${core_prefix})
set_tests_properties(package.core_install PROPERTIES FIXTURES_SETUP core_install)
tensorpool_need_install(core_build core_install)

set(find_core -DCMAKE_PREFIX_PATH=${core_prefix} -DTENSORPOOL_VERSION=${PROJECT_VERSION})
add_consumer_test(core_find_package ${find_core} -DTENSORPOOL_COMPONENTS=core)
add_package_test(missing_component_is_named ${CMAKE_COMMAND} -S ${consumer}
  -B ${CMAKE_CURRENT_BINARY_DIR}/missing_component -G ${CMAKE_GENERATOR} ${same_tools} ${find_core}
  "-DTENSORPOOL_COMPONENTS=core$<SEMICOLON>models")
set_property(TEST package.missing_component_is_named PROPERTY PASS_REGULAR_EXPRESSION
  "component models is not installed; installed are: core[\r\n]")
tensorpool_need_install(core_install core_find_package missing_component_is_named)
