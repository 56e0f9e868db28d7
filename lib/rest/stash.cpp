#include <tensorpool/stash.hpp>

#include <exception>

#include "kinds/kinds.hpp"
#include "platform/process/fork_handlers.hpp"
#include "pool/pool.hpp"
#include "rest/stash_state.hpp"

namespace tensorpool::stashing {

bool watch_forks() noexcept {
    return platform::set_fork_handlers(
        platform::ForkStage::stashes,
        [] {
            forks.fetch_add(1, std::memory_order_seq_cst);
            stash_groups->mutex.lock();
        },
        [] { stash_groups->mutex.unlock(); },
        [] {
            leave_stores_behind();
            stash_groups->mutex.unlock();
        });
}

namespace {

using detail::Counter;
using statistics::StashTotals;

/// Calls `function`; adds its time to `time`, or a failure if it throws.
template <class Function>
decltype(auto) counted(StashTotals& totals, Counter& time, Function function) {
    class Count {
    public:
        Count(StashTotals& all, Counter& nanoseconds) : totals_(all), time_(nanoseconds) {}
        ~Count() {
            if (std::uncaught_exceptions() > exceptions_) {
                ++totals_.failures;
            } else {
                time_ += platform::monotonic_clock_ns() - begin_;
            }
        }

    private:
        StashTotals& totals_;
        Counter& time_;
        const int exceptions_ = std::uncaught_exceptions();
        const std::uint64_t begin_ = platform::monotonic_clock_ns();
    };
    const Count count(totals, time);
    return function();
}

std::uint64_t budget_of(const StashOptions& options) {
    MemoryPool& pool = options.pool != nullptr ? *options.pool : store_pool();
    return kinds::charged_budget(detail::PoolAccess::of(pool).parts());
}

}  // namespace

/// The content of a Stash, which is counted in the statistics of its name.
class CountedStash {
public:
    /// Throws what the constructor of StashState does.
    CountedStash(std::span<const std::byte> bytes, const StashState::Origin& origin,
                 StashOptions options)
        : group_(StashStatistics::Kind::stashes, options.name, budget_of(options)),
          state_(counted(group_.totals(), group_.totals().stash_ns,
                         [&] { return StashState(bytes, origin, std::move(options)); })) {
        StashTotals& totals = group_.totals();
        ++totals.tensors;
        ++totals.stashes;
        if (state_.encoded().bytes_in_file() != 0) ++totals.spills;
        totals.stashed_bytes += state_.size();
        totals.compressed_bytes += state_.encoded().bytes_in_memory();
        totals.spilled_bytes += state_.encoded().bytes_in_file();
    }
    ~CountedStash() {
        StashTotals& totals = group_.totals();
        --totals.tensors;
        totals.stashed_bytes -= state_.size();
        totals.compressed_bytes -= state_.encoded().bytes_in_memory();
        totals.spilled_bytes -= state_.encoded().bytes_in_file();
    }
    CountedStash& operator=(const CountedStash&) = delete;

    /// Returns the content in a block of `pool`. Throws AllocationError and StashError.
    PooledAllocation restore(MemoryPool& pool) const {
        PooledAllocation block;
        try {
            block = restored_block(pool, state_.size(), state_.origin().alignment);
        } catch (...) {
            ++group_.totals().failures;
            throw;
        }
        decode_to(block.as<std::byte>());
        return block;
    }
    /// Does what StashState::decode_to does, and counts it as a restore.
    void decode_to(std::span<std::byte> memory) const {
        StashTotals& totals = group_.totals();
        counted(totals, totals.restore_ns, [&] { state_.decode_to(memory); });
        ++totals.restores;
    }
    const StashState& state() const noexcept { return state_; }

private:
    StashGroup group_;
    const StashState state_;
};

}  // namespace tensorpool::stashing

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
    if (state_ == nullptr) return 0;
    const stashing::EncodedBytes& encoded = state_->state().encoded();
    return encoded.bytes_in_memory() + encoded.bytes_in_file();
}

std::size_t Stash::bytes_spilled() const noexcept {
    return state_ == nullptr ? 0 : state_->state().encoded().bytes_in_file();
}

StashError::StashError(const std::string& tensor, std::size_t piece, const std::string& problem)
    : std::runtime_error(
          "tensorpool: stash '" + tensor + "': " +
          (piece == no_piece ? problem : "piece " + std::to_string(piece) + ": " + problem)),
      tensor_(tensor),
      piece_(piece) {}

}  // namespace tensorpool
