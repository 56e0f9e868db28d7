#include <tensorpool/device/shared_block.hpp>

#include <string>

#include <tensorpool/device/device_status.hpp>

#include "device/sharing/mapped_memory.hpp"

namespace tensorpool {
namespace {

[[noreturn]] void refuse(const SharedBlock& block, DeviceStatus status, const std::string& why) {
    throw DeviceError(status, "tensorpool: open: shared block of " + std::to_string(block.bytes()) +
                                  " B on " + to_string(block.device()) + ": " + why);
}

}  // namespace

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
