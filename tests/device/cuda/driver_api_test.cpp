#include "device/cuda/driver_api.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>
#include <type_traits>

#if __has_include(<cudaTypedefs.h>)
#include <cudaTypedefs.h>
#define TENSORPOOL_HAS_TOOLKIT
#endif

namespace tensorpool::device::cuda {
namespace {

TEST(DriverApi, NamesEachFunctionOnce) {
    const DriverApi api;
    std::set<std::string> names;
    for (const DriverSymbol* symbol = api.symbols; symbol != nullptr; symbol = symbol->next) {
        EXPECT_TRUE(names.insert(symbol->name).second) << symbol->name;
        EXPECT_EQ(std::string(symbol->exported).find(symbol->name), 0u) << symbol->exported;
        EXPECT_FALSE(*symbol);
    }
    EXPECT_EQ(names.size(), 70u);
}

TEST(DriverApi, ReportsTheSystemsTextForAMissingLibrary) {
    DriverApi api;
    EXPECT_FALSE(api.load("libno_such_driver.so.1"));
    EXPECT_EQ(api.problem.find("no libno_such_driver.so.1 on this machine: "), 0u) << api.problem;
    EXPECT_GT(api.problem.size(),
              std::string("no libno_such_driver.so.1 on this machine: ").size());
}

#ifdef TENSORPOOL_HAS_TOOLKIT

/// Whether values of both types are passed in the same way: they have the same size, and pointers
/// point to such types too.
template <class Ours, class Theirs>
constexpr bool is_same_value() {
    if constexpr (std::is_same_v<Ours, Theirs>) {
        return true;
    } else if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
        using To = std::remove_pointer_t<Ours>;
        using Its = std::remove_pointer_t<Theirs>;
        return std::is_const_v<To> == std::is_const_v<Its> &&
               is_same_value<std::remove_const_t<To>, std::remove_const_t<Its>>();
    } else if constexpr (std::is_class_v<Ours> && std::is_class_v<Theirs>) {
        return sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs);
    } else {
        constexpr bool both_numbers = (std::is_integral_v<Ours> || std::is_enum_v<Ours>)&&(
            std::is_integral_v<Theirs> || std::is_enum_v<Theirs>);
        if constexpr (both_numbers) return sizeof(Ours) == sizeof(Theirs);
        return false;
    }
}

template <class Ours, class Theirs>
struct IsSameFunction;
template <Need need, class... Ours, class... Theirs>
struct IsSameFunction<DriverApi::Function<need, Ours...>, CUresult (*)(Theirs...)> {
    static constexpr bool value() {
        if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
            return (is_same_value<Ours, Theirs>() && ...);
        } else {
            return false;
        }
    }
};
template <auto Member, class Theirs>
constexpr bool is_as() {
    return IsSameFunction<std::decay_t<decltype(std::declval<DriverApi>().*Member)>,
                          Theirs>::value();
}

