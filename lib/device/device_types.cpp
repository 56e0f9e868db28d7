#include "device/device_types.hpp"

#include <algorithm>
#include <charconv>

#include <tensorpool/device/device_allocator.hpp>

#include "base/never_destroyed.hpp"

namespace tensorpool::device {
namespace {

constinit base::NeverDestroyed<DeviceTypes> the_types;

bool is_letter(char c) noexcept {
    return c >= 'a' && c <= 'z';
}

bool is_name(std::string_view name) noexcept {
    const auto may_occur = [](char c) {
        return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
    };
    return !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), may_occur);
}

[[noreturn]] void refuse(std::string_view name, const std::string& expected) {
    throw std::invalid_argument("tensorpool: register_device_type: found the name \"" +
                                std::string(name) + "\", expected " + expected);
}

}  // namespace

DeviceTypes& device_types() noexcept {
    return the_types.get();
}

DeviceType DeviceTypes::add(std::string_view name) {
    const std::lock_guard guard(mutex_);
    if (name.size() > max_name_bytes || !is_name(name)) {
        refuse(name, "1 to " + std::to_string(max_name_bytes) +
                         " letters from a to z, digits and underscores, the first a letter");
    }
    if (find(name)) refuse(name, "one that no type has; there are " + list());
    const std::size_t number = count_.load(std::memory_order_relaxed);
    if (number == max_device_types) {
        throw std::length_error("tensorpool: register_device_type: there are " +
                                std::to_string(number) + " device types already");
    }
    std::copy(name.begin(), name.end(), names_[number].begin());
    count_.store(number + 1, std::memory_order_release);
    return static_cast<DeviceType>(number);
}

const char* DeviceTypes::name_of(DeviceType type) const noexcept {
    const auto number = static_cast<std::size_t>(type);
    return number < count_.load(std::memory_order_acquire) ? names_[number].data() : "?";
}

std::optional<DeviceType> DeviceTypes::find(std::string_view name) const noexcept {
    const std::size_t count = count_.load(std::memory_order_acquire);
    for (std::size_t number = 0; number < count; ++number) {
        if (name == names_[number].data()) return static_cast<DeviceType>(number);
    }
    return std::nullopt;
}

std::string DeviceTypes::list() const {
    const std::size_t count = count_.load(std::memory_order_acquire);
    std::string text;
    for (std::size_t number = 0; number < count; ++number) {
        if (number != 0) text += number + 1 == count ? " or " : ", ";
        text += names_[number].data();
    }
    return text;
}

}  // namespace tensorpool::device

namespace tensorpool {

const char* to_string(DeviceType type) noexcept {
    return device::device_types().name_of(type);
}

std::string to_string(Device device) {
    return std::string(to_string(device.type)) + ':' + std::to_string(device.index);
}

Device parse_device(const std::string& text) {
    const std::size_t colon = text.find(':');
    const std::string_view type = std::string_view(text).substr(0, colon);
    if (const std::optional<DeviceType> found = device::device_types().find(type)) {
        Device device = {*found, 0};
        if (colon == std::string::npos) return device;
        const char* const end = text.data() + text.size();
        const char* const digits = text.data() + colon + 1;
        const auto [rest, error] = std::from_chars(digits, end, device.index);
        if (error == std::errc() && rest == end && device.index >= 0) return device;
    }
    throw std::invalid_argument("tensorpool: \"" + text + "\" is not a device: expected " +
                                device::device_types().list() +
                                ", optionally followed by a colon and an index, such as cuda:1");
}

namespace {

DeviceAllocator& allocator_at(void* source) noexcept {
    return *static_cast<DeviceAllocator*>(source);
}

constexpr SourceFunctions allocator_functions = {
    .name = "device allocator",
    .give_back = [](void* source,
                    const HeldBlock& block) { allocator_at(source).deallocate(block.address); },
    .host_pointer =
        [](void* source, const HeldBlock& block) {
            return allocator_at(source).host_pointer(block.address);
        },
    .device = [](void* source) { return allocator_at(source).memory_device(); },
};

}  // namespace

DeviceAllocator::~DeviceAllocator() = default;

HeldBlock DeviceAllocator::hold(std::size_t bytes, StreamHandle stream) {
    void* const block = allocate(bytes, stream);
    if (block == nullptr) return {};
    constexpr std::size_t alignment = 256;
    return {block, bytes, BlockOwner(this, allocator_functions, alignment)};
}

void* DeviceAllocator::try_allocate(std::size_t bytes, StreamHandle stream) noexcept try {
    return allocate(bytes, stream);
} catch (...) {
    return nullptr;
}

void* DeviceAllocator::host_pointer(void* block) const noexcept {
    return device().type == DeviceType::cpu ? block : nullptr;
}

SourceDevice DeviceAllocator::memory_device() const noexcept {
    return device::dlpack_device(device());
}

}  // namespace tensorpool
