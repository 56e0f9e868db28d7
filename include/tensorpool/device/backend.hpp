#pragma once

/// @file
/// The interface between a kind of device and its runtimes and allocators.
///
/// A backend implements it for all devices of its type. Optional functions have a default, which
/// their comments state; all others must be implemented. These rules apply to every function:
///
/// - `device` is an index from 0 to `device_count() - 1`; any other is `invalid_argument`.
/// - Sizes are bytes. A call that fails changes nothing; `last_error` returns the details.
/// - Any thread may call any function at any time. No call changes the state of a thread (such as a
///   current device).
/// - Work submitted to one stream runs in the order of submission.
/// - The stream nullptr is the device's default stream, which always exists.
/// - No function throws.
///
/// The tests in `tests/contracts` check every backend.

#include <atomic>
#include <span>

#include <tensorpool/device/device.hpp>
#include <tensorpool/device/device_status.hpp>

namespace tensorpool {

/// A stream of a backend. Handles are multiples of 4, as addresses of objects are, except those of
/// `DeviceAbilities::names_default_streams`.
using StreamHandle = struct BackendStream*;
/// An event of a backend.
using EventHandle = struct BackendEvent*;
/// Physical memory of a backend, which can be mapped.
using MemoryHandle = struct BackendMemory*;
/// Captured work of a backend.
using GraphHandle = struct BackendGraph*;

/// Which processors can access memory of a device.
enum class StorageKind : std::uint8_t {
    /// The device only.
    private_storage,
    /// The device, and the host at `host_pointer`.
    shared,
    /// Both, at one address; pages move automatically.
    managed,
};

/// The direction of a copy.
enum class CopyKind : std::uint8_t {
    /// From host memory to host memory.
    host_to_host,
    /// From host memory to device memory.
    host_to_device,
    /// From device memory to host memory.
    device_to_host,
    /// From device memory to memory of the same device.
    device_to_device
};
/// Returns the direction as text, such as "host to device".
TENSORPOOL_API const char* to_string(CopyKind kind) noexcept;

/// How managed memory will be used; see `Backend::advise_memory`. The effects are those of CUDA's
/// advices (reference, cuMemAdvise). They change where pages are, never their content.
enum class MemoryAdvice : std::uint8_t {
    /// Processors mostly read it, so each that reads a page may keep a copy.
    read_mostly,
    /// Undoes `read_mostly`.
    not_read_mostly,
    /// Pages stay with the processor, if possible.
    preferred_location,
    /// Undoes `preferred_location`.
    no_preferred_location,
    /// The processor will access it, and is given access to pages wherever they are.
    accessed_by,
    /// Undoes `accessed_by` for the processor.
    not_accessed_by,
};

/// The processor that an advice or a prefetch is about.
enum class Processor : std::uint8_t {
    /// The device of the call.
    device,
    /// The host.
    host,
};

/// The properties of an event.
enum class EventFlags : std::uint8_t {
    /// None of those below.
    none = 0,
    /// It stores the time at which it was reached, for `elapsed_ms`.
    timing = 1,
    /// A thread that waits for it sleeps instead of spinning.
    blocking = 2,
    /// Other processes can open it by the vendor's functions for its handle. It cannot have timing.
    interprocess = 4,
};
/// Returns the union of two sets of flags.
constexpr EventFlags operator|(EventFlags one, EventFlags other) noexcept {
    return static_cast<EventFlags>(static_cast<std::uint8_t>(one) |
                                   static_cast<std::uint8_t>(other));
}
/// Returns whether `flags` contains a flag of `part`.
constexpr bool contains(EventFlags flags, EventFlags part) noexcept {
    return (static_cast<std::uint8_t>(flags) & static_cast<std::uint8_t>(part)) != 0;
}

/// The abilities of a device. Sizes are bytes.
struct DeviceAbilities {
    /// Host and device use the same memory, so `private_storage` has a host pointer too.
    bool unified_memory = false;
    /// StorageKind::shared is supported.
    bool shared_storage = false;
    /// StorageKind::managed is supported.
    bool managed_storage = false;
    /// `advise_memory` and `prefetch_memory` are supported.
    bool managed_advice = false;
    /// The functions of the section "Virtual memory" are supported.
    bool virtual_memory = false;
    /// Physical memory can be shared with other processes: `create_exportable_memory`,
    /// `export_memory` and `import_memory` are supported.
    bool exportable_memory = false;
    /// The functions for stream-ordered allocation, from `allocate_async` to
    /// `trim_stream_ordered`, are supported.
    bool stream_ordered_allocation = false;
    /// The functions of the section "Graph capture" are supported.
    bool graph_capture = false;
    /// `memory_info` may not count memory that was just freed; `settle_memory` waits until it does.
    bool late_free_size = false;
    /// The backend uses `note_block`. Allocators then call it for every block, and are slower.
    bool watches_blocks = false;
    /// The limit for one `allocate`; 0: the device's memory is the only limit.
    std::size_t largest_allocation = 0;
    /// The handles 1 and 2 name streams as well: 1 the default stream, and 2 the default stream of
    /// the calling thread. Source: CUDA's stream_legacy and per-thread default stream.
    bool names_default_streams = false;
    /// The granularity of virtual memory, a power of two; 0 if that is not supported.
    std::size_t granularity = 0;
    /// The memory that a program may hold without slowing the device down; 0: all of it.
    std::size_t recommended_bytes = 0;
};

/// The memory of a device, in bytes.
struct DeviceMemoryInfo {
    /// The bytes that no process has allocated.
    std::size_t free_bytes = 0;
    /// The device's memory.
    std::size_t total_bytes = 0;
};

/// The priorities of a device's streams: numbers from `highest` to `lowest`, which the device may
/// serve in that order. 0 is always among them.
struct StreamPriorities {
    /// The largest number.
    int lowest = 0;
    /// The smallest number.
    int highest = 0;
};

/// Whether a stream is being captured.
struct CaptureState {
    /// Whether it is being captured.
    bool capturing = false;
    /// The number of the capture, which no other capture of the process ever has; 0: none.
    std::uint64_t id = 0;
};

/// A note of an allocator to a backend that watches blocks: a step in the lifetime of a block
/// within its slab.
struct BlockNote {
    /// The step.
    enum class Kind : std::uint8_t {
        /// The block was allocated for work on `stream`.
        allocated,
        /// `stream` uses the block too: the allocator waits for that use after the free.
        used,
        /// The owner freed the block; work submitted to its stream before may still be under way.
        freed,
        /// All uses on other streams, which were under way when the block was freed, have ended.
        reusable,
    };
    /// The step.
    Kind kind = Kind::allocated;
    /// The index of the device.
    int device = 0;
    /// The block's address.
    void* address = nullptr;
    /// The block's size, including rounding.
    std::size_t bytes = 0;
    /// The stream; see Kind.
    StreamHandle stream = nullptr;
};

/// The interface to all devices of one type. See the description of this file for the rules of all
/// functions.
class TENSORPOOL_API Backend {
public:
    Backend() noexcept = default;
    virtual ~Backend();
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;

