// The parts of handles that are not inline: blocks of other sources than pools, and blocks of pools
// with large alignments.

#include <tensorpool/pooled_allocation.hpp>

#include <stdexcept>
#include <string>

namespace tensorpool {

void PooledAllocation::give_back() noexcept {
    const BlockOwner& owner = block_.owner;
    if (owner.is_pool()) {
        static_cast<MemoryPool*>(owner.pool())
            ->deallocate(block_.address, block_.bytes, owner.alignment());
    } else {
        owner.functions().give_back(owner.source(), block_);
    }
}

void PooledAllocation::give_up() noexcept {
    if (block_.address == nullptr) return;
    const auto give_up = block_.owner.functions().give_up;
    if (give_up != nullptr) give_up(block_.owner.source(), block_);
}

void* PooledAllocation::host_pointer_of_source() const noexcept {
    if (block_.address == nullptr) return nullptr;
    const auto host_pointer = block_.owner.functions().host_pointer;
    return host_pointer == nullptr ? block_.address : host_pointer(block_.owner.source(), block_);
}

SourceDevice PooledAllocation::device() const noexcept {
    if (block_.address == nullptr || block_.owner.is_pool()) return {};
    const auto device = block_.owner.functions().device;
    return device == nullptr ? SourceDevice{} : device(block_.owner.source());
}

void PooledAllocation::refuse_host(const char* call) const {
    const void* const host = host_pointer();
    throw std::invalid_argument(
        std::string("tensorpool: ") + call + ": the host " +
        (host == nullptr ? "cannot access the block" : "accesses the block at another address") +
        ", which belongs to a source of kind '" + block_.owner.functions().name +
        "' (DLPack device type " + std::to_string(device().type) +
        "); expected memory of the host");
}

}  // namespace tensorpool
