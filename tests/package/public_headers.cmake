# Each public header compiles alone, and twice, without a warning; those in C as C99.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include
     ${PROJECT_SOURCE_DIR}/include/*.hpp ${PROJECT_SOURCE_DIR}/include/*.h)
# Those for other libraries, where these were found.
set(other_libraries "")
foreach(library opencv mat_layout xtensor armadillo eigen dlpack torch)
  string(REPLACE "mat_layout" "opencv" target tensorpool_${library})
  if(TARGET ${target})
    list(APPEND other_libraries ${target})
  else()
    list(FILTER headers EXCLUDE REGEX "^tensorpool/${library}(_.*)?\\.hpp$")
  endif()
endforeach()
set(header_sources "")
foreach(header ${headers})
  set(languages cpp)
  if(header MATCHES "\\.h$")
    list(APPEND languages c)
  endif()
  foreach(language ${languages})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${header}.${language})
    # Something must follow: an empty file is none in C.
    file(CONFIGURE OUTPUT ${source} @ONLY
         CONTENT "#include <@header@>\n#include <@header@>\nextern int defined_elsewhere;\n")
    list(APPEND header_sources ${source})
  endforeach()
endforeach()

add_library(public_headers OBJECT ${header_sources})
target_link_libraries(public_headers PRIVATE tensorpool::tensorpool ${other_libraries})
target_compile_options(public_headers PRIVATE -Wall -Wextra -Wpedantic -Werror)
set_target_properties(public_headers PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
