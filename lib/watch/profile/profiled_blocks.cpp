#include "watch/profile/profiled_blocks.hpp"

#include <tensorpool/heap_profile.hpp>

#include "platform/environment.hpp"
#include "platform/stacks/stack_memory.hpp"
#include "platform/tools/memory_probes.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool {
namespace watch {
namespace {

using base::read;
using base::write;
using statistics::Counter;
using statistics::ProfileWords;
using statistics::segment;

std::uintptr_t address_of(const void* base, std::uint32_t offset) noexcept {
    return reinterpret_cast<std::uintptr_t>(base) + offset;
}

// FNV-1a (Fowler, Noll, Vo) over words, and a last step that spreads the bits.
class Hash {
public:
    void add(std::uint64_t word) noexcept {
        hash_ = (hash_ ^ word) * 0x100000001b3;
        hash_ ^= hash_ >> 32;
    }
    std::uint64_t get() const noexcept { return hash_; }

private:
    std::uint64_t hash_ = 0xcbf29ce484222325;
};

std::uint64_t hash_of(std::span<const platform::ProgramFrame> frames) noexcept {
    Hash hash;
    for (const platform::ProgramFrame& frame : frames) {
        hash.add(frame.address);
        if (frame.python_code == nullptr) continue;
        hash.add(platform::identify_python_code(frame.python_code));
        hash.add(frame.line);
    }
    return hash.get();
}

std::uint64_t hash_of(std::string_view text) noexcept {
    Hash hash;
    for (const char character : text) hash.add(static_cast<unsigned char>(character));
    return hash.get();
}

// While this library is loaded: later the search could wait for the loader's lock in the middle of
// an allocation. A program that loads an interpreter afterwards gets native frames only.
[[maybe_unused]] const bool has_python = platform::find_python();

ProfileWords* words() noexcept {
    SegmentHeader* const header = segment().header();
    return header == nullptr ? nullptr : &header->profile;
}

// The share of use by which it exceeds the kept peak before another is kept.
constexpr std::uint64_t peak_error_divisor = 100;

std::size_t lifetime_of(std::uint64_t ns) noexcept {
    const auto bits = static_cast<std::size_t>(std::bit_width(ns / 1000));
    return std::min((bits + 1) / 2, SiteRecord::lifetime_count - 1);
}

// Exact, and never less than what is in use. Pools without a record in the segment set no limit.
std::uint64_t bytes_held_by_pools(SegmentHeader& header) noexcept {
    const statistics::Region& region = header.region<statistics::PoolRecord>();
    if (read(region.left_out) != 0) return UINT64_MAX;
    std::int64_t held = 0;
    const auto* const pools = records_in<statistics::PoolRecord>(header);
    for (std::uint64_t i = 1; i < read(region.used); ++i) {
        if (read(pools[i].id) == 0) continue;
        // Below 0 in the child of a fork, see PoolTotals::hold.
        held +=
            std::max<std::int64_t>(static_cast<std::int64_t>(read(pools[i].totals.held_bytes)), 0);
    }
    return static_cast<std::uint64_t>(held);
}

bool exceeds(std::uint64_t bytes, std::uint64_t peak) noexcept {
    return bytes > peak + peak / peak_error_divisor;
}

constexpr std::uint64_t usual = std::uint64_t{512} << 10;
constexpr std::uint64_t least_of_environment = 1024;
constexpr std::uint64_t largest = std::uint64_t{1} << 40;
constexpr std::uint64_t unknown = UINT64_MAX;
// Relaxed: threads may use the old value for some samples.
constinit std::atomic<std::uint64_t> interval = unknown;

// Does not use std::string: a pool that makes its first sample may serve malloc. Programs that did
// not ask for samples take none: threads that end soon cost many times as much with them.
std::uint64_t interval_of_environment() noexcept {
    const char* const text = platform::environment_variable("TENSORPOOL_PROFILE");
    if (text == nullptr || *text == '\0') return 0;
    const std::string_view wanted = text;
    if (wanted == "off") return 0;
    if (wanted == "on") return usual;
    if (wanted == "all") return 1;
    const auto bytes = platform::parse_bytes(text);
    if (bytes && *bytes >= least_of_environment) return std::min<std::uint64_t>(*bytes, largest);
    platform::say(
        "TENSORPOOL_PROFILE is '%.60s'; expected on, off, all, or the mean distance between "
        "samples from 1KiB on; used instead: 512KiB",
        text);
    return usual;
}

}  // namespace

// From the innermost frame outwards, up to the first difference. A stack may begin before that: a
// coroutine's stack lies where a larger one was.
bool KnownStacks::Known::is_on_stack() const noexcept {
    platform::StackMemory memory(reinterpret_cast<std::uintptr_t>(base));
    for (std::uint32_t i = 0; i != count; ++i) {
        std::uintptr_t word = 0;
        if (!memory.read(address_of(base, offsets[i]), word) || word != returns[i]) return false;
    }
    return true;
}

// A stack with a frame whose return address lies elsewhere, such as that of a signal handler, is
// not noted.
void KnownStacks::add(const void* base, std::uint64_t python, const platform::StackBuffers& stack,
                      SiteRecord& site) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(base);
    const std::size_t set = set_of(base);
    Known& known = known_[set][next_[set]];
    known.base = nullptr;
    known.count = 0;
    platform::StackMemory memory(begin);
    for (std::size_t i = 0; i != stack.native_count; ++i) {
        const auto slot = reinterpret_cast<std::uintptr_t>(stack.slots[i]);
        if (slot == 0) return;
        if (slot < begin) continue;
        const std::uintptr_t offset = slot - begin;
        if (offset > UINT32_MAX || slot % sizeof(std::uintptr_t) != 0) return;
        known.offsets[known.count] = static_cast<std::uint32_t>(offset);
        known.returns[known.count] = stack.addresses[i] + 1;
        std::uintptr_t word = 0;
        if (!memory.read(slot, word) || word != known.returns[known.count]) return;
        ++known.count;
    }
    if (known.count == 0) return;
    known.base = base;
    known.python = python;
    known.site = &site;
    next_[set] = static_cast<std::uint8_t>((next_[set] + 1) % ways);
}

