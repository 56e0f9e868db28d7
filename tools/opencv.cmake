# Finds OpenCV's core and imgproc, whose Debian packages have no CMake files. Defines the target
# tensorpool_opencv, or lists the missing Debian packages in tensorpool_opencv_missing.
find_path(OPENCV_INCLUDE_DIR opencv2/core.hpp PATH_SUFFIXES opencv4)
find_path(OPENCV_IMGPROC_INCLUDE_DIR opencv2/imgproc.hpp PATH_SUFFIXES opencv4)
find_library(OPENCV_CORE_LIBRARY opencv_core)
find_library(OPENCV_IMGPROC_LIBRARY opencv_imgproc)
mark_as_advanced(OPENCV_INCLUDE_DIR OPENCV_IMGPROC_INCLUDE_DIR OPENCV_CORE_LIBRARY
                 OPENCV_IMGPROC_LIBRARY)

set(tensorpool_opencv_missing)
if(NOT OPENCV_INCLUDE_DIR OR NOT OPENCV_CORE_LIBRARY)
  list(APPEND tensorpool_opencv_missing libopencv-core-dev)
endif()
if(NOT OPENCV_IMGPROC_INCLUDE_DIR OR NOT OPENCV_IMGPROC_LIBRARY)
  list(APPEND tensorpool_opencv_missing libopencv-imgproc-dev)
endif()
if(NOT tensorpool_opencv_missing AND NOT TARGET tensorpool_opencv)
  add_library(tensorpool_opencv INTERFACE)
  target_include_directories(tensorpool_opencv SYSTEM INTERFACE
    ${OPENCV_INCLUDE_DIR} ${OPENCV_IMGPROC_INCLUDE_DIR})
  target_link_libraries(tensorpool_opencv INTERFACE
    ${OPENCV_IMGPROC_LIBRARY} ${OPENCV_CORE_LIBRARY})
endif()