static_assert(is_as<&DriverApi::init, PFN_cuInit_v2000>());
static_assert(is_as<&DriverApi::driver_version, PFN_cuDriverGetVersion_v2020>());
static_assert(is_as<&DriverApi::error_string, PFN_cuGetErrorString_v6000>());
static_assert(is_as<&DriverApi::device_count, PFN_cuDeviceGetCount_v2000>());
static_assert(is_as<&DriverApi::device_get, PFN_cuDeviceGet_v2000>());
static_assert(is_as<&DriverApi::device_name, PFN_cuDeviceGetName_v2000>());
static_assert(is_as<&DriverApi::device_attribute, PFN_cuDeviceGetAttribute_v2000>());
static_assert(is_as<&DriverApi::context_retain, PFN_cuDevicePrimaryCtxRetain_v7000>());
static_assert(is_as<&DriverApi::context_release, PFN_cuDevicePrimaryCtxRelease_v11000>());
static_assert(is_as<&DriverApi::context_push, PFN_cuCtxPushCurrent_v4000>());
static_assert(is_as<&DriverApi::context_pop, PFN_cuCtxPopCurrent_v4000>());
static_assert(is_as<&DriverApi::context_synchronize, PFN_cuCtxSynchronize_v2000>());
static_assert(is_as<&DriverApi::memory_info, PFN_cuMemGetInfo_v3020>());
static_assert(is_as<&DriverApi::memory_allocate, PFN_cuMemAlloc_v3020>());
static_assert(is_as<&DriverApi::memory_free, PFN_cuMemFree_v3020>());
static_assert(is_as<&DriverApi::memory_allocate_managed, PFN_cuMemAllocManaged_v6000>());
static_assert(is_as<&DriverApi::memory_allocate_async, PFN_cuMemAllocAsync_v11020>());
static_assert(is_as<&DriverApi::memory_free_async, PFN_cuMemFreeAsync_v11020>());
static_assert(is_as<&DriverApi::default_pool, PFN_cuDeviceGetDefaultMemPool_v11020>());
static_assert(is_as<&DriverApi::pool_set, PFN_cuMemPoolSetAttribute_v11020>());
static_assert(is_as<&DriverApi::pool_get, PFN_cuMemPoolGetAttribute_v11020>());
static_assert(is_as<&DriverApi::pool_trim, PFN_cuMemPoolTrimTo_v11020>());
static_assert(is_as<&DriverApi::memory_advise, PFN_cuMemAdvise_v8000>());
static_assert(is_as<&DriverApi::memory_prefetch, PFN_cuMemPrefetchAsync_v8000>());
static_assert(is_as<&DriverApi::pointer_attribute, PFN_cuPointerGetAttribute_v4000>());
static_assert(is_as<&DriverApi::granularity, PFN_cuMemGetAllocationGranularity_v10020>());
static_assert(is_as<&DriverApi::address_reserve, PFN_cuMemAddressReserve_v10020>());
static_assert(is_as<&DriverApi::address_free, PFN_cuMemAddressFree_v10020>());
static_assert(is_as<&DriverApi::memory_create, PFN_cuMemCreate_v10020>());
static_assert(is_as<&DriverApi::memory_release, PFN_cuMemRelease_v10020>());
static_assert(is_as<&DriverApi::memory_export, PFN_cuMemExportToShareableHandle_v10020>());
static_assert(is_as<&DriverApi::memory_import, PFN_cuMemImportFromShareableHandle_v10020>());
static_assert(is_as<&DriverApi::memory_map, PFN_cuMemMap_v10020>());
static_assert(is_as<&DriverApi::memory_unmap, PFN_cuMemUnmap_v10020>());
static_assert(is_as<&DriverApi::memory_set_access, PFN_cuMemSetAccess_v10020>());
static_assert(is_as<&DriverApi::host_allocate, PFN_cuMemHostAlloc_v2020>());
static_assert(is_as<&DriverApi::host_free, PFN_cuMemFreeHost_v2000>());
static_assert(is_as<&DriverApi::host_register, PFN_cuMemHostRegister_v6050>());
static_assert(is_as<&DriverApi::host_unregister, PFN_cuMemHostUnregister_v4000>());
static_assert(is_as<&DriverApi::stream_create, PFN_cuStreamCreate_v2000>());
static_assert(
    is_as<&DriverApi::stream_create_with_priority, PFN_cuStreamCreateWithPriority_v5050>());
static_assert(is_as<&DriverApi::stream_priority_range, PFN_cuCtxGetStreamPriorityRange_v5050>());
static_assert(is_as<&DriverApi::stream_destroy, PFN_cuStreamDestroy_v4000>());
static_assert(is_as<&DriverApi::stream_synchronize, PFN_cuStreamSynchronize_v2000>());
static_assert(is_as<&DriverApi::stream_query, PFN_cuStreamQuery_v2000>());
static_assert(is_as<&DriverApi::stream_id, PFN_cuStreamGetId_v12000>());
static_assert(is_as<&DriverApi::stream_wait_event, PFN_cuStreamWaitEvent_v3020>());
static_assert(is_as<&DriverApi::launch_host_function, PFN_cuLaunchHostFunc_v10000>());
static_assert(is_as<&DriverApi::event_create, PFN_cuEventCreate_v2000>());
static_assert(is_as<&DriverApi::event_destroy, PFN_cuEventDestroy_v4000>());
static_assert(is_as<&DriverApi::event_record, PFN_cuEventRecord_v2000>());
static_assert(is_as<&DriverApi::event_query, PFN_cuEventQuery_v2000>());
static_assert(is_as<&DriverApi::event_synchronize, PFN_cuEventSynchronize_v2000>());
static_assert(is_as<&DriverApi::event_elapsed, PFN_cuEventElapsedTime_v2000>());
static_assert(is_as<&DriverApi::copy, PFN_cuMemcpyAsync_v4000>());
static_assert(is_as<&DriverApi::copy_to_device, PFN_cuMemcpyHtoDAsync_v3020>());
static_assert(is_as<&DriverApi::copy_to_host, PFN_cuMemcpyDtoHAsync_v3020>());
static_assert(is_as<&DriverApi::copy_on_device, PFN_cuMemcpyDtoDAsync_v3020>());
static_assert(is_as<&DriverApi::fill, PFN_cuMemsetD8Async_v3020>());
static_assert(is_as<&DriverApi::can_access_peer, PFN_cuDeviceCanAccessPeer_v4000>());
static_assert(is_as<&DriverApi::enable_peer_access, PFN_cuCtxEnablePeerAccess_v4000>());
static_assert(is_as<&DriverApi::copy_peer, PFN_cuMemcpyPeerAsync_v4000>());
static_assert(is_as<&DriverApi::begin_capture, PFN_cuStreamBeginCapture_v10010>());
static_assert(
    is_as<&DriverApi::exchange_capture_mode, PFN_cuThreadExchangeStreamCaptureMode_v10010>());
