# Tests of devices: what holds for all backends is compiled once, and each backend says what it has of it.
add_library(backend_contracts OBJECT
  contracts/allocators_contract.cpp
  contracts/backend_capture_contract.cpp contracts/backend_contract.cpp
  contracts/backend_copies_contract.cpp contracts/backend_devices_contract.cpp
  contracts/backend_events_contract.cpp contracts/backend_memory_contract.cpp
  contracts/backend_exportable_memory_contract.cpp contracts/backend_pinned_contract.cpp
  contracts/backend_streams_contract.cpp
  contracts/backend_virtual_memory_contract.cpp)
tensorpool_test_settings(backend_contracts)
target_precompile_headers(backend_contracts REUSE_FROM test_headers)
tensorpool_unity(backend_contracts)

# Allocators, runtimes and their handles are tried on the simulated device.
if(TENSORPOOL_BUILD_SIMULATION)
  tensorpool_add_tests(device)
  tensorpool_add_tests(simulation)
  target_link_libraries(simulation_tests PRIVATE backend_contracts)
else()
  tensorpool_add_tests(device caching pinned runtime bindings)
endif()
target_link_libraries(device_tests PRIVATE backend_contracts)

# A CUDA driver without a device, and the headers of a toolkit where one is installed, which ours are
# held against.
add_subdirectory(lab/fake_cuda)
if(TARGET fake_cuda)
  add_executable(open_shared_block support/open_shared_block.cpp)
  target_link_libraries(open_shared_block PRIVATE tensorpool_internal tensorpool_settings)
  add_dependencies(device_tests fake_cuda fake_cuda_old fake_cuda_broken open_shared_block)
  tensorpool_test_paths(device_tests
    TENSORPOOL_OPEN_SHARED_BLOCK="$<TARGET_FILE:open_shared_block>"
    TENSORPOOL_FAKE_CUDA="$<TARGET_FILE:fake_cuda>"
    TENSORPOOL_FAKE_CUDA_OLD="$<TARGET_FILE:fake_cuda_old>"
    TENSORPOOL_FAKE_CUDA_BROKEN="$<TARGET_FILE:fake_cuda_broken>")
endif()
file(GLOB cuda_toolkits /usr/local/cuda*/include)
find_path(TENSORPOOL_CUDA_HEADERS cudaTypedefs.h PATHS ${cuda_toolkits} ENV CUDA_PATH
          PATH_SUFFIXES include)
if(TENSORPOOL_CUDA_HEADERS)
  target_include_directories(device_tests SYSTEM PRIVATE ${TENSORPOOL_CUDA_HEADERS})
  tensorpool_test_paths(device_tests
    TENSORPOOL_CUDA_STUB="${TENSORPOOL_CUDA_HEADERS}/../lib/stubs/libcuda.so")
endif()
