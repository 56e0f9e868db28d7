#include "statistics/segment/segment.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/alignment.hpp"
#include "base/never_destroyed.hpp"
#include "platform/fail.hpp"
#include "platform/platform.hpp"
#include "statistics/segment/folded_words.hpp"
#include "statistics/timeline/timeline_ring.hpp"

namespace tensorpool::statistics {
namespace {

constinit base::NeverDestroyed<Segment> the_segment;

std::uint64_t read(const Counter& counter) noexcept {
    return counter.load(std::memory_order_relaxed);
}
void write(Counter& counter, std::uint64_t value) noexcept {
    counter.store(value, std::memory_order_relaxed);
}

/// Zeros all words of a record. A reader may look on: it sees by the epoch that it must look again.
template <class Record>
void clear(Record& record) noexcept {
    static_assert(sizeof(Record) % sizeof(Counter) == 0);
    auto* const words = reinterpret_cast<Counter*>(&record);
    for (std::size_t i = 0; i < sizeof(Record) / sizeof(Counter); ++i) write(words[i], 0);
}

/// While it lives, structure changes. Under the segment's mutex.
class Change {
public:
    explicit Change(SegmentHeader& header) noexcept : epoch_(header.epoch) {
        write(epoch_, read(epoch_) + 1);
        // Pairs with the reader's acquire fence: who saw a change sees that one was under way.
        std::atomic_thread_fence(std::memory_order_release);
    }
    ~Change() { epoch_.store(read(epoch_) + 1, std::memory_order_release); }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

private:
    Counter& epoch_;
};

template <class Record>
Record* records(SegmentHeader& header, std::size_t offset) noexcept {
    return reinterpret_cast<Record*>(reinterpret_cast<std::byte*>(&header) + offset);
}

/// Whether the system has the pages of it, which it then gives: a page that it has not would end
/// the process at its first touch.
bool has_pages(void* begin, std::size_t bytes) noexcept {
    const std::size_t unit = platform::page_bytes();
    auto* const first =
        static_cast<std::byte*>(begin) - reinterpret_cast<std::uintptr_t>(begin) % unit;
    const auto end = static_cast<std::byte*>(begin) + bytes;
    return platform::get_shared_pages(first,
                                      base::align_up(static_cast<std::size_t>(end - first), unit));
}

/// How much of a segment is in use.
struct Used {
    std::size_t entries = 0;
    std::size_t scopes = 1;
    std::size_t pools = 1;
    std::size_t arenas = 1;
    std::size_t devices = 1;
    std::size_t device_streams = 1;
    std::size_t planned = 0;
    std::size_t slots = 0;