    // Devices ------------------------------------------------------------------------------------

    /// Returns the type of the devices.
    virtual DeviceType type() const noexcept = 0;
    /// Returns the number of devices, which may be 0. It does not change during the process.
    virtual int device_count() noexcept = 0;
    /// Returns the vendor's name of the device; "" for a device that does not exist.
    virtual std::string device_name(int device) = 0;
    /// Returns the device's abilities; none for a device that does not exist. The call is cheap.
    virtual DeviceAbilities abilities(int device) noexcept = 0;
    /// Stores the device's memory, and the part that no process has allocated, in `info`.
    virtual DeviceStatus memory_info(int device, DeviceMemoryInfo& info) noexcept = 0;
    /// Waits until `memory_info` counts all memory that was freed. Optional; default: returns ok at
    /// once.
    virtual DeviceStatus settle_memory(int device) noexcept;
    /// Waits until all work submitted to all streams of the device is done.
    virtual DeviceStatus synchronize_device(int device) noexcept = 0;

    // Memory -------------------------------------------------------------------------------------

    /// Allocates `bytes` bytes, more than 0, aligned to at least 256, and stores the address in
    /// `memory`. The content is undefined. The call may wait for the device.
    virtual DeviceStatus allocate(int device, std::size_t bytes, StorageKind kind,
                                  void** memory) noexcept = 0;
    /// Frees memory; nullptr is ignored. `bytes` and `kind` are those of its allocation. No work
    /// may use it any more: a backend may or may not wait for work under way.
    virtual DeviceStatus deallocate(int device, void* memory, std::size_t bytes,
                                    StorageKind kind) noexcept = 0;
    /// Allocates `bytes` bytes for work submitted to the stream from now on, and stores the address
    /// in `memory`. Optional; default: not_supported.
    virtual DeviceStatus allocate_async(int device, std::size_t bytes, StreamHandle stream,
                                        void** memory) noexcept;
    /// Frees memory once the work submitted to the stream so far is done. Optional; default:
    /// not_supported.
    virtual DeviceStatus deallocate_async(int device, void* memory, std::size_t bytes,
                                          StreamHandle stream) noexcept;
    /// Sets how many bytes, in use and free, stream-ordered allocation may hold: when a thread
    /// waits for a stream, an event or the device, free memory above that returns to the device.
    /// Initially 0. It applies to the device's default pool, which the whole process uses.
    /// Optional; default: not_supported.
    virtual DeviceStatus set_release_threshold(int device, std::size_t bytes) noexcept;
    /// Gives the free memory of stream-ordered allocation back to the device, without waiting, and
    /// stores its bytes in `given_back`. Optional; default: not_supported.
    virtual DeviceStatus trim_stream_ordered(int device, std::size_t& given_back) noexcept;
    /// Returns the address at which the host can access the memory at this address, which may lie
    /// within an allocation. Returns nullptr unless the memory is unified, shared or managed.
    /// Optional; default: nullptr.
    virtual void* host_pointer(int device, void* memory) noexcept;

