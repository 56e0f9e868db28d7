#include "stress/worker.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "models/pattern.hpp"

namespace tensorpool::stress {
namespace {

using testing::Pattern;

constexpr std::size_t max_held = 32;
// Every fourth block has one of these sizes, so that threads use the same lists.
constexpr std::size_t favourites[] = {64, 1000, 66'000};

}  // namespace

Worker::~Worker() {
    for (unsigned pool = 0; pool < pool_count; ++pool) round_.pools[pool]->add(totals_[pool]);
}

void Worker::work(unsigned calls, std::vector<HoldingPointer>& held) {
    for (unsigned call = 0; call < calls; ++call) {
        const std::size_t choice = below(100);
        if (held.empty() || (choice < 45 && held.size() < max_held)) {
            allocate(held);
        } else if (choice < 75) {
            deallocate(take(held));
        } else if (choice < 85) {
            reallocate(*held[below(held.size())]);
        } else {
            hand_over(held);
        }
    }
}

void Worker::crowd(unsigned calls) {
    PoolUnderStress& under_stress = *round_.pools[0];
    testing::Subject& subject = *under_stress.subject;
    for (unsigned call = 0; call < calls; ++call) {
        const std::size_t bytes = favourites[call / 256 % std::size(favourites)];
        auto* const p = static_cast<char*>(subject.allocate(bytes));
        const std::uint64_t mark = next_mark_++;
        std::memcpy(p, &mark, sizeof mark);
        std::memcpy(p + bytes - sizeof mark, &mark, sizeof mark);
        if (std::memcmp(p, p + bytes - sizeof mark, sizeof mark) != 0 ||
            std::memcmp(p, &mark, sizeof mark) != 0) {
            found("a block of %zu B at %p has two holders", bytes, static_cast<void*>(p));
        }
        subject.deallocate(p, bytes);
        ++totals_[0].allocations;
        ++totals_[0].deallocations;
        totals_[0].requested += bytes;
    }
}

void Worker::allocate(std::vector<HoldingPointer>& held) {
    auto made = std::make_unique<Holding>();
    made->pool = static_cast<unsigned>(below(pool_count));
    made->mark = next_mark_++;
    PoolUnderStress& under_stress = *round_.pools[made->pool];
    made->requested = size(under_stress.largest_bytes);
    made->p = call(under_stress, *made);
    Totals& totals = totals_[made->pool];
    if (made->p == nullptr) {
        if (under_stress.options.max_capacity == 0)
            found("a request of %zu B failed", made->requested);
        ++totals.failures;
        return after_failure(made->pool, held);
    }
    ++totals.allocations;
    totals.requested += made->requested;
    begin(*made);
    Pattern(made->mark).write(made->p, made->requested);
    held.push_back(std::move(made));
}

// Allocates in one of several ways. Returns nullptr if the request failed.
void* Worker::call(PoolUnderStress& under_stress, Holding& wanted) {
    testing::Subject& subject = *under_stress.subject;
    try {
        switch (below(8)) {
            case 0:
                wanted.alignment = std::size_t{1} << below(15);
                return subject.allocate(wanted.requested, wanted.alignment);
            case 1: {
                void* const zeros = subject.allocate_zeroed(wanted.requested, 1);
                const std::size_t at = testing::first_not_zero(zeros, wanted.requested);
                if (at != wanted.requested)
                    found("byte %zu of %zu is not zero", at, wanted.requested);
                return zeros;
            }
            case 2:
                return under_stress.pool.try_allocate(wanted.requested);
            default:
                return subject.allocate(wanted.requested);
        }
    } catch (const AllocationError&) {
        return nullptr;
    }
}

// Frees half of the blocks held of that pool, because only freed blocks make room.
void Worker::after_failure(unsigned pool, std::vector<HoldingPointer>& held) {
    bool free_this = true;
    for (HoldingPointer& holding : held) {
        if (holding->pool == pool && std::exchange(free_this, !free_this)) {
            deallocate(std::move(holding));
        }
    }
    std::erase(held, nullptr);
}

void Worker::deallocate(HoldingPointer holding) {
    verify(*holding);
    end(*holding);
    ++totals_[holding->pool].deallocations;
    testing::Subject& subject = *round_.pools[holding->pool]->subject;
    const bool aligned = holding->alignment > 64;
    switch (below(aligned ? 2 : 4)) {
        case 0:
            return subject.deallocate(holding->p);
        case 1:
            return subject.deallocate(holding->p, holding->requested,
                                      std::max<std::size_t>(holding->alignment, 64));
        case 2:
            return subject.deallocate(holding->p, holding->requested);
        default:
            return subject.deallocate(holding->p, holding->usable);
    }
}

void Worker::reallocate(Holding& holding) {
    if (holding.alignment > 64) return;
    PoolUnderStress& under_stress = *round_.pools[holding.pool];
    const std::size_t bytes = size(under_stress.largest_bytes);
    verify(holding);
    const bool has_pages = holding.requested > detail::largest_block_bytes;
    const std::size_t usable =
        has_pages ? under_stress.pool.usable_size(holding.p) : detail::largest_block_bytes;
    end(holding);
    void* moved = nullptr;
    try {
        moved = under_stress.subject->reallocate(holding.p, holding.requested, bytes);
    } catch (const AllocationError&) {
        if (under_stress.options.max_capacity == 0) found("a request of %zu B failed", bytes);
        ++totals_[holding.pool].failures;
        return begin(holding);
    }
    const std::size_t kept = std::min(bytes, holding.requested);
    const std::size_t same = Pattern(holding.mark).first_difference(moved, kept, holding.requested);
    if (same != kept) found("reallocate kept %zu B of %zu", same, kept);
    if (moved != holding.p) {
        ++totals_[holding.pool].deallocations;
        ++totals_[holding.pool].allocations;
        totals_[holding.pool].requested += bytes;
    } else if (bytes > usable) {
        totals_[holding.pool].requested += bytes - usable;
    }
    holding.p = moved;
    holding.requested = bytes;
    begin(holding);
    Pattern(holding.mark).write(moved, bytes);
}

void Worker::hand_over(std::vector<HoldingPointer>& held) {
    HoldingPointer other = round_.exchange.swap(below(Exchange::cells), take(held));
    if (other == nullptr) return;
    verify(*other);
    held.push_back(std::move(other));
}

void Worker::verify(const Holding& holding) const {
    const std::size_t same =
        Pattern(holding.mark).first_difference(holding.p, holding.requested, holding.requested);
    if (same == holding.requested) return;
    found("pool '%s': byte %zu of %zu at %p has changed",
          round_.pools[holding.pool]->options.name.c_str(), same, holding.requested, holding.p);
}

// Done rarely: the query takes locks, which order threads and could hide missing synchronization.
void Worker::begin(Holding& holding) {
    holding.usable = holding.requested;
    if (round_.map != nullptr || below(64) == 0) {
        holding.usable = round_.pools[holding.pool]->pool.usable_size(holding.p);
        if (holding.usable < holding.requested) {
            found("a request of %zu B returned a block of %zu B", holding.requested,
                  holding.usable);
        }
    }
    if (round_.map != nullptr) round_.map->insert(holding.p, holding.usable);
}

void Worker::end(const Holding& holding) const {
    if (round_.map != nullptr) round_.map->erase(holding.p);
}

// Returns a size from 1 to `most`; each doubling is equally likely.
std::size_t Worker::size(std::size_t most) {
    if (below(4) == 0) return favourites[below(std::size(favourites))];
    std::uniform_real_distribution<double> exponent(0.0, std::log2(static_cast<double>(most)));
    return static_cast<std::size_t>(std::exp2(exponent(random_)));
}

HoldingPointer Worker::take(std::vector<HoldingPointer>& held) {
    std::swap(held[below(held.size())], held.back());
    HoldingPointer taken = std::move(held.back());
    held.pop_back();
    return taken;
}

}  // namespace tensorpool::stress
