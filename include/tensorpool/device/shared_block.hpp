#pragma once

/// @file
/// Blocks of device memory that processes share.

#include <tensorpool/device/backend.hpp>

namespace tensorpool {

/// What a process needs to open a block that another process shares. It owns a file descriptor, and
/// the memory exists at least as long as that is open.
///
/// Made by `CachingAllocator::share`, or by `receive` in the other process. Can be moved, not
/// copied. Different threads may use different objects.
class TENSORPOOL_API SharedBlock {
public:
    /// Takes over the descriptor of exported memory (`Backend::export_memory`) of `bytes` bytes.
    SharedBlock(Device device, std::size_t bytes, int file) noexcept
        : device_(device), bytes_(bytes), file_(file) {}
    /// Takes over the descriptor of `other`.
    SharedBlock(SharedBlock&& other) noexcept;
    SharedBlock& operator=(SharedBlock&&) = delete;
    SharedBlock(const SharedBlock&) = delete;
    SharedBlock& operator=(const SharedBlock&) = delete;
    /// Closes the descriptor. Blocks that were opened keep their memory.
    ~SharedBlock();

    /// Returns the device of the memory, as the process that shares it numbers its devices.
    Device device() const noexcept { return device_; }
    /// Returns the size of the memory in bytes: that of the block, rounded up to whole granules.
    std::size_t bytes() const noexcept { return bytes_; }
    /// Returns the descriptor.
    int file() const noexcept { return file_; }

    /// Sends the block over a connected Unix socket (SOCK_SEQPACKET or SOCK_STREAM) to a process of
    /// the same user.
    ///
    /// Waits if the socket does. Throws DeviceError, and sends nothing, if the effective user of
    /// the peer (SO_PEERCRED) is another, naming both, or if the system fails.
    void send(int socket) const;
    /// Receives a block that a process of the same user sends.
    ///
    /// Waits if the socket does. Throws DeviceError that names what was found and expected, and
    /// closes all descriptors received, for a peer of another user and for any other message.
    static SharedBlock receive(int socket);

private:
    Device device_;
    std::size_t bytes_;
    int file_;
};

/// Memory of another process that was opened in this one. The memory exists until its block was
/// freed and all processes have closed it.
///
/// The order of work of both processes is theirs to arrange. The memory counts as that of the
/// process that shares it, so no statistics of this process include it.
class TENSORPOOL_API OpenedBlock {
public:
    /// Maps the memory on a device of the backend, which must outlive the object. The device must
    /// be the one that `block` names, but may have another number in this process. Throws
    /// DeviceError if it has another type, or if the device fails.
    OpenedBlock(Backend& backend, int device, const SharedBlock& block);
    OpenedBlock(const OpenedBlock&) = delete;
    OpenedBlock& operator=(const OpenedBlock&) = delete;
    /// Closes the memory. No work of this process may use it any more.
    ~OpenedBlock();

    /// Returns the address of the memory on the device.
    void* data() const noexcept { return address_; }
    /// Returns the size of the memory in bytes.
    std::size_t bytes() const noexcept { return bytes_; }
    /// Returns the device on which the memory was mapped.
    Device device() const noexcept { return {backend_.type(), device_}; }

private:
    Backend& backend_;
    int device_;
    std::size_t bytes_;
    MemoryHandle memory_ = nullptr;
    void* address_ = nullptr;
};

}  // namespace tensorpool