    /// Advises how `bytes` bytes of managed memory, more than 0, will be used. `processor` is
    /// ignored by the advices that concern all. Whole pages around the range take the advice and
    /// keep it until it is undone or the memory is freed. Optional; default: not_supported.
    virtual DeviceStatus advise_memory(int device, void* memory, std::size_t bytes,
                                       MemoryAdvice advice, Processor processor) noexcept;
    /// Submits a move of `bytes` bytes of managed memory, more than 0, to a processor's memory to
    /// the stream. Optional; default: not_supported.
    virtual DeviceStatus prefetch_memory(int device, void* memory, std::size_t bytes,
                                         Processor processor, StreamHandle stream) noexcept;

    // Virtual memory -----------------------------------------------------------------------------
    // Addresses and sizes are multiples of `granularity`.

    /// Reserves `bytes` bytes of addresses without memory, a multiple of `granularity`, and stores
    /// the first address in `address`. A backend may accept other multiples of the host's page.
    /// Optional; default: not_supported.
    virtual DeviceStatus reserve_addresses(int device, std::size_t bytes, void** address) noexcept;
    /// Releases all addresses of one `reserve_addresses`, in which nothing may be mapped any more.
    /// Optional; default: not_supported.
    virtual DeviceStatus release_addresses(int device, void* address, std::size_t bytes) noexcept;
    /// Allocates `bytes` bytes of physical memory, a multiple of `granularity`, and stores the
    /// handle in `memory`. Optional; default: not_supported.
    virtual DeviceStatus create_memory(int device, std::size_t bytes,
                                       MemoryHandle* memory) noexcept;
    /// Allocates physical memory like `create_memory`, which `export_memory` accepts. Network cards
    /// and other devices can access it directly (RDMA), if the system supports that. Optional;
    /// default: not_supported.
    virtual DeviceStatus create_exportable_memory(int device, std::size_t bytes,
                                                  MemoryHandle* memory) noexcept;
    /// Stores a new file descriptor in `file` by which any process can open all of the memory. The
    /// caller must close it; an exec closes it too. Optional; default: not_supported.
    virtual DeviceStatus export_memory(int device, MemoryHandle memory, int* file) noexcept;
    /// Opens exported memory of this or another process, which must be of a device of this type,
    /// and stores a handle of its own in `memory`. The memory exists until all of its handles are
    /// destroyed and unmapped. The descriptor stays open. Optional; default: not_supported.
    virtual DeviceStatus import_memory(int device, int file, MemoryHandle* memory) noexcept;
    /// Frees physical memory, which may not be mapped any more. Optional; default: not_supported.
    virtual DeviceStatus destroy_memory(int device, MemoryHandle memory) noexcept;
    /// Maps all of `memory`, readable and writable, at reserved addresses where nothing is mapped.
    /// Optional; default: not_supported.
    virtual DeviceStatus map_memory(int device, void* address, std::size_t bytes,
                                    MemoryHandle memory) noexcept;
    /// Maps memories of `bytes` bytes each in a row: all of them or none. Optional; default: calls
    /// `map_memory` for each.
    virtual DeviceStatus map_memories(int device, void* address, std::size_t bytes,
                                      std::span<const MemoryHandle> memories) noexcept;
    /// Unmaps one or several whole mappings, which no work may use any more. Their memory stays
    /// allocated. Optional; default: not_supported.
    virtual DeviceStatus unmap_memory(int device, void* address, std::size_t bytes) noexcept;