    static Used of(const SegmentHeader& header) noexcept {
        return {.entries = std::min<std::size_t>(read(header.entries), entry_count),
                .scopes = read(header.scopes.used),
                .pools = read(header.pools.used),
                .arenas = read(header.arenas.used),
                .devices = read(header.devices.used),
                .device_streams = read(header.device_streams.used),
                .planned = read(header.planned.used),
                .slots = read(header.slots.used)};
    }
    bool has_pages_at(std::byte* base) const noexcept {
        return has_pages(base, header_bytes + entries * sizeof(EntryRecord)) &&
               has_pages(base + scopes_offset, scopes * sizeof(ScopeRecord)) &&
               has_pages(base + pools_offset, pools * sizeof(PoolRecord)) &&
               has_pages(base + arenas_offset, arenas * sizeof(ArenaRecord)) &&
               has_pages(base + devices_offset, devices * sizeof(DeviceRecord)) &&
               has_pages(base + device_streams_offset,
                         device_streams * sizeof(DeviceStreamRecord)) &&
               (planned == 0 ||
                has_pages(base + planned_offset, planned * sizeof(PlannedRecord))) &&
               (slots == 0 || has_pages(base + slots_offset, slots * sizeof(SlotRecord)));
    }
};

/// The lowest free place but the first, which is `other`'s; nullptr when there is none.
template <class Record>
Record* find_place(Record* places, Region& region) noexcept {
    const std::size_t used = std::max<std::size_t>(read(region.used), 1);
    for (std::size_t i = 1; i < used; ++i) {
        if (read(places[i].id) == 0) return places + i;
    }
    if (used == read(region.places) || !has_pages(places + used, sizeof(Record))) return nullptr;
    write(region.used, used + 1);
    return places + used;
}

void describe(Region& region, std::size_t offset, std::size_t record_bytes,
              std::size_t places) noexcept {
    write(region.offset, offset);
    write(region.record_bytes, record_bytes);
    write(region.places, places);
}

void describe_layout(SegmentHeader& header) noexcept {
    write(header.version, segment_version);
    write(header.bytes, segment_bytes);
    write(header.header_bytes, header_bytes);
    describe(header.timeline, timeline_offset, sizeof(EntryRecord), entry_count);
    describe(header.scopes, scopes_offset, sizeof(ScopeRecord), scope_count);
    describe(header.pools, pools_offset, sizeof(PoolRecord), pool_count);
    describe(header.arenas, arenas_offset, sizeof(ArenaRecord), arena_count);
    describe(header.devices, devices_offset, sizeof(DeviceRecord), device_count);
    describe(header.device_streams, device_streams_offset, sizeof(DeviceStreamRecord),
             device_stream_count);
    describe(header.planned, planned_offset, sizeof(PlannedRecord), planned_count);
    describe(header.slots, slots_offset, sizeof(SlotRecord), slot_count);
    store_name(header.library_version, TENSORPOOL_VERSION);
}

void describe_process(SegmentHeader& header) noexcept {
    const platform::ProcessIdentity process = platform::identify_process();
    write(header.process, process.number);
    write(header.process_space, process.name_space);
    write(header.start_ticks, process.start_ticks);
    store_name(header.process_name, process.name);
}

/// Whether a word of a slot, of a device stream or of a planned arena counts what came back, or
/// what is part of another word in the same way.
template <class Record>
constexpr bool counts_frees(std::size_t word) noexcept;

template <>
constexpr bool counts_frees<SlotRecord>(std::size_t word) noexcept {
    using detail::BucketCounters;
    using detail::LargeCounters;
    const std::size_t at = word * sizeof(Counter) % sizeof(BucketCounters);
    return word < words_of<detail::BucketCounters> * detail::bucket_count
               ? at == offsetof(BucketCounters, deallocations) ||
                     at == offsetof(BucketCounters, returned)
               : word < words_of<detail::ThreadCounters> &&
                     (at == offsetof(LargeCounters, deallocations) ||
                      at == offsetof(LargeCounters, deallocated_bytes));
}

template <>
constexpr bool counts_frees<DeviceStreamRecord>(std::size_t word) noexcept {
    const std::size_t at = word * sizeof(Counter);
    return at == offsetof(DeviceStreamCounters, deallocations) ||
           at == offsetof(DeviceStreamCounters, deallocated_bytes) ||
           at == offsetof(DeviceStreamCounters, deallocated_requested_bytes);
}

template <>
constexpr bool counts_frees<PlannedRecord>(std::size_t word) noexcept {
    const std::size_t at = word * sizeof(Counter);
    const auto is = [at](std::size_t counter) {
        return at == offsetof(PlannedRecord, totals) + counter;
    };
    return is(offsetof(PlannedTotals, freed_bytes)) ||
           is(offsetof(PlannedTotals, pool_freed_bytes)) ||
           is(offsetof(PlannedTotals, freed_elsewhere_bytes)) ||
           is(offsetof(PlannedTotals, pool_freed_elsewhere_bytes)) ||
           is(offsetof(PlannedTotals, too_large)) || is(offsetof(PlannedTotals, out_of_order)) ||
           is(offsetof(PlannedTotals, unknown)) || is(offsetof(PlannedTotals, still_in_use));
}

/// Frees of all of them before anything else, for other threads go on counting: the copy never has
/// a block as freed that it has not as allocated.
template <class Record>
void copy_counters(Record* to, const Record* from, std::size_t count) noexcept {
    for (const bool frees : {true, false}) {
        for (std::size_t place = 0; place < count; ++place) {
            for (std::size_t word = 0; word < words_of<Record>; ++word) {
                if (counts_frees<Record>(word) != frees) continue;
                // Acquire pairs with `add_release`, as in a reader.
                write(as_words(to[place])[word],
                      as_words(from[place])[word].load(std::memory_order_acquire));
            }
        }
    }
}

/// Copies what is in use of the segment at `from` to the zeros at `to`, all but the magic, without
/// which readers wait.
void copy_used(std::byte* to, const SegmentHeader& from) noexcept {
    const auto* const begin = reinterpret_cast<const std::byte*>(&from);
    const auto copy = [&](std::size_t offset, std::size_t bytes) {
        // Other threads go on counting meanwhile, a word at a time.
        const auto* const words = reinterpret_cast<const Counter*>(begin + offset);
        auto* const copies = reinterpret_cast<Counter*>(to + offset);
        for (std::size_t i = 0; i < bytes / sizeof(Counter); ++i) write(copies[i], read(words[i]));
    };
    copy(sizeof(Counter), sizeof(SegmentHeader) - sizeof(Counter));
    // The number in the copy: entries go on being written.
    const auto* const entries = reinterpret_cast<const EntryRecord*>(begin + timeline_offset);
    const std::uint64_t head = read(reinterpret_cast<const SegmentHeader*>(to)->entries);
    copy_entries({entries, std::min<std::size_t>(head, entry_count)},
                 {reinterpret_cast<EntryRecord*>(to + timeline_offset), entry_count}, head);
    copy(scopes_offset, read(from.scopes.used) * sizeof(ScopeRecord));
    copy(pools_offset, read(from.pools.used) * sizeof(PoolRecord));
    copy(arenas_offset, read(from.arenas.used) * sizeof(ArenaRecord));
    copy_counters(reinterpret_cast<DeviceStreamRecord*>(to + device_streams_offset),
                  reinterpret_cast<const DeviceStreamRecord*>(begin + device_streams_offset),
                  read(from.device_streams.used));
    copy(devices_offset, read(from.devices.used) * sizeof(DeviceRecord));
    copy_counters(reinterpret_cast<PlannedRecord*>(to + planned_offset),
                  reinterpret_cast<const PlannedRecord*>(begin + planned_offset),
                  read(from.planned.used));
    copy_counters(reinterpret_cast<SlotRecord*>(to + slots_offset),
                  reinterpret_cast<const SlotRecord*>(begin + slots_offset), read(from.slots.used));
}

/// Writes what is in use as it is, so that its pages become the process's own.
void write_used(SegmentHeader& header) noexcept {
    const auto rewrite = [&](std::size_t offset, std::size_t bytes) {
        auto* const words = records<Counter>(header, offset);
        for (std::size_t i = 0; i < bytes / sizeof(Counter); ++i) write(words[i], read(words[i]));
    };
    rewrite(0, scopes_offset);
    rewrite(scopes_offset, read(header.scopes.used) * sizeof(ScopeRecord));
    rewrite(pools_offset, read(header.pools.used) * sizeof(PoolRecord));
    rewrite(arenas_offset, read(header.arenas.used) * sizeof(ArenaRecord));
    rewrite(devices_offset, read(header.devices.used) * sizeof(DeviceRecord));
    rewrite(device_streams_offset, read(header.device_streams.used) * sizeof(DeviceStreamRecord));
    rewrite(planned_offset, read(header.planned.used) * sizeof(PlannedRecord));
    rewrite(slots_offset, read(header.slots.used) * sizeof(SlotRecord));
}

}  // namespace

Segment& segment() noexcept {
    return the_segment.get();
}

// The mutex is held.
SegmentHeader* Segment::made() noexcept {
    if (SegmentHeader* const known = base_.load(std::memory_order_relaxed)) return known;
    platform::SharedMemory memory = memory_.get();
    if (memory.file >= 0 && !Used{}.has_pages_at(static_cast<std::byte*>(memory.address))) {
        memory = memory_.get_private_instead(memory);
    }
    if (memory.address == nullptr) return nullptr;
    memory_.use(memory);
    auto* const header = new (memory.address) SegmentHeader;
    describe_layout(*header);
    describe_process(*header);
    write(header->made_ns, platform::monotonic_clock_ns());
    write(header->made_unix_ns, platform::wall_clock_ns());
    store_name(records<PoolRecord>(*header, pools_offset)->name, "other");
    store_name(records<ArenaRecord>(*header, arenas_offset)->name, "other");
    store_name(records<ScopeRecord>(*header, scopes_offset)->name, "other");
    store_name(records<DeviceRecord>(*header, devices_offset)->name, "other");
    for (Region* const region : {&header->pools, &header->arenas, &header->scopes, &header->devices,
                                 &header->device_streams}) {
        write(region->used, 1);
    }
    show_left_out(*header);
    header->magic.store(segment_magic, std::memory_order_release);
    base_.store(header, std::memory_order_release);
    return header;
}

PoolRecord* Segment::add_pool(std::string_view name, std::uint64_t limit_bytes) noexcept {
    const std::lock_guard guard(mutex_);
    SegmentHeader* const header = made();
    if (header == nullptr) return nullptr;
    const Change change(*header);
    PoolRecord* const pool = find_place(records<PoolRecord>(*header, pools_offset), header->pools);
    if (pool == nullptr) return nullptr;
    store_name(pool->name, name);
    write(pool->limit_bytes, limit_bytes);
    write(pool->id, next_id());
    return pool;
}

void Segment::remove_pool(PoolRecord& pool) noexcept {
    const std::lock_guard guard(mutex_);
    const Change change(*header());
    clear(pool);
}

ArenaRecord* Segment::add_arena(std::string_view name, std::uint64_t kind,
                                std::uint64_t thread) noexcept {
    const std::lock_guard guard(mutex_);
    SegmentHeader* const header = made();
    if (header == nullptr) return nullptr;
    const Change change(*header);
    ArenaRecord* const arena =
        find_place(records<ArenaRecord>(*header, arenas_offset), header->arenas);
    if (arena == nullptr) return nullptr;
    store_name(arena->name, name);
    write(arena->kind, kind);
    write(arena->thread, thread);
    write(arena->id, next_id());
    return arena;
}

void Segment::remove_arena(ArenaRecord& arena) noexcept {
    const std::lock_guard guard(mutex_);
    const Change change(*header());
    clear(arena);
}

DeviceRecord* Segment::add_device(std::string_view name, std::uint64_t kind,
                                  std::string_view device) noexcept {
    const std::lock_guard guard(mutex_);
    SegmentHeader* const header = made();
    if (header == nullptr) return nullptr;
    const Change change(*header);
    DeviceRecord* const record =
        find_place(records<DeviceRecord>(*header, devices_offset), header->devices);
    if (record == nullptr) return nullptr;
    store_name(record->name, name);
    store_text(record->device, device);
    write(record->kind, kind);
    write(record->id, next_id());
    return record;
}

void Segment::remove_device(DeviceRecord& device) noexcept {
    const std::lock_guard guard(mutex_);
    const Change change(*header());
    clear(device);
}

DeviceStreamRecord* Segment::add_device_stream(const DeviceRecord& device,
                                               std::uint64_t stream) noexcept {
    const std::lock_guard guard(mutex_);
    SegmentHeader* const header = this->header();
    if (header == nullptr) return nullptr;
    const Change change(*header);
    DeviceStreamRecord* const record = find_place(
        records<DeviceStreamRecord>(*header, device_streams_offset), header->device_streams);
    if (record == nullptr) return nullptr;
    write(record->device, read(device.id));
    write(record->stream, stream);
    write(record->id, next_id());
    return record;
}

void Segment::remove_device_stream(DeviceStreamRecord& stream) noexcept {
    const std::lock_guard guard(mutex_);
    const Change change(*header());
    clear(stream);
}

PlannedRecord* Segment::add_planned(std::string_view name) noexcept {
    const std::lock_guard guard(mutex_);
    SegmentHeader* const header = made();
    if (header == nullptr) return nullptr;
    const Change change(*header);
    PlannedRecord* const planned =
        find_place(records<PlannedRecord>(*header, planned_offset), header->planned);
    if (planned == nullptr) return nullptr;
    // Here, so that programs without any have no page of them.
    store_name(records<PlannedRecord>(*header, planned_offset)->name, "other");
    store_name(planned->name, name);
    write(planned->id, next_id());
    return planned;
}

void Segment::remove_planned(PlannedRecord& planned) noexcept {
    const std::lock_guard guard(mutex_);
    const Change change(*header());
    clear(planned);
}

SlotRecord* Segment::add_slot(const PoolRecord& pool) noexcept {
    const std::lock_guard guard(mutex_);
    SegmentHeader* const header = made();
    if (header == nullptr) return nullptr;
    auto* const slots = records<SlotRecord>(*header, slots_offset);
    const Change change(*header);
    std::size_t place = first_free_slot_;
    if (place != none) {
        first_free_slot_ = read(slots[place].next) - 1;
        write(slots[place].next, 0);
    } else {
        place = read(header->slots.used);
        if (place == slot_count || !has_pages(slots + place, sizeof(SlotRecord))) return nullptr;
        write(header->slots.used, place + 1);
    }
    write(slots[place].pool, read(pool.id));
    return slots + place;
}

void Segment::remove_slot(SlotRecord& slot) noexcept {
    const std::lock_guard guard(mutex_);
    const Change change(*header());
    clear(slot);
    write(slot.next, first_free_slot_ + 1);
    first_free_slot_ =
        static_cast<std::size_t>(&slot - records<SlotRecord>(*header(), slots_offset));
}

ScopeRecord* Segment::find_or_add_scope(std::string_view name) noexcept {
    const std::lock_guard guard(mutex_);
    SegmentHeader* const header = made();
    if (header == nullptr) return nullptr;
    auto* const scopes = records<ScopeRecord>(*header, scopes_offset);
    Name wanted{};
    store_name(wanted, name);
    const std::size_t used = read(header->scopes.used);
    for (std::size_t i = 1; i < used; ++i) {
        const auto same = [](const Counter& a, const Counter& b) { return read(a) == read(b); };
        if (std::equal(std::begin(wanted.words), std::end(wanted.words),
                       std::begin(scopes[i].name.words), same)) {
            return scopes + i;
        }
    }
    if (used == scope_count || !has_pages(scopes + used, sizeof(ScopeRecord))) {
        ++left_out_[static_cast<unsigned>(Kind::scopes)];
        show_left_out(*header);
        return scopes;
    }
    const Change change(*header);
    store_name(scopes[used].name, name);
    write(scopes[used].id, next_id());
    write(header->scopes.used, used + 1);
    return scopes + used;
}

void Segment::count_left_out(Kind kind, bool more) noexcept {
    const std::lock_guard guard(mutex_);
    left_out_[static_cast<unsigned>(kind)] += more ? 1 : ~std::uint64_t{0};
    if (SegmentHeader* const header = this->header()) show_left_out(*header);
}

void Segment::show_left_out(SegmentHeader& header) noexcept {
    Region* const regions[] = {&header.pools,  &header.arenas,  &header.slots,
                               &header.scopes, &header.devices, &header.device_streams,
                               &header.planned};
    static_assert(std::size(regions) == std::size(decltype(left_out_){}));
    for (std::size_t kind = 0; kind < std::size(regions); ++kind) {
        write(regions[kind]->left_out, left_out_[kind]);
    }
}

PoolRecord* Segment::other_pool() noexcept {
    SegmentHeader* const header = this->header();
    return header == nullptr ? nullptr : records<PoolRecord>(*header, pools_offset);
}

ArenaRecord* Segment::other_arena() noexcept {
    SegmentHeader* const header = this->header();
    return header == nullptr ? nullptr : records<ArenaRecord>(*header, arenas_offset);
}

DeviceRecord* Segment::other_device() noexcept {
    SegmentHeader* const header = this->header();
    return header == nullptr ? nullptr : records<DeviceRecord>(*header, devices_offset);
}

PlannedRecord* Segment::other_planned() noexcept {
    SegmentHeader* const header = this->header();
    if (header == nullptr || read(header->planned.used) == 0) return nullptr;
    return records<PlannedRecord>(*header, planned_offset);
}

// Entries are written without a lock, so the pages of the first turn are got as it comes to them.
bool Segment::has_page_of_next_entry() noexcept {
    constexpr std::size_t entries_a_page = 4096 / sizeof(EntryRecord);
    static_assert(timeline_offset % 4096 == 0);
    const std::uint64_t written = read(header()->entries);
    return written >= entry_count || written % entries_a_page != 0 ||
           has_pages(timeline() + written, sizeof(EntryRecord));
}

EntryRecord* Segment::timeline() noexcept {
    SegmentHeader* const header = this->header();
    return header == nullptr ? nullptr : records<EntryRecord>(*header, timeline_offset);
}

// Private memory is parted by the fork itself. Where the copy is refused, the child makes it of
// what it sees of the parent's segment.
void Segment::before_fork() noexcept {
    mutex_.lock();
    forking_thread_ = platform::current_thread_id();
    if (memory_.used().file < 0) return;
    copy_ = platform::map(segment_bytes, platform::page_bytes());
    if (copy_ != nullptr) copy_used(static_cast<std::byte*>(copy_), *header());
}

void Segment::after_fork_in_parent() noexcept {
    if (copy_ != nullptr) platform::unmap(copy_, segment_bytes);
    copy_ = nullptr;
    mutex_.unlock();
}

// The child has counted nothing yet, and must never count in the parent's memory.
void Segment::after_fork_in_child() noexcept {
    if (memory_.used().file >= 0) part_from_parent();
    if (SegmentHeader* const header = this->header()) {
        describe_process(*header);
        renumber_thread(*header);
        header->magic.store(segment_magic, std::memory_order_release);
    }
    mutex_.unlock();
}

// The one thread that the child has is another by its number.
void Segment::renumber_thread(SegmentHeader& header) noexcept {
    const std::uint64_t now = platform::current_thread_id();
    const auto renumber = [&](Counter& thread) {
        if (read(thread) == forking_thread_) write(thread, now);
    };
    auto* const slots = records<SlotRecord>(header, slots_offset);
    for (std::size_t i = 0; i < read(header.slots.used); ++i) renumber(slots[i].thread);
    auto* const arenas = records<ArenaRecord>(header, arenas_offset);
    for (std::size_t i = 0; i < read(header.arenas.used); ++i) renumber(arenas[i].thread);
}

void Segment::part_from_parent() noexcept {
    SegmentHeader* const header = this->header();
    const auto& from = *static_cast<const SegmentHeader*>(copy_ != nullptr ? copy_ : header);
    platform::SharedMemory memory = memory_.get();
    if (memory.file >= 0 && !Used::of(from).has_pages_at(static_cast<std::byte*>(memory.address))) {
        memory = memory_.get_private_instead(memory);
    }
    if (memory.address == nullptr) {
        memory.address = std::exchange(copy_, nullptr);
    } else {
        copy_used(static_cast<std::byte*>(memory.address), from);
    }
    const bool parted = memory.address != nullptr
                            ? platform::replace_mapping(header, memory.address, segment_bytes)
                            : part_in_place();
    if (!parted) platform::fail("fork: the child's figures cannot be parted from its parent's");
    // The parent may have been in the middle of a change where it left no copy.
    if (read(header->epoch) % 2 != 0) write(header->epoch, read(header->epoch) + 1);
    if (copy_ != nullptr) platform::unmap(std::exchange(copy_, nullptr), segment_bytes);
    platform::close_shared_memory(memory_.used());
    memory.address = header;
    memory_.use(memory);
}

// Where no address space is left to copy to.
bool Segment::part_in_place() noexcept {
    if (!platform::make_private(header(), memory_.used(), segment_bytes)) return false;
    write_used(*header());
    return true;
}

}  // namespace tensorpool::statistics
