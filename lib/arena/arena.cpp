#include <tensorpool/arena.hpp>

#include "arena/arena_state.hpp"

namespace tensorpool {

using detail::ArenaState;

struct Arena::Measuring {
    ArenaOptions options;
};

namespace {

// Larger requests take the slow path. Claims that pass the end at the same time thus stay within
// the bits of an offset.
constexpr std::size_t max_quick_bytes = std::size_t{1} << 30;

// The base address of a measuring arena. Bits 47 to 55 are neither all 0 nor all 1, so no system
// maps memory there. (With five levels of page tables, Linux does if a program requests that very
// address.) The size is half of what the range of an arena may have, since all of it may be used.
constexpr std::uintptr_t nowhere = std::uintptr_t{1} << 54;
constexpr std::size_t max_measured_bytes = std::size_t{1} << 46;

ArenaOptions with_name(ArenaOptions options, const char* name) {
    if (options.name == ArenaOptions().name) options.name = name;
    return options;
}

}  // namespace

Arena::Arena(ArenaOptions options) {
    state_ =
        std::make_unique<ArenaState>(*this, std::move(options), ArenaStatistics::Kind::growing);
    const ArenaOptions& wanted = state_->options();
    arena::ArenaMemory& memory = state_->memory;
    if (!memory.reserve(wanted.max_capacity, wanted.alignment)) {
        const std::size_t bytes = wanted.max_capacity != 0 ? wanted.max_capacity : memory.limit();
        const arena::Attempt attempt{
            .refusal = {"address space", platform::available_address_space()}};
        state_->count_refusal(bytes, attempt.refusal);
        state_->fail(bytes, attempt);
    }
    set_up(memory.base());
    const std::size_t most = wanted.max_capacity != 0 ? wanted.max_capacity : SIZE_MAX;
    const std::size_t initial = std::min(wanted.initial_capacity, most);
    if (initial == 0) return;
    arena::Attempt attempt;
    while (!detail::ArenaClaims(*this).grow_to(initial, arena::no_surplus, attempt).is_met) {
        if (attempt.may_retry()) continue;
        state_->count_refusal(initial, attempt.refusal);
        state_->fail(initial, attempt);
    }
    memory.charge_later();
    end_.store(memory.end(), std::memory_order_relaxed);
}

Arena Arena::over(std::span<std::byte> buffer) {
    return over(buffer, with_name({}, "buffer"));
}

Arena Arena::over(std::span<std::byte> buffer, ArenaOptions options) {
    return {buffer, std::move(options)};
}

Arena::Arena(std::span<std::byte> buffer, ArenaOptions options) {
    state_ = std::make_unique<ArenaState>(*this, std::move(options), ArenaStatistics::Kind::buffer);
    const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
    const std::size_t skipped = base::align_up(address, state_->options().alignment) - address;
    const std::size_t bytes = buffer.size() - std::min(skipped, buffer.size());
    set_up(buffer.data() + (buffer.size() - bytes));
    platform::mark_closed(base_, bytes);
    statistics::ArenaTotals& totals = state_->totals;
    totals.reserved_bytes.store(bytes, std::memory_order_relaxed);
    totals.capacity_bytes.store(bytes, std::memory_order_relaxed);
    totals.peak_capacity_bytes.store(bytes, std::memory_order_relaxed);
    totals.limit_bytes.store(bytes, std::memory_order_relaxed);
    end_.store(bytes, std::memory_order_relaxed);
    state_->fold_record();
    state_->record_capacity();
}

Arena Arena::measuring() {
    return measuring(with_name({}, "measuring"));
}

Arena Arena::measuring(ArenaOptions options) {
    return Arena(Measuring{std::move(options)});
}

Arena::Arena(Measuring measuring) {
    state_ = std::make_unique<ArenaState>(*this, std::move(measuring.options),
                                          ArenaStatistics::Kind::measuring);
    set_up(reinterpret_cast<std::byte*>(nowhere));
    end_.store(max_measured_bytes, std::memory_order_relaxed);
}

// The state is declared last, so it is destroyed first: a fork in another thread reads the members
// beside it.
Arena::~Arena() = default;

void Arena::set_up(std::byte* base) noexcept {
    const ArenaOptions& options = state_->options();
    platform::mark_defined(this, sizeof *this);
    base_ = base;
    granule_mask_ = options.alignment - 1;
    shared_ = options.sharing == Sharing::any_thread;
    const bool is_one_threads = !shared_ && base::checks_calls(options.checks);
    const bool checked = is_one_threads || state_->padding() != 0;
    const bool quick = !checked && options.alignment <= max_quick_bytes;
    arena::arena_registry().set_quick_bytes(
        *state_, quick ? std::min(options.max_allocation, max_quick_bytes) : 0);
}

void* Arena::allocate_slow(std::size_t bytes, std::size_t alignment) {
    if (!std::has_single_bit(alignment)) {
        throw std::invalid_argument("tensorpool: arena '" + name() + "': allocate: alignment is " +
                                    std::to_string(alignment) + " B; expected a power of two");
    }
    if (bytes == 0) return nullptr;
    arena::Attempt attempt;
    void* const block = detail::ArenaClaims(*this).allocate(bytes, alignment, attempt);
    if (block == nullptr) state_->fail(bytes, attempt);
    return block;
}

void* Arena::settle_or_throw(std::uint64_t claim, std::size_t bytes) {
    arena::Attempt attempt;
    void* const block = detail::ArenaClaims(*this).settle(claim, bytes, attempt);
    if (block == nullptr) state_->fail(bytes, attempt);
    return block;
}

void* Arena::try_allocate(std::size_t bytes, std::size_t alignment) noexcept {
    if (bytes == 0 || !std::has_single_bit(alignment)) return nullptr;
    arena::Attempt attempt;
    return detail::ArenaClaims(*this).allocate(bytes, alignment, attempt);
}

std::size_t Arena::used() const noexcept {
    const std::size_t top = words_->used.load(std::memory_order_relaxed) & statistics::used_mask;
    // Pending claims lie above the end and have been granted to no thread.
    return std::min(top, end_.load(std::memory_order_relaxed));
}

std::size_t Arena::peak() const noexcept {
    return state_->peak(used());
}

std::size_t Arena::capacity() const noexcept {
    return state_->capacity();
}

std::size_t Arena::reserved() const noexcept {
    return state_->totals.reserved_bytes.load(std::memory_order_relaxed);
}

std::size_t Arena::available() const noexcept {
    const std::size_t in_use = used();
    const std::size_t end = end_.load(std::memory_order_relaxed);
    return (end == 0 ? capacity() : end) - in_use;
}

const std::string& Arena::name() const noexcept {
    return state_->options().name;
}

ArenaStatistics Arena::statistics() const noexcept {
    return statistics::statistics_of(*state_->record);
}

detail::ArenaDefaults arena::defaults_from_environment() {
    using platform::Named;
    detail::ArenaDefaults defaults;
    platform::read_bytes("TENSORPOOL_ARENA_INITIAL_CAPACITY", defaults.initial_capacity);
    platform::read_bytes("TENSORPOOL_ARENA_MAX_CAPACITY", defaults.max_capacity);
    platform::read_bytes_above_0("TENSORPOOL_ARENA_MAX_ALLOCATION", defaults.max_allocation);
    using Preset = GrowthPolicy (*)() noexcept;
    static constexpr Named<Preset> presets[] = {{"conservative", GrowthPolicy::conservative},
                                                {"doubling", GrowthPolicy::doubling},
                                                {"aggressive", GrowthPolicy::aggressive}};
    Preset preset = GrowthPolicy::conservative;
    platform::read("TENSORPOOL_ARENA_GROWTH", preset, "conservative, doubling or aggressive",
                   "conservative",
                   [](std::string_view text) { return platform::parse_choice(text, presets); });
    defaults.growth = preset();
    platform::read_bytes("TENSORPOOL_ARENA_GROWTH_STEP", defaults.growth.step);
    platform::read_number("TENSORPOOL_ARENA_GROWTH_FACTOR", defaults.growth.factor, 1024,
                          "a number from 0 to 1024");
    platform::read_number("TENSORPOOL_ARENA_GROWTH_FRACTION", defaults.growth.fraction, 1,
                          "a number from 0 to 1");
    platform::read_bytes("TENSORPOOL_ARENA_RETAIN", defaults.retain);
    return defaults;
}

// The first thread to finish decides. Threads do not wait for each other: a child forked at that
// moment would wait forever.
const detail::ArenaDefaults& detail::arena_defaults() {
    static constinit std::atomic<const ArenaDefaults*> decided = nullptr;
    const ArenaDefaults* known = decided.load(std::memory_order_acquire);
    if (known != nullptr) return *known;
    auto made = std::make_unique<ArenaDefaults>(arena::defaults_from_environment());
    const bool is_first = decided.compare_exchange_strong(
        known, made.get(), std::memory_order_acq_rel, std::memory_order_acquire);
    return is_first ? *made.release() : *known;
}

}  // namespace tensorpool

namespace tensorpool::arena {

void validate(const ArenaOptions& options) {
    const std::string owner = "arena '" + options.name + "'";
    if (!std::has_single_bit(options.alignment)) {
        throw std::invalid_argument("tensorpool: " + owner + ": alignment is " +
                                    std::to_string(options.alignment) +
                                    " B; expected a power of two");
    }
    if (options.max_allocation == 0) {
        throw std::invalid_argument("tensorpool: " + owner +
                                    ": max_allocation is 0 B; expected at least 1 B");
    }
    tensorpool::validate(options.growth, owner);
}

}  // namespace tensorpool::arena
