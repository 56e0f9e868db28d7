#include <tensorpool/device/shared_block.hpp>

#include <cstring>
#include <system_error>
#include <utility>

#include "device/sharing/shared_block_message.hpp"

namespace tensorpool {
namespace {

using device::SharedBlockMessage;

constexpr std::uint64_t max_shared_bytes = std::uint64_t{1} << 62;

[[noreturn]] void refuse_call(const char* call, DeviceStatus status, const std::string& why) {
    throw DeviceError(status, std::string("tensorpool: shared block: ") + call + ": " + why);
}

[[noreturn]] void refuse_message(const std::string& what, const std::string& found,
                                 const std::string& expected) {
    refuse_call("receive", DeviceStatus::invalid_argument,
                what + ": found " + found + ", expected " + expected);
}

std::string bytes_text(std::uint64_t bytes) {
    return std::to_string(bytes) + " B";
}

Device device_in(const SharedBlockMessage& message) {
    if (std::memchr(message.device.data(), 0, message.device.size()) == nullptr) {
        refuse_message("device", "a text without an end", "the name of a device");
    }
    try {
        return parse_device(message.device.data());
    } catch (const std::invalid_argument& error) {
        refuse_call("receive", DeviceStatus::invalid_argument, error.what());
    }
}

void check(const platform::ReceivedFile& received) {
    if (received.error != 0) {
        refuse_call("receive", DeviceStatus::failed,
                    std::generic_category().message(received.error));
    }
    if (received.bytes == 0) {
        refuse_call("receive", DeviceStatus::failed, "the peer closed the connection");
    }
    if (received.files != 1) {
        refuse_message("descriptors", std::to_string(received.files), "1");
    }
    if (received.bytes != sizeof(SharedBlockMessage) || received.cut) {
        refuse_message("message", (received.cut ? "more than " : "") + bytes_text(received.bytes),
                       bytes_text(sizeof(SharedBlockMessage)));
    }
}

void check(const SharedBlockMessage& message) {
    if (message.magic != SharedBlockMessage::right_magic) {
        refuse_message("message", "one of another kind", "a shared block");
    }
    if (message.version != SharedBlockMessage::right_version) {
        refuse_message("version", std::to_string(message.version),
                       std::to_string(SharedBlockMessage::right_version));
    }
    if (message.bytes == 0 || message.bytes > max_shared_bytes) {
        refuse_message("size", bytes_text(message.bytes), "1 to " + bytes_text(max_shared_bytes));
    }
}

[[noreturn]] void refuse(const SharedBlock& block, DeviceStatus status, const std::string& why) {
    throw DeviceError(status, "tensorpool: open: shared block of " + std::to_string(block.bytes()) +
                                  " B on " + to_string(block.device()) + ": " + why);
}

}  // namespace

void device::check_users(const char* call, const platform::SocketUsers& users) {
    if (!users.known) {
        refuse_call(call, DeviceStatus::not_supported, "the user of the peer is unknown");
    }
    if (users.peer == users.own) return;
    refuse_call(call, DeviceStatus::invalid_argument,
                "the peer's process belongs to user " + std::to_string(users.peer) +
                    ", expected user " + std::to_string(users.own) + " as of this process");
}

SharedBlock::SharedBlock(SharedBlock&& other) noexcept
    : device_(other.device_), bytes_(other.bytes_), file_(std::exchange(other.file_, -1)) {}

SharedBlock::~SharedBlock() {
    platform::close_file(file_);
}

void SharedBlock::send(int socket) const {
    device::check_users("send", platform::users_of_socket(socket));
    SharedBlockMessage message;
    message.bytes = bytes_;
    const std::string name = to_string(device_);
    name.copy(message.device.data(), message.device.size() - 1);
    const int error = platform::send_files(socket, &file_, 1, &message, sizeof message);
    if (error == 0) return;
    refuse_call("send", DeviceStatus::failed, std::generic_category().message(error));
}

SharedBlock SharedBlock::receive(int socket) {
    device::check_users("receive", platform::users_of_socket(socket));
    SharedBlockMessage message;
    const platform::ReceivedFile received =
        platform::receive_file(socket, &message, sizeof message);
    SharedBlock block({}, 0, received.file);  // closes the descriptor if a check fails
    check(received);
    check(message);
    block.device_ = device_in(message);
    block.bytes_ = static_cast<std::size_t>(message.bytes);
    return block;
}

OpenedBlock::OpenedBlock(Backend& backend, int device, const SharedBlock& block)
    : backend_(backend), device_(device), bytes_(block.bytes()) {
    if (block.device().type != backend.type()) {
        refuse(block, DeviceStatus::invalid_argument,
               std::string("found a backend of type ") + to_string(backend.type()) + ", expected " +
                   to_string(block.device().type));
    }
    DeviceStatus status = backend.import_memory(device, block.file(), &memory_);
    if (status == DeviceStatus::ok) {
        status = device::map_anywhere(backend, device, bytes_, memory_, address_);
        if (status == DeviceStatus::ok) return;
    }
    const std::string details = std::string(to_string(status)) + ": " + backend.last_error();
    if (memory_ != nullptr) (void)backend.destroy_memory(device, memory_);
    refuse(block, status, details);
}

OpenedBlock::~OpenedBlock() {
    (void)backend_.unmap_memory(device_, address_, bytes_);
    (void)backend_.destroy_memory(device_, memory_);
    (void)backend_.release_addresses(device_, address_, bytes_);
}

}  // namespace tensorpool
