#include "rest/counted_stash.hpp"

#include <exception>

#include "kinds/kinds.hpp"
#include "pool/pool.hpp"

namespace tensorpool::stashing {
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

CountedStash::CountedStash(std::span<const std::byte> bytes, const StashState::Origin& origin,
                           StashOptions options)
    : group_(StashStatistics::Kind::stashes, options.name, budget_of(options)),
      state_(counted(group_.totals(), group_.totals().stash_ns,
                     [&] { return StashState(bytes, origin, std::move(options)); })) {
    StashTotals& totals = group_.totals();
    ++totals.tensors;
    ++totals.stashes;
    if (state_.bytes_in_file() != 0) ++totals.spills;
    totals.stashed_bytes += state_.size();
    totals.compressed_bytes += state_.bytes_in_memory();
    totals.spilled_bytes += state_.bytes_in_file();
}

CountedStash::~CountedStash() {
    StashTotals& totals = group_.totals();
    --totals.tensors;
    totals.stashed_bytes -= state_.size();
    totals.compressed_bytes -= state_.bytes_in_memory();
    totals.spilled_bytes -= state_.bytes_in_file();
}

PooledAllocation CountedStash::restore(MemoryPool& pool) const {
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

void CountedStash::decode_to(std::span<std::byte> memory) const {
    StashTotals& totals = group_.totals();
    counted(totals, totals.restore_ns, [&] { state_.decode_to(memory); });
    ++totals.restores;
}

}  // namespace tensorpool::stashing