    // Pinned host memory -------------------------------------------------------------------------

    /// Allocates `bytes` bytes of pinned host memory, aligned to at least 256, for all devices of
    /// this type, and stores the address in `memory`.
    virtual DeviceStatus allocate_pinned(int device, std::size_t bytes, void** memory) noexcept = 0;
    /// Frees pinned host memory; nullptr is ignored. `bytes` is the size of its allocation.
    virtual DeviceStatus deallocate_pinned(int device, void* memory,
                                           std::size_t bytes) noexcept = 0;
    /// Pins the caller's host memory until it is unregistered. Optional; default: not_supported.
    virtual DeviceStatus register_pinned(int device, void* memory, std::size_t bytes) noexcept;
    /// Ends the registration of the caller's host memory at the address where it was registered.
    /// Optional; default: not_supported.
    virtual DeviceStatus unregister_pinned(int device, void* memory) noexcept;

    // Streams ------------------------------------------------------------------------------------

    /// Makes a stream of this priority and stores its handle in `stream`. It does not wait for the
    /// default stream implicitly. A priority outside `stream_priorities` is invalid_argument.
    virtual DeviceStatus create_stream(int device, StreamHandle* stream,
                                       int priority = 0) noexcept = 0;
    /// Stores the priorities of the device's streams in `priorities`. Optional; default: only 0.
    virtual DeviceStatus stream_priorities(int device, StreamPriorities& priorities) noexcept;
    /// Destroys a stream. Work submitted to it is still done, possibly after this call has
    /// returned.
    virtual DeviceStatus destroy_stream(int device, StreamHandle stream) noexcept = 0;
    /// Returns whether the backend made this stream and knows when it is destroyed, so that asking
    /// for its progress is safe at any time. Other streams, which the program made by other means,
    /// may be asked for only during a call for them. The default stream is one of the backend's.
    /// Optional; default: true.
    virtual bool owns_stream(int device, StreamHandle stream) noexcept;
    /// Stores a number that no other stream of the process ever has in `id`, even if its handle is
    /// used again. Optional; default: not_supported.
    virtual DeviceStatus stream_id(int device, StreamHandle stream, std::uint64_t* id) noexcept;
    /// Waits until all work submitted to the stream is done.
    virtual DeviceStatus synchronize_stream(int device, StreamHandle stream) noexcept = 0;
    /// Returns ok if all work submitted to the stream is done, otherwise not_ready.
    virtual DeviceStatus query_stream(int device, StreamHandle stream) noexcept = 0;
    /// Makes work submitted to the stream from now on wait for the work that the event stands for
    /// now. An event that was never recorded stands for no work. The event may belong to another
    /// device of this type.
    virtual DeviceStatus wait_event(int device, StreamHandle stream,
                                    EventHandle event) noexcept = 0;
    /// Submits a call of `function` to the stream: it runs on some thread, after all work submitted
    /// before and before all work submitted later. The function must not call the backend.
    virtual DeviceStatus launch_host_function(int device, StreamHandle stream,
                                              void (*function)(void* argument),
                                              void* argument) noexcept = 0;

    // Events -------------------------------------------------------------------------------------

    /// Makes an event and stores its handle in `event`. Returns invalid_argument for an
    /// interprocess event with timing, and not_supported for any interprocess event if the backend
    /// has none.
    virtual DeviceStatus create_event(int device, EventFlags flags,
                                      EventHandle* event) noexcept = 0;
    /// Destroys an event, even while streams wait for it.
    virtual DeviceStatus destroy_event(int device, EventHandle event) noexcept = 0;
    /// Makes the event stand for all work submitted to the stream so far.
    virtual DeviceStatus record_event(int device, EventHandle event,
                                      StreamHandle stream) noexcept = 0;
    /// Returns ok if the work that the event stands for is done, or if there is none, otherwise
    /// not_ready.
    virtual DeviceStatus query_event(int device, EventHandle event) noexcept = 0;
    /// Waits until the work that the event stands for is done.
    virtual DeviceStatus synchronize_event(int device, EventHandle event) noexcept = 0;
    /// Stores the milliseconds from one event to the other in `ms`. Both must have timing and be
    /// recorded (otherwise invalid_argument) and be reached (otherwise not_ready).
    virtual DeviceStatus elapsed_ms(int device, EventHandle from, EventHandle to,
                                    float* ms) noexcept = 0;

