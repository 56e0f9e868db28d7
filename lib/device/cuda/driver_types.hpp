#pragma once

/// The part of the CUDA driver's interface that is used. It is declared here so that building needs
/// no toolkit. Names, values and layouts follow NVIDIA's reference, "CUDA Driver API". If a toolkit
/// is installed, tests/device/cuda/driver_api_test.cpp compares them with its headers.

#include <cstddef>
#include <cstdint>

// The driver's own names, so that a program can pass the handles to other libraries.
struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphNode_st;
struct CUgraphExec_st;
struct CUmemPoolHandle_st;

namespace tensorpool::device::cuda {

using DeviceNumber = int;                  // CUdevice
using DeviceAddress = unsigned long long;  // CUdeviceptr
using MemoryNumber = unsigned long long;   // CUmemGenericAllocationHandle
using Context = CUctx_st*;
using Stream = CUstream_st*;
using Event = CUevent_st*;
using Graph = CUgraph_st*;
using GraphNode = CUgraphNode_st*;
using GraphExec = CUgraphExec_st*;
using MemoryPool = CUmemPoolHandle_st*;
using HostFunction = void (*)(void* argument);

enum class Result : unsigned {
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    not_initialized = 3,
    deinitialized = 4,
    stub_library = 34,
    device_unavailable = 46,
    no_device = 100,
    invalid_device = 101,
    invalid_context = 201,
    ecc_uncorrectable = 214,
    peer_access_unsupported = 217,
    nvlink_uncorrectable = 220,
    contained = 226,
    invalid_handle = 400,
    illegal_state = 401,
    not_found = 500,
    not_ready = 600,
    illegal_address = 700,
    launch_timeout = 702,
    peer_access_already_enabled = 704,
    context_is_destroyed = 709,
    assert = 710,
    too_many_peers = 711,
    host_memory_already_registered = 712,
    host_memory_not_registered = 713,
    hardware_stack_error = 714,
    illegal_instruction = 715,
    misaligned_address = 716,
    invalid_address_space = 717,
    invalid_pc = 718,
    launch_failed = 719,
    tensor_memory_leak = 721,
    not_supported = 801,
    mps_client_terminated = 810,
    stream_capture_unsupported = 900,
    stream_capture_invalidated = 901,
    stream_capture_merge = 902,
    stream_capture_unmatched = 903,
    stream_capture_unjoined = 904,
    stream_capture_isolation = 905,
    stream_capture_implicit = 906,
    captured_event = 907,
    stream_capture_wrong_thread = 908,
    external_device = 911,
    unknown = 999,
};

enum class DeviceAttribute : unsigned {
    can_map_host_memory = 19,
    unified_addressing = 41,
    managed_memory = 83,
    concurrent_managed_access = 89,
    virtual_memory_management = 102,
    file_descriptor_handles = 103,
    rdma_with_virtual_memory = 110,
    memory_pools = 115,
};

inline constexpr DeviceNumber host_number = -1;  // CU_DEVICE_CPU

enum class Advice : unsigned {
    set_read_mostly = 1,
    unset_read_mostly = 2,
    set_preferred_location = 3,
    unset_preferred_location = 4,
    set_accessed_by = 5,
    unset_accessed_by = 6,
};

enum class MemoryPoolAttribute : unsigned { release_threshold = 4, reserved_bytes = 5 };

enum class PointerAttribute : unsigned { host_pointer = 4 };

enum class CaptureMode : unsigned { global = 0, of_thread = 1, relaxed = 2 };
enum class CaptureStatus : unsigned { none = 0, active = 1, invalidated = 2 };

enum class AddressQuery : unsigned {
    success = 0,
    symbol_not_found = 1,
    version_not_sufficient = 2
};
inline constexpr std::uint64_t legacy_stream = 1;  // CU_GET_PROC_ADDRESS_LEGACY_STREAM

inline constexpr std::uintptr_t legacy_stream_handle = 1;      // CU_STREAM_LEGACY
inline constexpr std::uintptr_t per_thread_stream_handle = 2;  // CU_STREAM_PER_THREAD

inline constexpr unsigned stream_non_blocking = 1;     // CU_STREAM_NON_BLOCKING
inline constexpr unsigned event_default = 0;           // CU_EVENT_DEFAULT
inline constexpr unsigned event_blocking_sync = 1;     // CU_EVENT_BLOCKING_SYNC
inline constexpr unsigned event_disable_timing = 2;    // CU_EVENT_DISABLE_TIMING
inline constexpr unsigned event_interprocess = 4;      // CU_EVENT_INTERPROCESS
inline constexpr unsigned attach_global = 1;           // CU_MEM_ATTACH_GLOBAL
inline constexpr unsigned host_alloc_portable = 1;     // CU_MEMHOSTALLOC_PORTABLE
inline constexpr unsigned host_alloc_device_map = 2;   // CU_MEMHOSTALLOC_DEVICEMAP
inline constexpr unsigned host_register_portable = 1;  // CU_MEMHOSTREGISTER_PORTABLE

enum class LocationType : unsigned { device = 1 };
struct Location {
    LocationType type = LocationType::device;
    int id = 0;
};
static_assert(sizeof(Location) == 8);

enum class AllocationType : unsigned { pinned = 1 };
enum class HandleType : unsigned { none = 0, file_descriptor = 1 };
struct AllocationProperties {
    AllocationType type = AllocationType::pinned;
    HandleType requested_handle_types = HandleType::none;
    Location location;
    void* win32_meta_data = nullptr;
    unsigned char compression_type = 0;
    unsigned char gpu_direct_rdma_capable = 0;
    unsigned short usage = 0;
    unsigned char reserved[4] = {};
};
static_assert(sizeof(void*) != 8 || sizeof(AllocationProperties) == 32);

enum class Access : unsigned { read_write = 3 };
struct AccessDescription {
    Location location;
    Access flags = Access::read_write;
};
static_assert(sizeof(AccessDescription) == 12);

enum class Granularity : unsigned { minimum = 0 };

}  // namespace tensorpool::device::cuda
