# Configures half of the useful combinations of components, as PART (1 or 2) says, one after another in
# FOLDER, with tests, benchmarks, tools and examples. Each part that needs a missing component must say
# so or be left out.
cmake_minimum_required(VERSION 3.25)
set(all DEVICE SIMULATION MODELS PLANNING STASH)
set(needs_both "The command tensorpool is not built: it needs the components models and planning")

function(configure chosen)
  set(options)
  foreach(component IN LISTS all)
    set(is_on OFF)
    if(component IN_LIST chosen)
      set(is_on ON)
    endif()
    list(APPEND options -DTENSORPOOL_BUILD_${component}=${is_on})
  endforeach()
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${SOURCES} -B ${FOLDER} -G ${GENERATOR} ${options}
            -DBUILD_SHARED_LIBS=${SHARED} -DCMAKE_CXX_COMPILER=${CXX_COMPILER}
            -DCMAKE_C_COMPILER=${C_COMPILER} -DTENSORPOOL_BUILD_COMMAND=ON
    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  list(JOIN chosen ", " chosen_text)
  if(failed OR output MATCHES "CMake (Warning|Error)")
    message(FATAL_ERROR "the core with \"${chosen_text}\" cannot be configured:\n${output}")
  endif()
  set(has_both FALSE)
  if("MODELS" IN_LIST chosen AND "PLANNING" IN_LIST chosen)
    set(has_both TRUE)
  endif()
  string(FIND "${output}" "${needs_both}" said)
  if((has_both AND NOT said EQUAL -1) OR (NOT has_both AND said EQUAL -1))
    message(FATAL_ERROR "the core with \"${chosen_text}\" must say once which components the command lacks:\n${output}")
  endif()
  message("the core with \"${chosen_text}\" is configured")
endfunction()

if(PART EQUAL 1)
  configure("")
  configure("DEVICE")
  configure("DEVICE;SIMULATION")
  configure("STASH")
  configure("MODELS")
else()
  configure("PLANNING")
  configure("MODELS;PLANNING")
  configure("DEVICE;MODELS")
  configure("DEVICE;SIMULATION;PLANNING")
  configure("${all}")
endif()
