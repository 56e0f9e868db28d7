#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

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
          exported(exported_as != nullptr ? exported_as : its_name),
          need(need_it),
          next(std::exchange(symbols, this)) {}
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

/// The list of the functions of a DriverApi, the last one declared first.
struct DriverSymbols {
    template <Need need, class... Parameters>
    struct Function : DriverFunction<Result(Parameters...)> {
        Function(DriverSymbols* list, const char* its_name, int its_version,
                 const char* exported_as = nullptr) noexcept
            : DriverFunction<Result(Parameters...)>(list->symbols, need, its_name, its_version,
                                                    exported_as) {}
    };
    template <class... Parameters>
    using Always = Function<Need::always, Parameters...>;
    template <class... Parameters>
    using Optional = Function<Need::optional, Parameters...>;

    DriverSymbol* symbols = nullptr;
};

/// The functions of the driver that the backend uses. On 64-bit systems the driver uses the normal
/// calling convention of C, so none is named here.
struct DriverApi : DriverSymbols {
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

    platform::DynamicLibrary file;
    std::string problem;

    // The driver and its devices.
    Always<unsigned> init{this, "cuInit", 2000};
    Always<int*> driver_version{this, "cuDriverGetVersion", 2020};
    Optional<Result, const char**> error_string{this, "cuGetErrorString", 6000};
    Always<int*> device_count{this, "cuDeviceGetCount", 2000};
    Always<DeviceNumber*, int> device_get{this, "cuDeviceGet", 2000};
    Always<char*, int, DeviceNumber> device_name{this, "cuDeviceGetName", 2000};
    Always<int*, DeviceAttribute, DeviceNumber> device_attribute{this, "cuDeviceGetAttribute",
                                                                 2000};

    // Contexts.
    Always<Context*, DeviceNumber> context_retain{this, "cuDevicePrimaryCtxRetain", 7000};
    Always<DeviceNumber> context_release{this, "cuDevicePrimaryCtxRelease", 7000};
    Always<Context> context_push{this, "cuCtxPushCurrent", 4000, "cuCtxPushCurrent_v2"};
    Always<Context*> context_pop{this, "cuCtxPopCurrent", 4000, "cuCtxPopCurrent_v2"};
    Always<> context_synchronize{this, "cuCtxSynchronize", 2000};

    // Memory.
    Always<std::size_t*, std::size_t*> memory_info{this, "cuMemGetInfo", 3020, "cuMemGetInfo_v2"};
    Always<DeviceAddress*, std::size_t> memory_allocate{this, "cuMemAlloc", 3020, "cuMemAlloc_v2"};
    Always<DeviceAddress> memory_free{this, "cuMemFree", 3020, "cuMemFree_v2"};
    Optional<DeviceAddress*, std::size_t, unsigned> memory_allocate_managed{
        this, "cuMemAllocManaged", 6000};
    Optional<DeviceAddress*, std::size_t, Stream> memory_allocate_async{this, "cuMemAllocAsync",
                                                                        11020};
    Optional<DeviceAddress, Stream> memory_free_async{this, "cuMemFreeAsync", 11020};
    Optional<MemoryPool*, DeviceNumber> default_pool{this, "cuDeviceGetDefaultMemPool", 11020};
    Optional<MemoryPool, MemoryPoolAttribute, void*> pool_set{this, "cuMemPoolSetAttribute", 11020};
    Optional<MemoryPool, MemoryPoolAttribute, void*> pool_get{this, "cuMemPoolGetAttribute", 11020};
    Optional<MemoryPool, std::size_t> pool_trim{this, "cuMemPoolTrimTo", 11020};
    Optional<DeviceAddress, std::size_t, Advice, DeviceNumber> memory_advise{this, "cuMemAdvise",
                                                                             8000};
    Optional<DeviceAddress, std::size_t, DeviceNumber, Stream> memory_prefetch{
        this, "cuMemPrefetchAsync", 8000};
    Always<void*, PointerAttribute, DeviceAddress> pointer_attribute{this, "cuPointerGetAttribute",
                                                                     4000};

    // Virtual memory.
    Optional<std::size_t*, const AllocationProperties*, Granularity> granularity{
        this, "cuMemGetAllocationGranularity", 10020};
    Optional<DeviceAddress*, std::size_t, std::size_t, DeviceAddress, unsigned long long>
        address_reserve{this, "cuMemAddressReserve", 10020};
    Optional<DeviceAddress, std::size_t> address_free{this, "cuMemAddressFree", 10020};
    Optional<MemoryNumber*, std::size_t, const AllocationProperties*, unsigned long long>
        memory_create{this, "cuMemCreate", 10020};
    Optional<MemoryNumber> memory_release{this, "cuMemRelease", 10020};
    Optional<void*, MemoryNumber, HandleType, unsigned long long> memory_export{
        this, "cuMemExportToShareableHandle", 10020};
    Optional<MemoryNumber*, void*, HandleType> memory_import{this, "cuMemImportFromShareableHandle",
                                                             10020};
    Optional<DeviceAddress, std::size_t, std::size_t, MemoryNumber, unsigned long long> memory_map{
        this, "cuMemMap", 10020};
    Optional<DeviceAddress, std::size_t> memory_unmap{this, "cuMemUnmap", 10020};
    Optional<DeviceAddress, std::size_t, const AccessDescription*, std::size_t> memory_set_access{
        this, "cuMemSetAccess", 10020};

