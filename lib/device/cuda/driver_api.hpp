#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/process/dynamic_library.hpp"

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
inline constexpr std::uint64_t legacy_stream = 1;              // CU_GET_PROC_ADDRESS_LEGACY_STREAM
inline constexpr std::uintptr_t legacy_stream_handle = 1;      // CU_STREAM_LEGACY
inline constexpr std::uintptr_t per_thread_stream_handle = 2;  // CU_STREAM_PER_THREAD
inline constexpr unsigned stream_non_blocking = 1;             // CU_STREAM_NON_BLOCKING
inline constexpr unsigned event_default = 0;                   // CU_EVENT_DEFAULT
inline constexpr unsigned event_blocking_sync = 1;             // CU_EVENT_BLOCKING_SYNC
inline constexpr unsigned event_disable_timing = 2;            // CU_EVENT_DISABLE_TIMING
inline constexpr unsigned event_interprocess = 4;              // CU_EVENT_INTERPROCESS
inline constexpr unsigned attach_global = 1;                   // CU_MEM_ATTACH_GLOBAL
inline constexpr unsigned host_alloc_portable = 1;             // CU_MEMHOSTALLOC_PORTABLE
inline constexpr unsigned host_alloc_device_map = 2;           // CU_MEMHOSTALLOC_DEVICEMAP
inline constexpr unsigned host_register_portable = 1;          // CU_MEMHOSTREGISTER_PORTABLE

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

/// Whether a driver that lacks a function is still usable.
enum class Need : bool { optional, always };

/// A function of the driver, by name. `version` is the CUDA version in which the declared form of
/// the function appeared (1000 for each major number, 10 for each minor one). `exported` is the
/// name of that form in the library.
struct DriverSymbol {
    DriverSymbol(DriverSymbol*& symbols, Need need_it, const char* its_name, int its_version,
                 const char* exported_as) noexcept
        : name(its_name),
          version(its_version),
          exported(exported_as),
          need(need_it),
          next(symbols) {
        symbols = this;
    }
    DriverSymbol(const DriverSymbol&) = delete;
    DriverSymbol& operator=(const DriverSymbol&) = delete;

    explicit operator bool() const noexcept { return address != nullptr; }

    const char* const name;
    const int version;
    const char* const exported;
    const Need need;
    void* address = nullptr;
    DriverSymbol* const next;  // the symbol declared before this one
};

template <class Signature>
struct DriverFunction;

/// REQUIRES, for calls: the function was found.
template <class Returned, class... Parameters>
struct DriverFunction<Returned(Parameters...)> : DriverSymbol {
    using DriverSymbol::DriverSymbol;
    DriverFunction(DriverSymbol*& symbols, Need need_it, const char* its_name,
                   int its_version) noexcept
        : DriverSymbol(symbols, need_it, its_name, its_version, its_name) {}

    Returned operator()(Parameters... arguments) const noexcept {
        return reinterpret_cast<Returned (*)(Parameters...)>(address)(arguments...);
    }
};

/// Finds functions through cuGetProcAddress, in the form of a given CUDA version. Drivers before
/// CUDA 11.3 do not have it; their functions are looked up in the library.
class AddressSource {
public:
    explicit AddressSource(const platform::DynamicLibrary& file) noexcept
        : file_(file),
          with_status_(reinterpret_cast<WithStatus>(file.find("cuGetProcAddress_v2"))),
          without_(reinterpret_cast<Without>(file.find("cuGetProcAddress"))) {}

    void* find(const DriverSymbol& symbol) const noexcept {
        void* const address = look_up(symbol);
        return address != nullptr ? address : file_.find(symbol.exported);
    }

private:
    using WithStatus = Result (*)(const char*, void**, int, std::uint64_t, AddressQuery*);  // 12.0
    using Without = Result (*)(const char*, void**, int, std::uint64_t);                    // 11.3

    void* look_up(const DriverSymbol& symbol) const noexcept {
        void* address = nullptr;
        Result result = Result::not_found;
        if (with_status_ != nullptr) {
            AddressQuery query = AddressQuery::symbol_not_found;
            result = with_status_(symbol.name, &address, symbol.version, legacy_stream, &query);
        } else if (without_ != nullptr) {
            result = without_(symbol.name, &address, symbol.version, legacy_stream);
        }
        return result == Result::success ? address : nullptr;
    }

    const platform::DynamicLibrary& file_;
    const WithStatus with_status_;
    const Without without_;
};

/// The functions of the driver that the backend uses. On 64-bit systems the driver uses the normal
/// calling convention of C, so none is named here.
struct DriverApi {
    /// Loads the library and looks up all functions. Returns false, with the reason in `problem`,
    /// if the library cannot be loaded or lacks a required function. Throws std::bad_alloc.
    [[nodiscard]] bool load(const std::string& library) {
        if (!file.open(library)) {
            problem = "no " + library + " on this machine: " + file.problem();
            return false;
        }
        const AddressSource source(file);
        for (DriverSymbol* symbol = symbols; symbol != nullptr; symbol = symbol->next) {
            symbol->address = source.find(*symbol);
            if (symbol->address == nullptr && symbol->need == Need::always) {
                problem = library + " has no " + symbol->exported +
                          "; expected the driver of CUDA 10.0 or newer";
                return false;
            }
        }
        return true;
    }

