#include <tensorpool/stash.hpp>

#include "rest/counted_stash.hpp"

namespace tensorpool {
namespace {

using stashing::CountedStash;
using stashing::StashState;

StashState::Origin origin_of(const HeldBlock& block, const std::string& tensor) {
    if (block.address == nullptr) return {};
    if (!block.owner.is_pool()) {
        throw std::invalid_argument(
            "tensorpool: stash '" + tensor + "': found a block of a source of kind '" +
            block.owner.functions().name + "', expected one of a MemoryPool");
    }
    return {static_cast<MemoryPool*>(block.owner.pool()), block.owner.alignment()};
}

const CountedStash& content_of(const std::unique_ptr<CountedStash>& state, const char* call) {
    if (state == nullptr) {
        throw std::logic_error(std::string("tensorpool: ") + call +
                               ": the stash holds nothing; expected one that was neither restored "
                               "nor moved from");
    }
    return *state;
}

}  // namespace

Stash::Stash() noexcept = default;
Stash::~Stash() = default;
Stash::Stash(Stash&& other) noexcept = default;
Stash& Stash::operator=(Stash&& other) noexcept = default;

Stash::Stash(PooledAllocation&& allocation, StashOptions options) {
    const HeldBlock& block = allocation.held();
    const StashState::Origin origin = origin_of(block, options.name);
    state_ = std::make_unique<CountedStash>(
        std::span(static_cast<const std::byte*>(block.address), block.bytes), origin,
        std::move(options));
    allocation.reset();
}

Stash::Stash(std::span<const std::byte> content, StashOptions options)
    : state_(std::make_unique<CountedStash>(
          content, StashState::Origin{.pool = &get_global_memory_pool()}, std::move(options))) {}

PooledAllocation Stash::restore() {
    const CountedStash& content = content_of(state_, "restore");
    if (content.state().size() == 0) {
        state_.reset();
        return {};
    }
    return restore(*content.state().origin().pool);
}

PooledAllocation Stash::restore(MemoryPool& pool) {
    const CountedStash& content = content_of(state_, "restore");
    PooledAllocation block;
    if (content.state().size() != 0) block = content.restore(pool);
    state_.reset();
    return block;
}

void Stash::restore_to(std::span<std::byte> memory) {
    const CountedStash& content = content_of(state_, "restore_to");
    if (memory.size() != content.state().size()) {
        throw std::invalid_argument("tensorpool: stash '" + content.state().name() +
                                    "': found memory of " + std::to_string(memory.size()) +
                                    " bytes, expected " + std::to_string(content.state().size()));
    }
    content.decode_to(memory);
    state_.reset();
}

void Stash::prefetch() const noexcept {
    if (state_ != nullptr) state_->state().read_ahead();
}

const std::string& Stash::name() const noexcept {
    static const std::string none;
    return state_ == nullptr ? none : state_->state().name();
}

std::size_t Stash::size() const noexcept {
    return state_ == nullptr ? 0 : state_->state().size();
}

std::size_t Stash::bytes_at_rest() const noexcept {
    return state_ == nullptr ? 0
                             : state_->state().bytes_in_memory() + state_->state().bytes_in_file();
}

std::size_t Stash::bytes_spilled() const noexcept {
    return state_ == nullptr ? 0 : state_->state().bytes_in_file();
}

StashError::StashError(const std::string& tensor, std::size_t piece, const std::string& problem)
    : std::runtime_error(
          "tensorpool: stash '" + tensor + "': " +
          (piece == no_piece ? problem : "piece " + std::to_string(piece) + ": " + problem)),
      tensor_(tensor),
      piece_(piece) {}

}  // namespace tensorpool