static_assert(is_as<&DriverApi::end_capture, PFN_cuStreamEndCapture_v10000>());
static_assert(is_as<&DriverApi::capture_info, PFN_cuStreamGetCaptureInfo_v11030>());
static_assert(is_as<&DriverApi::graph_instantiate,
                    CUresult (*)(CUgraphExec*, CUgraph, CUgraphNode*, char*, std::size_t)>());
static_assert(is_as<&DriverApi::graph_launch, PFN_cuGraphLaunch_v10000>());
static_assert(is_as<&DriverApi::graph_destroy, PFN_cuGraphDestroy_v10000>());
static_assert(is_as<&DriverApi::graph_exec_destroy, PFN_cuGraphExecDestroy_v10000>());

template <class Ours, class Theirs>
constexpr bool is(Ours ours, Theirs theirs) {
    return static_cast<unsigned>(ours) == static_cast<unsigned>(theirs);
}
static_assert(is(Result::invalid_value, CUDA_ERROR_INVALID_VALUE));
static_assert(is(Result::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY));
static_assert(is(Result::not_initialized, CUDA_ERROR_NOT_INITIALIZED));
static_assert(is(Result::deinitialized, CUDA_ERROR_DEINITIALIZED));
static_assert(is(Result::no_device, CUDA_ERROR_NO_DEVICE));
static_assert(is(Result::invalid_device, CUDA_ERROR_INVALID_DEVICE));
static_assert(is(Result::invalid_context, CUDA_ERROR_INVALID_CONTEXT));
static_assert(is(Result::ecc_uncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE));
static_assert(is(Result::peer_access_unsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED));
static_assert(is(Result::nvlink_uncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE));
static_assert(is(Result::contained, CUDA_ERROR_CONTAINED));
static_assert(is(Result::invalid_handle, CUDA_ERROR_INVALID_HANDLE));
static_assert(is(Result::illegal_state, CUDA_ERROR_ILLEGAL_STATE));
static_assert(is(Result::not_found, CUDA_ERROR_NOT_FOUND));
static_assert(is(Result::not_ready, CUDA_ERROR_NOT_READY));
static_assert(is(Result::illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS));
static_assert(is(Result::launch_timeout, CUDA_ERROR_LAUNCH_TIMEOUT));
static_assert(is(Result::peer_access_already_enabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED));
static_assert(is(Result::context_is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED));
static_assert(is(Result::assert, CUDA_ERROR_ASSERT));
static_assert(is(Result::too_many_peers, CUDA_ERROR_TOO_MANY_PEERS));
static_assert(is(Result::host_memory_already_registered,
                 CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED));
