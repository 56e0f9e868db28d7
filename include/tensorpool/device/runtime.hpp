#pragma once

/// @file
/// The runtime of a device: its allocators, copies, and objects of the program's own.

#include <typeinfo>
#include <utility>

#include <tensorpool/device/caching_allocator.hpp>
#include <tensorpool/device/device_allocation.hpp>
#include <tensorpool/device/runtime_options.hpp>

namespace tensorpool {

namespace device {
class ObjectTable;
}
class DeviceStream;

/// Everything that a program needs of one device.
///
/// Any thread may call any function at any time; only the destructor must not run concurrently with
/// other calls. Only `activate` changes the state of a thread. Memory, streams and events of a
/// runtime may outlive it: its allocators and its backend are destroyed with the last of them.
///
/// Programs get runtimes by `get_runtime` (runtimes.hpp), one for each device. Tests may make their
/// own.
///
/// Functions with a stream submit work to it; those that copy pageable host memory, which is not
/// pinned, may wait for the stream. A copy to the device has read pageable memory when the call
/// returns. Functions without a stream use the calling thread's current stream
/// (current_stream.hpp), initially the default stream: memory is allocated for its work, and copies
/// and fills run after the work submitted to it and to the default stream so far, and return when
/// they are done. Backend::copy_async states the rules. All functions throw
/// DeviceError if the device fails.
class TENSORPOOL_API Runtime {
public:
    /// Makes a runtime for the backend's device with this index; `device.type` may differ from the
    /// backend's. Throws std::invalid_argument, naming what was found, for a device that does not
    /// exist and for a null backend.
    Runtime(std::shared_ptr<Backend> backend, Device device, const RuntimeOptions& options = {});
    /// Waits for the device, then destroys the program's objects, the newest first.
    ~Runtime();
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    /// Returns the runtime's device.
    Device device() const noexcept;
    /// Returns the runtime's backend.
    Backend& backend() const noexcept;
    /// Returns the vendor's name of the device.
    std::string name() const;
    /// Returns the device's abilities.
    DeviceAbilities abilities() const noexcept;
    /// Returns the device's memory, and the part that no process has allocated.
    DeviceMemoryInfo memory_info() const;

    /// Returns the default stream, nullptr, which always exists.
    StreamHandle default_stream() const noexcept { return nullptr; }
    /// Returns the priorities of the device's streams, for DeviceStream and RuntimeOptions.
    StreamPriorities stream_priorities() const;
    /// Returns the runtime's own stream. The first call makes it, with the priority of the options.
    /// It lives as long as the runtime.
    DeviceStream& stream();
    /// Returns the calling thread's current stream of this device; nullptr, the default stream,
    /// outside every CurrentStreamScope.
    StreamHandle current_stream() const noexcept;
    /// Makes the runtime's device the calling thread's current device. Throws std::invalid_argument
    /// for a runtime that is not from `get_runtime`.
    void activate() const;
    /// Waits until all work submitted to this stream is done. It does not wait for other streams.
    void synchronize_stream(StreamHandle stream) const;
    /// Waits until all work submitted to all streams of the device is done.
    void synchronize_device() const;
    /// Waits until all work submitted to the current stream is done.
    void synchronize() const { synchronize_stream(current_stream()); }

    // Memory -------------------------------------------------------------------------------------

    /// Returns the allocator of device memory: a CachingAllocator, or a StreamOrderedAllocator if
    /// the options say so; for the CPU, the host allocator.
    DeviceAllocator& allocator() const;
    /// Returns the allocator of device memory as a CachingAllocator; nullptr if it is none.
    CachingAllocator* caching_allocator() const noexcept;
    /// Returns the allocator of pinned host memory for copies to and from this device. The first
    /// call makes it.
    DeviceAllocator& pinned_allocator() const;
    /// Returns the allocator of ordinary host memory, which reuses a block only after the device's
    /// streams are done with it. The first call makes it.
    DeviceAllocator& host_allocator() const;

    /// Allocates `bytes` bytes of the device for work on `stream`; the handle owns nothing for 0.
    /// Throws DeviceAllocationError if the memory is unavailable.
    DeviceAllocation allocate(std::size_t bytes, std::optional<StreamHandle> stream = {});
    /// Allocates `bytes` bytes of pinned host memory for work on `stream`; the handle owns nothing
    /// for 0. Throws DeviceAllocationError if the memory is unavailable.
    DeviceAllocation allocate_pinned(std::size_t bytes, std::optional<StreamHandle> stream = {});
    /// Allocates `bytes` bytes of ordinary host memory for work on `stream`; the handle owns
    /// nothing for 0. Throws DeviceAllocationError if the memory is unavailable.
    DeviceAllocation allocate_host(std::size_t bytes, std::optional<StreamHandle> stream = {});
    /// Gives back the free memory of all its allocators, without waiting for the device. Returns
    /// the number of bytes given back.
    std::size_t trim() noexcept;