SiteRecord* SiteTable::find_or_add(std::span<const platform::ProgramFrame> frames) noexcept {
    frames = frames.first(std::min(frames.size(), SiteRecord::max_frames));
    const std::uint64_t hash = hash_of(frames);
    auto& known = addresses_.find(hash);
    std::uint32_t number = known.number;
    if (number == 0) [[unlikely]] {
        number = find_by_name(frames);
        if (number == 0) return nullptr;
        addresses_.set(known, {hash, number});
    }
    return records_in<SiteRecord>(*segment().header()) + number - 1;
}

std::uint32_t SiteTable::find_by_name(std::span<const platform::ProgramFrame> frames) noexcept {
    const SegmentHeader* header = segment().header();
    const auto used = [&] {
        return header->region<SiteRecord>().used.load(std::memory_order_relaxed);
    };
    if (header == nullptr || used() == 0) {
        if (segment().append<SiteRecord>([](SiteRecord&) {}) == 0) return 0;
        header = segment().header();
    }
    Hash hash;
    for (std::size_t i = 0; i != frames.size(); ++i) {
        words_[i] = platform::word_of<SiteRecord::offset_bits, FrameNameRecord::bytes - 1>(
            frames[i], [this](std::string_view name) { return number_of_name(name); });
        hash.add(words_[i]);
    }
    auto& known = sites_.find(hash.get());
    if (known.number != 0) return known.number;
    if (used() == count_of<SiteRecord>) return other;
    const std::uint32_t number = segment().append<SiteRecord>([&](SiteRecord& site) {
        for (std::size_t i = 0; i != frames.size(); ++i) {
            site.frames[i].store(words_[i], std::memory_order_relaxed);
        }
        site.frame_count.store(frames.size(), std::memory_order_relaxed);
    });
    if (number == 0) return other;
    sites_.set(known, {hash.get(), number});
    return number;
}

std::uint64_t SiteTable::number_of_name(std::string_view name) noexcept {
    const std::uint64_t hash = hash_of(name);
    auto& known = names_.find(hash);
    if (known.number == 0) {
        const std::uint32_t number = segment().append<FrameNameRecord>(
            [&](FrameNameRecord& record) { statistics::store_text(record.words, name); });
        if (number == 0) return 0;
        names_.set(known, {hash, number});
    }
    return known.number;
}

void ProfiledBlock::on_free(std::size_t usable_bytes) noexcept {
    BlockMark* const earlier = covered;
    profiled_blocks().end(*this);
    if (earlier != nullptr) earlier->on_free(usable_bytes);
}

ProfiledBlock* ProfiledBlocks::begin(const void* address, std::size_t bytes, double mean,
                                     base::BlockMark* covered) noexcept {
    const double share = -std::expm1(-static_cast<double>(bytes) / mean);
    const std::lock_guard guard(mutex_);
    SiteRecord* const site = site_of_caller(__builtin_frame_address(0));
    ProfiledBlock* const block = site == nullptr ? nullptr : free_.take();
    if (block == nullptr) {
        if (ProfileWords* const profile = words()) detail::add(profile->lost_samples, 1);
        return nullptr;
    }
    block->site = site;
    block->address = address;
    block->bytes = static_cast<std::uint64_t>(static_cast<double>(bytes) / share);
    block->blocks = static_cast<std::uint64_t>(std::llround(SiteRecord::block_units / share));
    block->begin_ns = platform::monotonic_clock_ns();
    block->covered = covered;
    detail::add(site->samples, 1);
    detail::add(site->allocated_bytes, block->bytes);
    detail::add(site->allocated_blocks, block->blocks);
    detail::add(words()->live_bytes, block->bytes);
    detail::add(words()->distances, static_cast<std::uint64_t>(std::llround(mean)));
    platform::probe_allocation(address, bytes, block->bytes);
    return block;
}

