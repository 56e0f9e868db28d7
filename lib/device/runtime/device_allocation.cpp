#include <tensorpool/device/device_allocation.hpp>

#include <tensorpool/device/runtimes.hpp>

#include "base/alignment.hpp"
#include "device/runtime/runtime_core.hpp"

namespace tensorpool {
namespace {

void check_range(const DeviceAllocation& memory, const char* call, std::size_t offset,
                 std::size_t bytes) {
    if (offset <= memory.size() && bytes <= memory.size() - offset) [[likely]]
        return;
    throw std::out_of_range(std::string("tensorpool: ") + call + ": " + std::to_string(bytes) +
                            " bytes at offset " + std::to_string(offset) + " exceed the " +
                            std::to_string(memory.size()) + " bytes on " +
                            to_string(memory.device()));
}

std::size_t bytes_by_type(const MemoryShape& shape) {
    const std::uint64_t bytes = shape.type.block_bytes();
    if (shape.element_bytes != 0 &&
        (shape.type.block_elements() != 1 || shape.element_bytes != bytes)) {
        throw std::invalid_argument("tensorpool: a shape has elements of " +
                                    std::to_string(shape.element_bytes) + " bytes and of type " +
                                    to_string(shape.type) + ", expected 0 or the type's size");
    }
    return static_cast<std::size_t>(
        tensor_bytes(shape.type, std::span<const std::int64_t>(shape.extents)));
}

}  // namespace

std::size_t bytes_of(const MemoryShape& shape) {
    if (shape.type != DataType{}) return bytes_by_type(shape);
    if (shape.element_bytes == 0) {
        throw std::invalid_argument(
            "tensorpool: a shape has elements of 0 bytes, expected 1 or more");
    }
    std::size_t bytes = shape.element_bytes;
    bool fits = true;
    for (const std::int64_t extent : shape.extents) {
        if (extent < 0) {
            throw std::invalid_argument("tensorpool: a shape has the extent " +
                                        std::to_string(extent) + ", expected 0 or more");
        }
        if (extent == 0) return 0;
        fits = fits && base::multiply(bytes, static_cast<std::size_t>(extent), bytes);
    }
    if (!fits) {
        throw std::invalid_argument(
            "tensorpool: a shape needs more bytes than a program can address");
    }
    return bytes;
}

void device::check_shape(const MemoryShape& shape, std::size_t bytes) {
    if (shape == MemoryShape{}) return;
    const std::size_t needed = bytes_of(shape);
    if (needed <= bytes) return;
    throw std::invalid_argument("tensorpool: a shape needs " + std::to_string(needed) +
                                " bytes, expected at most the " + std::to_string(bytes) +
                                " of the memory");
}

const char* to_string(MemoryKind kind) noexcept {
    return device::text_of({"device", "pinned", "host"}, kind);
}

DeviceAllocation::DeviceAllocation() noexcept = default;

DeviceAllocation::DeviceAllocation(std::size_t bytes, std::optional<StreamHandle> stream)
    : DeviceAllocation(runtime(), bytes, stream) {}

DeviceAllocation::DeviceAllocation(Runtime& runtime, std::size_t bytes,
                                   std::optional<StreamHandle> stream, MemoryKind kind)
    : core_(runtime.core_),
      stream_(core_->stream_or_current(stream)),
      data_(core_->allocator(kind).allocate(bytes, stream_)),
      bytes_(bytes),
      kind_(kind) {
    if (kind != MemoryKind::pinned || stream_ != nullptr) return;
    try {
        (void)stream_for_work();
    } catch (...) {
        reset();
        throw;
    }
}

DeviceAllocation::~DeviceAllocation() {
    reset();
}

DeviceAllocation::DeviceAllocation(DeviceAllocation&& other) noexcept {
    swap(other);
}

DeviceAllocation& DeviceAllocation::operator=(DeviceAllocation&& other) noexcept {
    DeviceAllocation moved(std::move(other));
    swap(moved);
    return *this;
}

void DeviceAllocation::swap(DeviceAllocation& other) noexcept {
    std::swap(core_, other.core_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(stream_, other.stream_);
    std::swap(kind_, other.kind_);
    std::swap(shape_, other.shape_);
}

void DeviceAllocation::reset() noexcept {
    // The allocator was created before this memory was allocated, so this call does not create it.
    if (data_ != nullptr && core_->is_ours()) core_->allocator(kind_).deallocate(data_);
    data_ = nullptr;
    bytes_ = 0;
    shape_ = {};
    stream_ = nullptr;
    kind_ = MemoryKind::device;
    core_.reset();
}

Device DeviceAllocation::device() const noexcept {
    return core_ != nullptr ? core_->device() : Device{};
}

StreamHandle DeviceAllocation::stream() const noexcept {
    if (stream_ == nullptr || data_ == nullptr || !core_->is_ours()) return stream_;
    return core_->allocator(kind_).is_used_on(data_, stream_) ? stream_ : nullptr;
}

// A pinned block allocated with nullptr belongs to no stream until record_use names one.
StreamHandle DeviceAllocation::stream_for_work() const {
    const StreamHandle now = stream();
    if (kind_ == MemoryKind::pinned && now == nullptr && data_ != nullptr) {
        core_->allocator(kind_).record_use(data_, nullptr);
    }
    return now;
}

void* DeviceAllocation::host_pointer() const noexcept {
    if (data_ == nullptr || core_->is_host_memory(kind_)) return data_;
    return core_->backend().host_pointer(core_->index(), data_);
}

void DeviceAllocation::set(std::size_t offset, std::span<const std::byte> bytes) {
    check_range(*this, "set", offset, bytes.size());
    if (bytes.empty()) return;
    const CopyKind kind =
        core_->is_host_memory(kind_) ? CopyKind::host_to_host : CopyKind::host_to_device;
    core_->wait_and_copy(kind, static_cast<std::byte*>(data_) + offset, bytes.data(), bytes.size(),
                         stream());
}

void DeviceAllocation::get(std::size_t offset, std::span<std::byte> bytes) const {
    check_range(*this, "get", offset, bytes.size());
    if (bytes.empty()) return;
    const CopyKind kind =
        core_->is_host_memory(kind_) ? CopyKind::host_to_host : CopyKind::device_to_host;
    core_->wait_and_copy(kind, bytes.data(), static_cast<std::byte*>(data_) + offset, bytes.size(),
                         stream());
}

void DeviceAllocation::fill(std::uint8_t byte) {
    if (bytes_ != 0) device::fill({*core_, data_, kind_, stream_for_work()}, byte, bytes_);
}

void DeviceAllocation::copy_from(const DeviceAllocation& other) {
    if (other.bytes_ != bytes_) {
        throw std::invalid_argument("tensorpool: copy_from: the source has " +
                                    std::to_string(other.bytes_) + " bytes, expected the " +
                                    std::to_string(bytes_) + " of the destination");
    }
    if (bytes_ == 0 || this == &other) return;
    device::copy_between({*core_, data_, kind_, stream_for_work()},
                         {*other.core_, other.data_, other.kind_, other.stream_for_work()}, bytes_);
}

void DeviceAllocation::record_use(StreamHandle stream) {
    if (data_ != nullptr) core_->allocator(kind_).record_use(data_, stream);
}

void DeviceAllocation::set_shape(MemoryShape shape) {
    device::check_shape(shape, bytes_);
    shape_ = std::move(shape);
}

}  // namespace tensorpool