    // Copies and fills ---------------------------------------------------------------------------
    /// Copies `bytes` bytes after all work submitted to the default stream so far, and returns when
    /// that is done. It does not wait for streams made by `create_stream`. The ranges must not
    /// overlap; with 0 bytes both addresses may be nullptr.
    virtual DeviceStatus copy(int device, CopyKind kind, void* to, const void* from,
                              std::size_t bytes) noexcept = 0;
    /// Submits a copy of `bytes` bytes to the stream. The ranges must not overlap; with 0 bytes
    /// both addresses may be nullptr.
    ///
    /// Pinned and registered host memory is read and written in the stream's order. All other host
    /// memory is pageable:
    /// - A copy to the device has read pageable memory when the call returns. It may have read it
    ///   before earlier work of the stream has run.
    /// - A copy to pageable memory, or within host memory, is made in the stream's order. It may be
    ///   done when the call returns or later.
    /// - These copies may wait for the stream.
    /// - In a captured stream the call copies nothing. Each launch of the graph reads the source
    /// and
    ///   writes the target, pageable or not.
    ///
    /// The rules are those of CUDA (CUDA Driver API, "API synchronization behavior").
    virtual DeviceStatus copy_async(int device, CopyKind kind, void* to, const void* from,
                                    std::size_t bytes, StreamHandle stream) noexcept = 0;
    /// Sets each of `bytes` bytes of device memory to `byte` after all work submitted to the
    /// default stream so far, and returns when that is done.
    virtual DeviceStatus fill(int device, void* memory, std::uint8_t byte,
                              std::size_t bytes) noexcept = 0;
    /// Submits a fill to the stream: each of `bytes` bytes of device memory is set to `byte`.
    virtual DeviceStatus fill_async(int device, void* memory, std::uint8_t byte, std::size_t bytes,
                                    StreamHandle stream) noexcept = 0;

    // Peers --------------------------------------------------------------------------------------

    /// Returns whether `device` can get access to the memory of `peer`. Optional; default: false.
    virtual bool can_access_peer(int device, int peer) noexcept;
    /// Gives `device` access to the memory of `peer`; a second call is harmless. Returns
    /// not_supported if that is impossible, also because the device has access to as many peers as
    /// it can. Optional; default: not_supported.
    virtual DeviceStatus enable_peer_access(int device, int peer) noexcept;
    /// Submits a copy from the memory of one device to that of another to a stream of `to_device`.
    /// It needs peer access. Optional; default: not_supported.
    virtual DeviceStatus copy_peer_async(int to_device, void* to, int from_device, const void* from,
                                         std::size_t bytes, StreamHandle stream) noexcept;

    // Graph capture ------------------------------------------------------------------------------
    /// Begins to capture the stream: work submitted to it is recorded instead of done, and so is
    /// work submitted to streams that wait for an event recorded in a captured stream. Until the
    /// end of the capture, functions that wait return in_capture on the capturing thread, and so
    /// does `allocate`, if the device cannot allocate during a capture. Optional; default:
    /// not_supported.
    virtual DeviceStatus begin_capture(int device, StreamHandle stream) noexcept;
    /// Ends the capture of the stream and stores the captured work in `graph`. Optional; default:
    /// not_supported.
    virtual DeviceStatus end_capture(int device, StreamHandle stream, GraphHandle* graph) noexcept;
    /// Returns the number of captures that were begun through the backend and have not ended. It
    /// can be read without a call, for as long as the backend exists. Optional; default: always 0.
    virtual const std::atomic<unsigned>& captures_under_way() const noexcept;
    /// Stores in `state` whether the stream is being captured. Optional; default: it is not.
    virtual DeviceStatus capture_state(int device, StreamHandle stream,
                                       CaptureState& state) noexcept;
    /// Submits all captured work of a graph to the stream. Optional; default: not_supported.
    virtual DeviceStatus launch_graph(int device, GraphHandle graph, StreamHandle stream) noexcept;
    /// Destroys a graph. Optional; default: not_supported.
    virtual DeviceStatus destroy_graph(int device, GraphHandle graph) noexcept;

    // The rest -----------------------------------------------------------------------------------

    /// Receives a note about a block from an allocator, if `watches_blocks` is set. Optional;
    /// default: ignores it.
    virtual void note_block(const BlockNote& note) noexcept;
    /// Returns the details of the calling thread's last failed call, as text; "" if there is none.
    virtual std::string last_error() = 0;
};

}  // namespace tensorpool
