#include <tensorpool/stashed_map.hpp>

#include "rest/map/map_state.hpp"

namespace tensorpool {

using stashing::Access;
using stashing::MapEntry;
using stashing::MapState;

StashedTensor::~StashedTensor() {
    if (entry_ != nullptr) map_->unpin(*entry_);
}

// A pinned tensor stays where it is, so no lock is needed.
std::span<std::byte> StashedTensor::bytes() const noexcept {
    if (entry_ == nullptr) return {};
    return {static_cast<std::byte*>(entry_->tensor.get()), entry_->bytes};
}

StashedMapBase::StashedMapBase(StashedMapOptions&& options, KeyEqual equal)
    : state_(std::make_shared<MapState>(std::move(options), equal)) {}

StashedMapBase::~StashedMapBase() {
    state_->close();
}

MemoryPool& StashedMapBase::pool() const noexcept {
    return state_->pool();
}

StashedMapStatistics StashedMapBase::statistics() const noexcept {
    return state_->statistics();
}

std::string StashedMapBase::last_failure() const {
    return state_->last_failure();
}

void StashedMapBase::put(std::size_t hash, KeyPointer key, PooledAllocation&& tensor) {
    if (tensor && !tensor.held().owner.is_pool()) {
        throw std::invalid_argument("tensorpool: stashed map '" + state_->name() +
                                    "': found a block of a source of kind '" +
                                    tensor.held().owner.functions().name +
                                    "', expected one of a MemoryPool");
    }
    state_->make_bucket();
    state_->put(std::make_shared<MapEntry>(hash, std::move(key), std::move(tensor)));
}

StashedTensor StashedMapBase::get(std::size_t hash, const void* key) {
    std::shared_ptr<MapEntry> entry = state_->get(hash, key, Access::write);
    if (entry == nullptr) return {};
    return {state_, std::move(entry)};
}

StashedTensorView StashedMapBase::read(std::size_t hash, const void* key) {
    std::shared_ptr<MapEntry> entry = state_->get(hash, key, Access::read);
    if (entry == nullptr) return {};
    return StashedTensorView({state_, std::move(entry)});
}

bool StashedMapBase::erase(std::size_t hash, const void* key) noexcept {
    return state_->erase(hash, key);
}

bool StashedMapBase::contains(std::size_t hash, const void* key) const noexcept {
    return state_->contains(hash, key);
}

void StashedMapBase::prefetch(std::size_t hash, const void* key) noexcept {
    state_->prefetch(hash, key);
}

}  // namespace tensorpool