    /// Advises how `bytes` bytes of managed memory will be used, by this device or the host. It
    /// concerns whole pages and stays when the block is freed, so it suits large blocks that live
    /// long. Memory is managed if RuntimeOptions::caching says so.
    void advise(void* memory, std::size_t bytes, MemoryAdvice advice,
                Processor processor = Processor::device) const;
    /// Submits a move of `bytes` bytes of managed memory to this device's or the host's memory to
    /// the stream, by default the current stream.
    void prefetch(void* memory, std::size_t bytes, Processor processor = Processor::device,
                  std::optional<StreamHandle> stream = {}) const;

    // Copies and fills ---------------------------------------------------------------------------

    /// Copies `bytes` bytes from host memory to this device, and returns when that is done.
    void copy_host_to_device(void* to, const void* from, std::size_t bytes) const;
    /// Submits a copy of `bytes` bytes from host memory to this device to the stream.
    void copy_host_to_device(void* to, const void* from, std::size_t bytes,
                             StreamHandle stream) const;
    /// Copies `bytes` bytes from this device to host memory, and returns when that is done.
    void copy_device_to_host(void* to, const void* from, std::size_t bytes) const;
    /// Submits a copy of `bytes` bytes from this device to host memory to the stream.
    void copy_device_to_host(void* to, const void* from, std::size_t bytes,
                             StreamHandle stream) const;
    /// Copies `bytes` bytes within the memory of this device, and returns when that is done.
    void copy_device_to_device(void* to, const void* from, std::size_t bytes) const;
    /// Submits a copy of `bytes` bytes within the memory of this device to the stream.
    void copy_device_to_device(void* to, const void* from, std::size_t bytes,
                               StreamHandle stream) const;
    /// Copies `bytes` bytes within host memory, and returns when that is done.
    void copy_host_to_host(void* to, const void* from, std::size_t bytes) const;
    /// Submits a copy of `bytes` bytes within host memory to the stream.
    void copy_host_to_host(void* to, const void* from, std::size_t bytes,
                           StreamHandle stream) const;
    /// Sets each of `bytes` bytes of device memory to `byte`, and returns when that is done.
    void fill(void* memory, std::uint8_t byte, std::size_t bytes) const;
    /// Submits a fill to the stream: each of `bytes` bytes of device memory is set to `byte`.
    void fill(void* memory, std::uint8_t byte, std::size_t bytes, StreamHandle stream) const;

    // Objects of the program's own ---------------------------------------------------------------

    /// Returns the program's object of type T for this device, such as an operator library's
    /// handle. It lives as long as the runtime.
    ///
    /// The first call makes it, by T(Runtime&) or otherwise T(), on one thread while others wait.
    /// Its constructor may call `object` for other types, which are then destroyed after it. An
    /// exception of the constructor leaves the function, and no T is stored. Throws
    /// std::logic_error if the constructor of T calls `object<T>`.
    template <class T>
    T& object() {
        return object<T>([](Runtime& runtime) {
            if constexpr (std::is_constructible_v<T, Runtime&>) {
                return std::make_unique<T>(runtime);
            } else {
                return std::make_unique<T>();
            }
        });
    }
    /// Returns the program's object of type T for this device. The first call makes it by
    /// `factory(Runtime&)`, which returns a std::unique_ptr<T>, on one thread while others wait.
    ///
    /// The factory may call `object` for other types, which are then destroyed after the T. An
    /// exception of the factory leaves the function, and no T is stored. Throws std::logic_error if
    /// the factory returns an empty pointer or calls `object<T>`.
    template <class T, class Factory>
    T& object(Factory&& factory) {
        if (void* const made = find_object(typeid(T))) return *static_cast<T*>(made);
        using Stored = std::remove_reference_t<Factory>;
        const auto make = [](Runtime& runtime, void* stored) -> void* {
            return std::unique_ptr<T>((*static_cast<Stored*>(stored))(runtime)).release();
        };
        const auto destroy = [](void* object) noexcept { delete static_cast<T*>(object); };
        void* const stored = const_cast<std::remove_const_t<Stored>*>(std::addressof(factory));
        return *static_cast<T*>(make_object({&typeid(T), make, stored, destroy}));
    }

private:
    friend class DeviceStream;
    friend class DeviceEvent;
    friend class DeviceAllocation;
    friend class CurrentStreamScope;

    /// The functions that make and destroy an object.
    struct ObjectRecipe {
        const std::type_info* type;
        void* (*make)(Runtime& runtime, void* factory);
        void* factory;
        void (*destroy)(void* object) noexcept;
    };
    friend class device::ObjectTable;

    void* find_object(const std::type_info& type) const noexcept;
    void* make_object(const ObjectRecipe& recipe);

    std::shared_ptr<device::RuntimeCore> core_;
    std::unique_ptr<device::ObjectTable> objects_;
};

}  // namespace tensorpool
