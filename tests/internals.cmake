# Tests of the layers, from inside.
set(layers base tensors platform statistics read snapshot events limits pages watch blocks kinds arena context trace misuse)
if(TENSORPOOL_TEST_ONLY_THREADS)
  list(REMOVE_ITEM layers base tensors)
endif()
# What of platform only one product has.
set(left_out_platform "")
if(NOT TENSORPOOL_BUILD_DEVICE)
  list(APPEND left_out_platform "process/dynamic_library_")
endif()
if(NOT TENSORPOOL_BUILD_MODELS)
  list(APPEND left_out_platform "files/file_pages_" "files/page_locks_")
endif()
if(NOT TENSORPOOL_BUILD_STASH)
  list(APPEND left_out_platform "files/spill_file_" "memory/page_faults_")
endif()
foreach(layer IN LISTS layers)
  tensorpool_add_tests(${layer} ${left_out_${layer}})
endforeach()
# Samples of what a folder beside the library can add.
tensorpool_add_tests(lab command/)
target_sources(lab_tests PRIVATE lab/turnover_watcher.cpp lab/wiped_kind.cpp)
if(TENSORPOOL_BUILD_DEVICE)
  include(device.cmake)
endif()
if(TENSORPOOL_BUILD_MODELS AND NOT TENSORPOOL_TEST_ONLY_THREADS)
  # Of lib/models: tests/models holds models of protocols.
  tensorpool_add_tests(model_files)
  # What model_fuzz found, for model_corpus_test.cpp; and whether this build reads safetensors.
  tensorpool_test_paths(model_files_tests
    TENSORPOOL_MODEL_CORPUS="${CMAKE_CURRENT_SOURCE_DIR}/fuzz/model_corpus"
    TENSORPOOL_TESTS_JSON=$<BOOL:${TENSORPOOL_READS_SAFETENSORS}>)
endif()
if(TENSORPOOL_BUILD_PLANNING)
  # The planner has no threads.
  if(TENSORPOOL_TEST_ONLY_THREADS)
    tensorpool_add_tests(plan planner)
  else()
    tensorpool_add_tests(plan)
  endif()
  # Feeds arbitrary bytes to the reader of plan files, here and in fuzz/plan_fuzz.cpp.
  add_library(plan_feed STATIC plan/fed_plan.cpp)
  target_include_directories(plan_feed PUBLIC ${CMAKE_CURRENT_SOURCE_DIR} PRIVATE ${PROJECT_SOURCE_DIR}/lib)
  target_link_libraries(plan_feed PUBLIC tensorpool_internal tensorpool_settings)
  target_link_libraries(plan_tests PRIVATE plan_feed)
  # What plan_fuzz found; and public hard instances, for minimalloc_test.cpp.
  tensorpool_test_paths(plan_tests
    TENSORPOOL_PLAN_CORPUS="${CMAKE_CURRENT_SOURCE_DIR}/fuzz/plan_corpus"
    TENSORPOOL_MINIMALLOC="${CMAKE_CURRENT_SOURCE_DIR}/plan/planner/minimalloc")
endif()
if(TENSORPOOL_BUILD_STASH)
  tensorpool_add_tests(rest)
  # Gives arbitrary bytes to the codec of pieces, here and in fuzz/piece_fuzz.cpp.
  add_library(piece_feed STATIC rest/pieces/fed_piece.cpp)
  target_include_directories(piece_feed PUBLIC ${CMAKE_CURRENT_SOURCE_DIR} PRIVATE ${PROJECT_SOURCE_DIR}/lib)
  target_link_libraries(piece_feed PUBLIC tensorpool_internal tensorpool_settings)
  target_link_libraries(rest_tests PRIVATE piece_feed)
  tensorpool_test_paths(rest_tests
    TENSORPOOL_PIECE_CORPUS="${CMAKE_CURRENT_SOURCE_DIR}/fuzz/piece_corpus")
endif()

# What segment_fuzz found, for segment_corpus_linux_test.cpp.
tensorpool_test_paths(snapshot_tests
  TENSORPOOL_SEGMENT_CORPUS="${CMAKE_CURRENT_SOURCE_DIR}/fuzz/segment_corpus")

# So that arena/refused_maps.hpp can refuse memory.
target_link_options(arena_tests PRIVATE -Wl,--wrap=mmap)
# So that model_files/old_kernel_linux_test.cpp can be on one.
if(TARGET model_files_tests)
  target_link_options(model_files_tests PRIVATE -Wl,--wrap=madvise)
endif()
# So that platform/files/trace_output_linux_test.cpp can have more rights.
target_link_options(platform_tests PRIVATE -Wl,--wrap=getauxval)
# So that trace/held_writes.hpp can hold a thread up, and trace/moved_clock.hpp move the clock.
target_link_options(trace_tests PRIVATE -Wl,--wrap=writev,--wrap=clock_gettime)