    template <class... Parameters>
    using Function = DriverFunction<Result(Parameters...)>;
    using enum Need;

    platform::DynamicLibrary file;
    std::string problem;
    DriverSymbol* symbols = nullptr;  // list of all functions below, the last first

    // The driver and its devices.
    Function<unsigned> init{symbols, always, "cuInit", 2000};
    Function<int*> driver_version{symbols, always, "cuDriverGetVersion", 2020};
    Function<Result, const char**> error_string{symbols, optional, "cuGetErrorString", 6000};
    Function<int*> device_count{symbols, always, "cuDeviceGetCount", 2000};
    Function<DeviceNumber*, int> device_get{symbols, always, "cuDeviceGet", 2000};
    Function<char*, int, DeviceNumber> device_name{symbols, always, "cuDeviceGetName", 2000};
    Function<int*, DeviceAttribute, DeviceNumber> device_attribute{symbols, always,
                                                                   "cuDeviceGetAttribute", 2000};

    // Contexts.
    Function<Context*, DeviceNumber> context_retain{symbols, always, "cuDevicePrimaryCtxRetain",
                                                    7000};
    Function<DeviceNumber> context_release{symbols, always, "cuDevicePrimaryCtxRelease", 7000};
    Function<Context> context_push{symbols, always, "cuCtxPushCurrent", 4000,
                                   "cuCtxPushCurrent_v2"};
    Function<Context*> context_pop{symbols, always, "cuCtxPopCurrent", 4000, "cuCtxPopCurrent_v2"};
    Function<> context_synchronize{symbols, always, "cuCtxSynchronize", 2000};

    // Memory.
    Function<std::size_t*, std::size_t*> memory_info{symbols, always, "cuMemGetInfo", 3020,
                                                     "cuMemGetInfo_v2"};
    Function<DeviceAddress*, std::size_t> memory_allocate{symbols, always, "cuMemAlloc", 3020,
                                                          "cuMemAlloc_v2"};
    Function<DeviceAddress> memory_free{symbols, always, "cuMemFree", 3020, "cuMemFree_v2"};
    Function<DeviceAddress*, std::size_t, unsigned> memory_allocate_managed{
        symbols, optional, "cuMemAllocManaged", 6000};
    Function<DeviceAddress*, std::size_t, Stream> memory_allocate_async{symbols, optional,
                                                                        "cuMemAllocAsync", 11020};
    Function<DeviceAddress, Stream> memory_free_async{symbols, optional, "cuMemFreeAsync", 11020};
    Function<MemoryPool*, DeviceNumber> default_pool{symbols, optional, "cuDeviceGetDefaultMemPool",
                                                     11020};
    Function<MemoryPool, MemoryPoolAttribute, void*> pool_set{symbols, optional,
                                                              "cuMemPoolSetAttribute", 11020};
    Function<MemoryPool, MemoryPoolAttribute, void*> pool_get{symbols, optional,
                                                              "cuMemPoolGetAttribute", 11020};
    Function<MemoryPool, std::size_t> pool_trim{symbols, optional, "cuMemPoolTrimTo", 11020};
    Function<DeviceAddress, std::size_t, Advice, DeviceNumber> memory_advise{symbols, optional,
                                                                             "cuMemAdvise", 8000};
    Function<DeviceAddress, std::size_t, DeviceNumber, Stream> memory_prefetch{
        symbols, optional, "cuMemPrefetchAsync", 8000};
    Function<void*, PointerAttribute, DeviceAddress> pointer_attribute{
        symbols, always, "cuPointerGetAttribute", 4000};

    // Virtual memory.
    Function<std::size_t*, const AllocationProperties*, Granularity> granularity{
        symbols, optional, "cuMemGetAllocationGranularity", 10020};
    Function<DeviceAddress*, std::size_t, std::size_t, DeviceAddress, unsigned long long>
        address_reserve{symbols, optional, "cuMemAddressReserve", 10020};
    Function<DeviceAddress, std::size_t> address_free{symbols, optional, "cuMemAddressFree", 10020};
    Function<MemoryNumber*, std::size_t, const AllocationProperties*, unsigned long long>
        memory_create{symbols, optional, "cuMemCreate", 10020};
    Function<MemoryNumber> memory_release{symbols, optional, "cuMemRelease", 10020};
    Function<void*, MemoryNumber, HandleType, unsigned long long> memory_export{
        symbols, optional, "cuMemExportToShareableHandle", 10020};
    Function<MemoryNumber*, void*, HandleType> memory_import{
        symbols, optional, "cuMemImportFromShareableHandle", 10020};
    Function<DeviceAddress, std::size_t, std::size_t, MemoryNumber, unsigned long long> memory_map{
        symbols, optional, "cuMemMap", 10020};
    Function<DeviceAddress, std::size_t> memory_unmap{symbols, optional, "cuMemUnmap", 10020};
    Function<DeviceAddress, std::size_t, const AccessDescription*, std::size_t> memory_set_access{
        symbols, optional, "cuMemSetAccess", 10020};

