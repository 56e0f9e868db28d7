#pragma once

/// @file
/// What the runtime and its allocators need of a kind of device: one table of functions.
///
/// A backend implements it for all devices of its type. Functions without "optional" must be there;
/// an optional one has a default, which its comment states. Rules for all:
///  - `device` is an index from 0 to `device_count() - 1`; anything else is `invalid_argument`.
///  - Sizes are bytes. A call that fails changes nothing; `last_error` tells more.
///  - Any thread may call any function at any time, and nothing of a thread (a current device)
///    changes by it. Work given to one stream runs in the order in which it was given.
///  - A stream of nullptr is the device's default stream, which is there without being made.
///  - None of them throws.
///
/// The tests in `tests/contracts` hold for every backend.

#include <cstddef>
#include <cstdint>
#include <string>

#include <tensorpool/device/device.hpp>
#include <tensorpool/device/device_status.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

/// What a backend hands out; what is behind them is the backend's business.
using StreamHandle = struct BackendStream*;
using EventHandle = struct BackendEvent*;
using MemoryHandle = struct BackendMemory*;  ///< physical memory, to be mapped
using GraphHandle = struct BackendGraph*;    ///< captured work

/// Who may touch memory of a device.
enum class StorageKind : std::uint8_t {
    private_storage,  ///< the device only
    shared,           ///< the device, and the host at `host_pointer`
    managed,          ///< both, at one address; pages move by themselves
};

enum class CopyKind : std::uint8_t {
    host_to_host,
    host_to_device,
    device_to_host,
    device_to_device
};
/// "host to device" and so on.
TENSORPOOL_API const char* to_string(CopyKind kind) noexcept;

/// Whether an event keeps the time at which it was reached, for `elapsed_ms`.
enum class EventTiming : bool { off, on };

/// What a device can do. Sizes are bytes.
struct DeviceAbilities {
    bool unified_memory = false;  ///< host and device use the same memory: `private_storage` has a
                                  ///< host pointer too
    bool shared_storage = false;
    bool managed_storage = false;
    bool virtual_memory = false;             ///< the functions of "Virtual memory" are there
    bool stream_ordered_allocation = false;  ///< `allocate_async` and `deallocate_async`
    bool graph_capture = false;
    /// `memory_info` may not yet count what was given back; `settle_memory` waits for it.
    bool late_free_size = false;
    /// Wants `note_block`: then allocators tell it of every block, and are slower.
    bool watches_blocks = false;
    std::size_t largest_allocation = 0;  ///< of one `allocate`; 0: as much as there is
    std::size_t granularity = 0;         ///< of virtual memory: a power of two; 0 without it
    /// Up to which a program does well to hold memory; 0: the total.
    std::size_t recommended_bytes = 0;
};

struct DeviceMemoryInfo {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
};

struct CaptureState {
    bool capturing = false;
    std::uint64_t id = 0;  ///< unlike that of any other capture of the process; 0: none
};

/// What an allocator tells a backend that watches: the life of a block within its slab.
struct BlockNote {
    enum class Kind : std::uint8_t {
        allocated,  ///< for work on `stream`
        used,       ///< `stream` uses it too: the allocator waits for that after the free
        freed,      ///< by its owner; work given to its stream before may still be under way
        reusable,   ///< after a `freed` with uses on other streams: all of those have passed
    };
    Kind kind = Kind::allocated;
    int device = 0;
    void* address = nullptr;
    std::size_t bytes = 0;  ///< of the block, rounding included
    StreamHandle stream = nullptr;
};

class TENSORPOOL_API Backend {
public:
    Backend() noexcept = default;
    virtual ~Backend();
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;

    // Devices ------------------------------------------------------------------------------------

    virtual DeviceType type() const noexcept = 0;
    /// 0 where there are none. Does not change while the process lives.
    virtual int device_count() noexcept = 0;
    /// As its maker calls it; "" for a device that is not there.
    virtual std::string device_name(int device) = 0;
    /// Nothing at all for a device that is not there. Cheap.
    virtual DeviceAbilities abilities(int device) noexcept = 0;
    /// What the device has, and what no process has taken.
    virtual DeviceStatus memory_info(int device, DeviceMemoryInfo& info) noexcept = 0;
    /// Optional; default: ok, at once. Waits until `memory_info` counts all that was given back.
    virtual DeviceStatus settle_memory(int device) noexcept;
    /// Waits until all that was given to all streams of the device is done.
    virtual DeviceStatus synchronize_device(int device) noexcept = 0;