static_assert(is(Result::host_memory_not_registered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED));
static_assert(is(Result::hardware_stack_error, CUDA_ERROR_HARDWARE_STACK_ERROR));
static_assert(is(Result::illegal_instruction, CUDA_ERROR_ILLEGAL_INSTRUCTION));
static_assert(is(Result::misaligned_address, CUDA_ERROR_MISALIGNED_ADDRESS));
static_assert(is(Result::invalid_address_space, CUDA_ERROR_INVALID_ADDRESS_SPACE));
static_assert(is(Result::invalid_pc, CUDA_ERROR_INVALID_PC));
static_assert(is(Result::launch_failed, CUDA_ERROR_LAUNCH_FAILED));
static_assert(is(Result::tensor_memory_leak, CUDA_ERROR_TENSOR_MEMORY_LEAK));
static_assert(is(Result::not_supported, CUDA_ERROR_NOT_SUPPORTED));
static_assert(is(Result::mps_client_terminated, CUDA_ERROR_MPS_CLIENT_TERMINATED));
static_assert(is(Result::stream_capture_unsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
static_assert(is(Result::stream_capture_invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
static_assert(is(Result::stream_capture_merge, CUDA_ERROR_STREAM_CAPTURE_MERGE));
static_assert(is(Result::stream_capture_unmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED));
static_assert(is(Result::stream_capture_unjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED));
static_assert(is(Result::stream_capture_isolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION));
static_assert(is(Result::stream_capture_implicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT));
static_assert(is(Result::captured_event, CUDA_ERROR_CAPTURED_EVENT));
static_assert(is(Result::stream_capture_wrong_thread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD));
static_assert(is(Result::external_device, CUDA_ERROR_EXTERNAL_DEVICE));

static_assert(is(DeviceAttribute::can_map_host_memory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY));
static_assert(is(DeviceAttribute::unified_addressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING));
static_assert(is(DeviceAttribute::managed_memory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY));
static_assert(is(DeviceAttribute::concurrent_managed_access,
                 CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS));
static_assert(is(MemoryPoolAttribute::release_threshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD));
static_assert(is(MemoryPoolAttribute::reserved_bytes, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
static_assert(is(host_number, CU_DEVICE_CPU));
static_assert(is(Advice::set_read_mostly, CU_MEM_ADVISE_SET_READ_MOSTLY));
static_assert(is(Advice::unset_read_mostly, CU_MEM_ADVISE_UNSET_READ_MOSTLY));
static_assert(is(Advice::set_preferred_location, CU_MEM_ADVISE_SET_PREFERRED_LOCATION));
static_assert(is(Advice::unset_preferred_location, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION));
static_assert(is(Advice::set_accessed_by, CU_MEM_ADVISE_SET_ACCESSED_BY));
static_assert(is(Advice::unset_accessed_by, CU_MEM_ADVISE_UNSET_ACCESSED_BY));
static_assert(is(DeviceAttribute::virtual_memory_management,
                 CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED));
static_assert(is(DeviceAttribute::memory_pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED));
static_assert(is(PointerAttribute::host_pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER));
static_assert(is(CaptureMode::global, CU_STREAM_CAPTURE_MODE_GLOBAL));
static_assert(is(CaptureMode::of_thread, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
static_assert(is(CaptureMode::relaxed, CU_STREAM_CAPTURE_MODE_RELAXED));
static_assert(is(CaptureStatus::none, CU_STREAM_CAPTURE_STATUS_NONE));
static_assert(is(CaptureStatus::active, CU_STREAM_CAPTURE_STATUS_ACTIVE));
static_assert(is(CaptureStatus::invalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED));
static_assert(is(legacy_stream, CU_GET_PROC_ADDRESS_LEGACY_STREAM));
static_assert(is(AddressQuery::symbol_not_found, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND));
static_assert(is(AddressQuery::version_not_sufficient, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT));
static_assert(is(stream_non_blocking, CU_STREAM_NON_BLOCKING));
static_assert(is(event_default, CU_EVENT_DEFAULT));
static_assert(is(event_blocking_sync, CU_EVENT_BLOCKING_SYNC));
static_assert(is(event_disable_timing, CU_EVENT_DISABLE_TIMING));
static_assert(is(event_interprocess, CU_EVENT_INTERPROCESS));
static_assert(is(attach_global, CU_MEM_ATTACH_GLOBAL));
static_assert(is(host_alloc_portable, CU_MEMHOSTALLOC_PORTABLE));
static_assert(is(host_alloc_device_map, CU_MEMHOSTALLOC_DEVICEMAP));
static_assert(is(host_register_portable, CU_MEMHOSTREGISTER_PORTABLE));
static_assert(is(LocationType::device, CU_MEM_LOCATION_TYPE_DEVICE));
static_assert(is(AllocationType::pinned, CU_MEM_ALLOCATION_TYPE_PINNED));
static_assert(is(Access::read_write, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
static_assert(is(Granularity::minimum, CU_MEM_ALLOC_GRANULARITY_MINIMUM));

static_assert(offsetof(AllocationProperties, location) == offsetof(CUmemAllocationProp, location));
static_assert(offsetof(AllocationProperties, compression_type) ==
              offsetof(CUmemAllocationProp, allocFlags));
static_assert(offsetof(AllocationProperties, win32_meta_data) ==
              offsetof(CUmemAllocationProp, win32HandleMetaData));
static_assert(offsetof(AccessDescription, flags) == offsetof(CUmemAccessDesc, flags));
static_assert(offsetof(Location, id) == offsetof(CUmemLocation, id));

// The toolkit's stub of the driver exports all names but has no device.
TEST(DriverApi, FindsEachFunctionInTheToolkitsStub) {
    DriverApi api;
    if (!platform::DynamicLibrary().open(TENSORPOOL_CUDA_STUB)) {
        GTEST_SKIP() << "no " << TENSORPOOL_CUDA_STUB;
    }
    EXPECT_TRUE(api.load(TENSORPOOL_CUDA_STUB)) << api.problem;
    for (const DriverSymbol* symbol = api.symbols; symbol != nullptr; symbol = symbol->next) {
        EXPECT_TRUE(*symbol) << symbol->exported;
    }
    EXPECT_EQ(api.init(0), Result::stub_library);
}

#else

TEST(DriverApi, MatchesTheToolkitsHeaders) {
    GTEST_SKIP() << "no cudaTypedefs.h on this machine";
}

#endif

}  // namespace
}  // namespace tensorpool::device::cuda