// The buffers are members: the thread may have a small stack.
SiteRecord* ProfiledBlocks::site_of_caller(const void* frame) noexcept {
    const std::uint64_t python = platform::hash_python_stack(platform::StackBuffers::max_python);
    if (SiteRecord* const site = known_.find(frame, python)) return site;
    const std::size_t count =
        platform::capture_program_stack(frames_, SiteRecord::max_frames, buffers_);
    SiteRecord* const site = sites_.find_or_add({frames_, count});
    if (site != nullptr) known_.add(frame, python, buffers_, *site);
    return site;
}

void ProfiledBlocks::end(ProfiledBlock& block) noexcept {
    const std::lock_guard guard(mutex_);
    platform::probe_free(block.address);
    ProfileWords& profile = *words();
    if (exceeds(read(profile.live_bytes), read(profile.peak_bytes))) keep_peak();
    write(profile.live_bytes, read(profile.live_bytes) - block.bytes);
    const std::uint64_t now = platform::monotonic_clock_ns();
    const std::uint64_t lifetime = now - std::min(now, block.begin_ns);
    detail::add(block.site->lifetimes[lifetime_of(lifetime)], block.blocks);
    detail::add_release(block.site->freed_bytes, block.bytes);
    detail::add_release(block.site->freed_blocks, block.blocks);
    free_.give_back(block);
}

// Use is about to fall from its peak. As long as it rises, readers take what is in use now.
void ProfiledBlocks::keep_peak() noexcept {
    SegmentHeader& header = *segment().header();
    const std::uint64_t estimate = read(header.profile.live_bytes);
    const std::uint64_t bytes = std::min(estimate, bytes_held_by_pools(header));
    if (!exceeds(bytes, read(header.profile.peak_bytes))) return;
    const double part = static_cast<double>(bytes) / static_cast<double>(estimate);
    const auto reduced = [part](const Counter& allocated, const Counter& freed) {
        const auto live = static_cast<double>(read(allocated) - read(freed));
        return static_cast<std::uint64_t>(live * part);
    };
    write(header.profile.peak_bytes, bytes);
    write(header.profile.peak_unix_ns, platform::wall_clock_ns());
    const std::uint64_t count = read(header.region<SiteRecord>().used);
    for (SiteRecord& site : std::span(records_in<SiteRecord>(header), count)) {
        write(site.peak_bytes, reduced(site.allocated_bytes, site.freed_bytes));
        write(site.peak_blocks, reduced(site.allocated_blocks, site.freed_blocks));
    }
}

void ProfiledBlocks::note_end_of_pool(std::uint64_t requested_bytes) noexcept {
    const std::lock_guard guard(mutex_);
    if (ProfileWords* const profile = words()) {
        detail::add(profile->requested_bytes_of_ended_pools, requested_bytes);
    }
}

void ProfiledBlocks::count_lost() noexcept {
    const std::lock_guard guard(mutex_);
    if (ProfileWords* const profile = words()) detail::add(profile->lost_samples, 1);
}

std::uint64_t profile_interval() noexcept {
    std::uint64_t bytes = interval.load(std::memory_order_relaxed);
    if (bytes != unknown) [[likely]]
        return bytes;
    const std::uint64_t wanted = interval_of_environment();
    // Another thread may have set it in the meantime.
    return interval.compare_exchange_strong(bytes, wanted, std::memory_order_relaxed) ? wanted
                                                                                      : bytes;
}

void show_profile_interval() noexcept {
    statistics::SegmentHeader* const header = statistics::segment().header();
    if (header == nullptr) return;
    std::uint64_t shown = 0;
    do {
        shown = profile_interval();
        // Between the stores of the interval by `set_profile_interval` and here: of two threads,
        // one sees the store of the other.
        std::atomic_thread_fence(std::memory_order_seq_cst);
        header->profile.interval.store(shown, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
    } while (profile_interval() != shown);
}

}  // namespace watch

std::size_t profile_interval() noexcept {
    return static_cast<std::size_t>(watch::profile_interval());
}

void set_profile_interval(std::size_t bytes) noexcept {
    bytes = std::min(bytes, watch::largest);
    watch::interval.store(bytes, std::memory_order_relaxed);
    watch::show_profile_interval();
}

}  // namespace tensorpool