    // Pinned host memory.
    Function<void**, std::size_t, unsigned> host_allocate{symbols, always, "cuMemHostAlloc", 2020};
    Function<void*> host_free{symbols, always, "cuMemFreeHost", 2000};
    Function<void*, std::size_t, unsigned> host_register{symbols, optional, "cuMemHostRegister",
                                                         6050, "cuMemHostRegister_v2"};
    Function<void*> host_unregister{symbols, optional, "cuMemHostUnregister", 4000};

    // Streams and events.
    Function<Stream*, unsigned> stream_create{symbols, always, "cuStreamCreate", 2000};
    Function<Stream*, unsigned, int> stream_create_with_priority{
        symbols, always, "cuStreamCreateWithPriority", 5050};
    Function<int*, int*> stream_priority_range{symbols, always, "cuCtxGetStreamPriorityRange",
                                               5050};
    Function<Stream> stream_destroy{symbols, always, "cuStreamDestroy", 4000, "cuStreamDestroy_v2"};
    Function<Stream> stream_synchronize{symbols, always, "cuStreamSynchronize", 2000};
    Function<Stream, unsigned long long*> stream_id{symbols, optional, "cuStreamGetId", 12000};
    Function<Stream> stream_query{symbols, always, "cuStreamQuery", 2000};
    Function<Stream, Event, unsigned> stream_wait_event{symbols, always, "cuStreamWaitEvent", 3020};
    Function<Stream, HostFunction, void*> launch_host_function{symbols, always, "cuLaunchHostFunc",
                                                               10000};
    Function<Event*, unsigned> event_create{symbols, always, "cuEventCreate", 2000};
    Function<Event> event_destroy{symbols, always, "cuEventDestroy", 4000, "cuEventDestroy_v2"};
    Function<Event, Stream> event_record{symbols, always, "cuEventRecord", 2000};
    Function<Event> event_query{symbols, always, "cuEventQuery", 2000};
    Function<Event> event_synchronize{symbols, always, "cuEventSynchronize", 2000};
    Function<float*, Event, Event> event_elapsed{symbols, always, "cuEventElapsedTime", 2000};

    // Copies and fills.
    Function<DeviceAddress, DeviceAddress, std::size_t, Stream> copy{symbols, always,
                                                                     "cuMemcpyAsync", 4000};
    Function<DeviceAddress, const void*, std::size_t, Stream> copy_to_device{
        symbols, always, "cuMemcpyHtoDAsync", 3020, "cuMemcpyHtoDAsync_v2"};
    Function<void*, DeviceAddress, std::size_t, Stream> copy_to_host{
        symbols, always, "cuMemcpyDtoHAsync", 3020, "cuMemcpyDtoHAsync_v2"};
    Function<DeviceAddress, DeviceAddress, std::size_t, Stream> copy_on_device{
        symbols, always, "cuMemcpyDtoDAsync", 3020, "cuMemcpyDtoDAsync_v2"};
    Function<DeviceAddress, unsigned char, std::size_t, Stream> fill{symbols, always,
                                                                     "cuMemsetD8Async", 3020};

    // Peers.
    Function<int*, DeviceNumber, DeviceNumber> can_access_peer{symbols, optional,
                                                               "cuDeviceCanAccessPeer", 4000};
    Function<Context, unsigned> enable_peer_access{symbols, optional, "cuCtxEnablePeerAccess",
                                                   4000};
    Function<DeviceAddress, Context, DeviceAddress, Context, std::size_t, Stream> copy_peer{
        symbols, optional, "cuMemcpyPeerAsync", 4000};

    // Capture and graphs.
    Function<Stream, CaptureMode> begin_capture{symbols, optional, "cuStreamBeginCapture", 10010,
                                                "cuStreamBeginCapture_v2"};
    Function<CaptureMode*> exchange_capture_mode{symbols, optional,
                                                 "cuThreadExchangeStreamCaptureMode", 10010};
    Function<Stream, Graph*> end_capture{symbols, optional, "cuStreamEndCapture", 10000};
    Function<Stream, CaptureStatus*, std::uint64_t*, Graph*, const GraphNode**, std::size_t*>
        capture_info{symbols, optional, "cuStreamGetCaptureInfo", 11030,
                     "cuStreamGetCaptureInfo_v2"};
    Function<GraphExec*, Graph, GraphNode*, char*, std::size_t> graph_instantiate{
        symbols, optional, "cuGraphInstantiate", 11000, "cuGraphInstantiate_v2"};
    Function<GraphExec, Stream> graph_launch{symbols, optional, "cuGraphLaunch", 10000};
    Function<Graph> graph_destroy{symbols, optional, "cuGraphDestroy", 10000};
    Function<GraphExec> graph_exec_destroy{symbols, optional, "cuGraphExecDestroy", 10000};
};

}  // namespace tensorpool::device::cuda