    // Memory -------------------------------------------------------------------------------------

    /// `bytes` above 0 of memory, aligned to 256 at least, of any content. May wait for the device.
    virtual DeviceStatus allocate(int device, std::size_t bytes, StorageKind kind,
                                  void** memory) noexcept = 0;
    /// With the bytes and the kind it was made with. Nothing may use it any more: a backend may or
    /// may not wait for work under way.
    virtual DeviceStatus deallocate(int device, void* memory, std::size_t bytes,
                                    StorageKind kind) noexcept = 0;
    /// Optional; default: not_supported. Memory for work given to the stream from now on.
    virtual DeviceStatus allocate_async(int device, std::size_t bytes, StreamHandle stream,
                                        void** memory) noexcept;
    /// Optional; default: not_supported. Goes when work given to the stream so far is done.
    virtual DeviceStatus deallocate_async(int device, void* memory, std::size_t bytes,
                                          StreamHandle stream) noexcept;
    /// Optional; default: nullptr. Where the host finds the memory at this address (which may lie
    /// within an allocation), of unified memory or of shared or managed storage; nullptr otherwise.
    virtual void* host_pointer(int device, void* memory) noexcept;

    // Virtual memory -----------------------------------------------------------------------------
    // Optional, all of it; default: not_supported. Addresses and sizes are multiples of
    // `granularity`.

    /// Addresses that lead nowhere yet.
    virtual DeviceStatus reserve_addresses(int device, std::size_t bytes, void** address) noexcept;
    /// All of what one `reserve_addresses` gave; nothing is mapped there any more.
    virtual DeviceStatus release_addresses(int device, void* address, std::size_t bytes) noexcept;
    virtual DeviceStatus create_memory(int device, std::size_t bytes,
                                       MemoryHandle* memory) noexcept;
    /// It is mapped nowhere any more.
    virtual DeviceStatus destroy_memory(int device, MemoryHandle memory) noexcept;
    /// All of it, readable and writable, at an address within what was reserved and is not mapped.
    virtual DeviceStatus map_memory(int device, void* address, std::size_t bytes,
                                    MemoryHandle memory) noexcept;
    /// One or several whole mappings. Nothing may use them any more; their memory stays.
    virtual DeviceStatus unmap_memory(int device, void* address, std::size_t bytes) noexcept;

    // Pinned host memory -------------------------------------------------------------------------

    /// Host memory whose pages stay where they are, aligned to 4096. For all devices of this type.
    virtual DeviceStatus allocate_pinned(int device, std::size_t bytes, void** memory) noexcept = 0;
    virtual DeviceStatus deallocate_pinned(int device, void* memory,
                                           std::size_t bytes) noexcept = 0;
    /// Optional; default: not_supported. Pins memory of the caller's until it is unregistered.
    virtual DeviceStatus register_pinned(int device, void* memory, std::size_t bytes) noexcept;
    /// Optional, as that. At the address where it was registered.
    virtual DeviceStatus unregister_pinned(int device, void* memory) noexcept;

    // Streams ------------------------------------------------------------------------------------

    /// One that does not wait for the default stream by itself.
    virtual DeviceStatus create_stream(int device, StreamHandle* stream) noexcept = 0;
    /// Work given to it is still done, and may go on after this returned.
    virtual DeviceStatus destroy_stream(int device, StreamHandle stream) noexcept = 0;
    virtual DeviceStatus synchronize_stream(int device, StreamHandle stream) noexcept = 0;
    /// ok when all that was given to it is done, otherwise not_ready.
    virtual DeviceStatus query_stream(int device, StreamHandle stream) noexcept = 0;
    /// Work given to the stream from now on runs after what the event stands for now. An event that
    /// was never recorded stands for nothing. It may be one of another device of this type.
    virtual DeviceStatus wait_event(int device, StreamHandle stream,
                                    EventHandle event) noexcept = 0;
    /// Calls the function on some thread after all that was given to the stream before, and before
    /// all that is given to it later. The function may not call the backend.
    virtual DeviceStatus launch_host_function(int device, StreamHandle stream,
                                              void (*function)(void* argument),
                                              void* argument) noexcept = 0;

