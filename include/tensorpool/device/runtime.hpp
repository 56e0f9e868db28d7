#pragma once

/// @file
/// All that a program needs of one device: its allocators, copies, and objects of the program's
/// own.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/caching_allocator.hpp>
#include <tensorpool/device/device.hpp>
#include <tensorpool/device/device_allocator.hpp>
#include <tensorpool/device/device_memory.hpp>
#include <tensorpool/device/runtime_options.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

namespace device {
class ObjectTable;
}

/// Any thread may call anything at any time; only the destructor wants to be alone. Nothing of a
/// thread changes by it save by `activate`. Memory, streams and events of a runtime may outlive it:
/// its allocators and its backend go with the last of them.
///
/// Programs get theirs by `get_runtime` (runtimes.hpp), one a device; tests make their own.
///
/// Functions with a stream give it work and do not wait; those without return when it is done, and
/// do not wait for streams. Host memory that is not pinned may be copied before they return. All
/// throw DeviceError where the device fails.
class TENSORPOOL_API Runtime {
public:
    /// For the backend's device of this index; `device.type` need not be the backend's. Throws
    /// std::invalid_argument, naming what was found, for a device that is not there or no backend.
    Runtime(std::shared_ptr<Backend> backend, Device device, const RuntimeOptions& options = {});
    /// Waits for the device, then destroys the program's objects, those made last first.
    ~Runtime();
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    Device device() const noexcept;
    Backend& backend() const noexcept;
    /// What the device is called, and what it can do and has.
    std::string name() const;
    DeviceAbilities abilities() const noexcept;
    DeviceMemoryInfo memory_info() const;

    /// The stream that is there without being made: nullptr.
    StreamHandle default_stream() const noexcept { return nullptr; }
    /// Makes its device the calling thread's current one. Only for runtimes of `get_runtime`:
    /// throws std::invalid_argument for another.
    void activate() const;
    /// Waits until all that was given to this stream is done. Other streams are not waited for.
    void synchronize_stream(StreamHandle stream) const;
    /// Waits until all that was given to all streams of the device is done.
    void synchronize_device() const;
    /// Waits for the default stream.
    void synchronize() const { synchronize_stream(default_stream()); }

    // Memory -------------------------------------------------------------------------------------

    /// Of the device: a CachingAllocator; of the CPU, the host allocator.
    DeviceAllocator& allocator() const;
    /// The same, with what only it has; nullptr of the CPU.
    CachingAllocator* caching_allocator() const noexcept;
    /// Of pinned host memory, for copies to and from this device. Made at the first call.
    DeviceAllocator& pinned_allocator() const;
    /// Of ordinary host memory, kept until streams of this device are done with it. Made at the
    /// first call.
    DeviceAllocator& host_allocator() const;

    /// Throw as DeviceAllocator::allocate.
    DeviceMemory allocate(std::size_t bytes, StreamHandle stream = nullptr);
    DeviceMemory allocate_pinned(std::size_t bytes, StreamHandle stream = nullptr);
    DeviceMemory allocate_host(std::size_t bytes, StreamHandle stream = nullptr);
    /// Gives back what is free of all its allocators; bytes given back. Waits for no device.
    std::size_t trim() noexcept;

    // Copies and fills ---------------------------------------------------------------------------

    void copy_host_to_device(void* to, const void* from, std::size_t bytes) const;
    void copy_host_to_device(void* to, const void* from, std::size_t bytes,
                             StreamHandle stream) const;
    void copy_device_to_host(void* to, const void* from, std::size_t bytes) const;
    void copy_device_to_host(void* to, const void* from, std::size_t bytes,
                             StreamHandle stream) const;
    /// Both on this device.
    void copy_device_to_device(void* to, const void* from, std::size_t bytes) const;
    void copy_device_to_device(void* to, const void* from, std::size_t bytes,
                               StreamHandle stream) const;
    void copy_host_to_host(void* to, const void* from, std::size_t bytes) const;
    void copy_host_to_host(void* to, const void* from, std::size_t bytes,
                           StreamHandle stream) const;
    /// Sets each byte of device memory.
    void fill(void* memory, std::uint8_t byte, std::size_t bytes) const;
    void fill(void* memory, std::uint8_t byte, std::size_t bytes, StreamHandle stream) const;

    // Objects of the program's own ---------------------------------------------------------------
    // Such as an operator library's handle: one of each type, which lives as long as the runtime.

    /// The T of this device. The first call makes it, by T(Runtime&) or else T(); one thread does,
    /// others wait. Its constructor may ask for objects of other types, which are then destroyed
    /// after it; what it throws comes out here and leaves no T. Throws std::logic_error where a T
    /// asks for itself while it is made.
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
    /// The same, but made by `factory(Runtime&)`, which returns a std::unique_ptr<T>. Throws
    /// std::logic_error where that is empty.
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

    /// How to make an object, and how to end it.
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