    // Pinned host memory.
    Always<void**, std::size_t, unsigned> host_allocate{this, "cuMemHostAlloc", 2020};
    Always<void*> host_free{this, "cuMemFreeHost", 2000};
    Optional<void*, std::size_t, unsigned> host_register{this, "cuMemHostRegister", 6050,
                                                         "cuMemHostRegister_v2"};
    Optional<void*> host_unregister{this, "cuMemHostUnregister", 4000};

    // Streams and events.
    Always<Stream*, unsigned> stream_create{this, "cuStreamCreate", 2000};
    Always<Stream*, unsigned, int> stream_create_with_priority{this, "cuStreamCreateWithPriority",
                                                               5050};
    Always<int*, int*> stream_priority_range{this, "cuCtxGetStreamPriorityRange", 5050};
    Always<Stream> stream_destroy{this, "cuStreamDestroy", 4000, "cuStreamDestroy_v2"};
    Always<Stream> stream_synchronize{this, "cuStreamSynchronize", 2000};
    Optional<Stream, unsigned long long*> stream_id{this, "cuStreamGetId", 12000};
    Always<Stream> stream_query{this, "cuStreamQuery", 2000};
    Always<Stream, Event, unsigned> stream_wait_event{this, "cuStreamWaitEvent", 3020};
    Always<Stream, HostFunction, void*> launch_host_function{this, "cuLaunchHostFunc", 10000};
    Always<Event*, unsigned> event_create{this, "cuEventCreate", 2000};
    Always<Event> event_destroy{this, "cuEventDestroy", 4000, "cuEventDestroy_v2"};
    Always<Event, Stream> event_record{this, "cuEventRecord", 2000};
    Always<Event> event_query{this, "cuEventQuery", 2000};
    Always<Event> event_synchronize{this, "cuEventSynchronize", 2000};
    Always<float*, Event, Event> event_elapsed{this, "cuEventElapsedTime", 2000};

    // Copies and fills.
    Always<DeviceAddress, DeviceAddress, std::size_t, Stream> copy{this, "cuMemcpyAsync", 4000};
    Always<DeviceAddress, const void*, std::size_t, Stream> copy_to_device{
        this, "cuMemcpyHtoDAsync", 3020, "cuMemcpyHtoDAsync_v2"};
    Always<void*, DeviceAddress, std::size_t, Stream> copy_to_host{this, "cuMemcpyDtoHAsync", 3020,
                                                                   "cuMemcpyDtoHAsync_v2"};
    Always<DeviceAddress, DeviceAddress, std::size_t, Stream> copy_on_device{
        this, "cuMemcpyDtoDAsync", 3020, "cuMemcpyDtoDAsync_v2"};
    Always<DeviceAddress, unsigned char, std::size_t, Stream> fill{this, "cuMemsetD8Async", 3020};

    // Peers.
    Optional<int*, DeviceNumber, DeviceNumber> can_access_peer{this, "cuDeviceCanAccessPeer", 4000};
    Optional<Context, unsigned> enable_peer_access{this, "cuCtxEnablePeerAccess", 4000};
    Optional<DeviceAddress, Context, DeviceAddress, Context, std::size_t, Stream> copy_peer{
        this, "cuMemcpyPeerAsync", 4000};

    // Capture and graphs.
    Optional<Stream, CaptureMode> begin_capture{this, "cuStreamBeginCapture", 10010,
                                                "cuStreamBeginCapture_v2"};
    Optional<CaptureMode*> exchange_capture_mode{this, "cuThreadExchangeStreamCaptureMode", 10010};
    Optional<Stream, Graph*> end_capture{this, "cuStreamEndCapture", 10000};
    Optional<Stream, CaptureStatus*, std::uint64_t*, Graph*, const GraphNode**, std::size_t*>
        capture_info{this, "cuStreamGetCaptureInfo", 11030, "cuStreamGetCaptureInfo_v2"};
    Optional<GraphExec*, Graph, GraphNode*, char*, std::size_t> graph_instantiate{
        this, "cuGraphInstantiate", 11000, "cuGraphInstantiate_v2"};
    Optional<GraphExec, Stream> graph_launch{this, "cuGraphLaunch", 10000};
    Optional<Graph> graph_destroy{this, "cuGraphDestroy", 10000};
    Optional<GraphExec> graph_exec_destroy{this, "cuGraphExecDestroy", 10000};
};

}  // namespace tensorpool::device::cuda