    // Events -------------------------------------------------------------------------------------

    virtual DeviceStatus create_event(int device, EventTiming timing,
                                      EventHandle* event) noexcept = 0;
    /// Also while streams wait for it.
    virtual DeviceStatus destroy_event(int device, EventHandle event) noexcept = 0;
    /// From now on it stands for all that was given to the stream so far.
    virtual DeviceStatus record_event(int device, EventHandle event,
                                      StreamHandle stream) noexcept = 0;
    /// ok when what it stands for is done, or nothing, otherwise not_ready.
    virtual DeviceStatus query_event(int device, EventHandle event) noexcept = 0;
    virtual DeviceStatus synchronize_event(int device, EventHandle event) noexcept = 0;
    /// Milliseconds from the one to the other: both made with timing, recorded (otherwise
    /// invalid_argument) and reached (otherwise not_ready).
    virtual DeviceStatus elapsed_ms(int device, EventHandle from, EventHandle to,
                                    float* ms) noexcept = 0;

    // Copies and fills ---------------------------------------------------------------------------
    // 0 bytes are copied at once, from and to nullptr too. Ranges do not overlap.

    /// Done when it returns. Other streams' work is not waited for.
    virtual DeviceStatus copy(int device, CopyKind kind, void* to, const void* from,
                              std::size_t bytes) noexcept = 0;
    /// In the stream's order. Host memory that is not pinned may have been read, or the copy even
    /// made, before it returns.
    virtual DeviceStatus copy_async(int device, CopyKind kind, void* to, const void* from,
                                    std::size_t bytes, StreamHandle stream) noexcept = 0;
    /// Sets each byte. Done when it returns.
    virtual DeviceStatus fill(int device, void* memory, std::uint8_t byte,
                              std::size_t bytes) noexcept = 0;
    virtual DeviceStatus fill_async(int device, void* memory, std::uint8_t byte, std::size_t bytes,
                                    StreamHandle stream) noexcept = 0;

    // Peers --------------------------------------------------------------------------------------

    /// Optional; default: false. Whether `device` can be given access to memory of `peer`.
    virtual bool can_access_peer(int device, int peer) noexcept;
    /// Optional; default: not_supported. Gives it; twice is harmless.
    virtual DeviceStatus enable_peer_access(int device, int peer) noexcept;
    /// Optional; default: not_supported. From memory of one device to that of another, in the order
    /// of a stream of `to_device`. Needs peer access.
    virtual DeviceStatus copy_peer_async(int to_device, void* to, int from_device, const void* from,
                                         std::size_t bytes, StreamHandle stream) noexcept;

    // Graph capture ------------------------------------------------------------------------------
    // Optional, all of it; default: nothing is ever captured, not_supported.

    /// What is given to the stream from now on is kept, not done, and so is what is given to
    /// streams that wait for an event recorded in one that is captured. Meanwhile whatever waits,
    /// and `allocate`, is in_capture on the capturing thread.
    virtual DeviceStatus begin_capture(int device, StreamHandle stream) noexcept;
    virtual DeviceStatus end_capture(int device, StreamHandle stream, GraphHandle* graph) noexcept;
    virtual DeviceStatus capture_state(int device, StreamHandle stream,
                                       CaptureState& state) noexcept;
    /// Does all of what was kept, in the stream's order.
    virtual DeviceStatus launch_graph(int device, GraphHandle graph, StreamHandle stream) noexcept;
    virtual DeviceStatus destroy_graph(int device, GraphHandle graph) noexcept;

    // The rest -----------------------------------------------------------------------------------

    /// Optional; default: nothing. Called by allocators where `watches_blocks` says so.
    virtual void note_block(const BlockNote& note) noexcept;
    /// What the calling thread's last call that failed here came to, in words; "" before any.
    virtual std::string last_error() = 0;
};

}  // namespace tensorpool
