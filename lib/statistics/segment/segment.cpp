#include "statistics/segment/segment.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <type_traits>
#include <utility>

#include "base/alignment.hpp"
#include "base/never_destroyed.hpp"
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

/// The number of used records of each kind, including the timeline.
using Used = std::array<std::size_t, kind_count>;

/// The records that are used in a new segment.
constexpr Used used_at_first = [] {
    Used used{};
    std::size_t next = 0;
    for_each_kind([&](const auto& kind) { used[next++] = kind.first == First::other ? 1 : 0; });
    return used;
}();

Used used_of(const SegmentHeader& header) noexcept {
    Used used;
    for (std::size_t i = 0; i < kind_count; ++i) used[i] = read(header.regions[i].used);
    used[index_of<EntryRecord>] = std::min<std::size_t>(read(header.entries), entry_count);
    return used;
}

bool has_pages_of(const Used& used, std::byte* base) noexcept {
    bool has = has_pages(base, header_bytes);
    for_each_kind([&]<class Record>(const RecordKind<Record>&) {
        const std::size_t count = used[index_of<Record>];
        has = has && (count == 0 || has_pages(base + offset_of<Record>, count * sizeof(Record)));
    });
    return has;
}

void describe_layout(SegmentHeader& header) noexcept {
    write(header.version, segment_version);
    write(header.bytes, segment_bytes);
    write(header.header_bytes, header_bytes);
    for_each_kind([&]<class Record>(const RecordKind<Record>& kind) {
        Region& region = header.region<Record>();
        write(region.offset, offset_of<Record>);
        write(region.record_bytes, sizeof(Record));
        write(region.record_count, kind.count);
        write(region.used, used_at_first[index_of<Record>]);
        if constexpr (requires(Record record) { record.name.words; }) {
            if (kind.first == First::other) store_name(records_in<Record>(header)->name, "other");
        }
    });
    store_name(header.library_version, TENSORPOOL_VERSION);
}

void describe_process(SegmentHeader& header) noexcept {
    const platform::ProcessIdentity process = platform::identify_process();
    write(header.process, process.number);
    write(header.process_space, process.name_space);
    write(header.start_ticks, process.start_ticks);
    store_name(header.process_name, process.name);
}

/// Copies word by word, because other threads continue to count.
void copy_words(Counter* to, const Counter* from, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) write(to[i], read(from[i]));
}

/// Copies the counters of frees of all records before any others, because other threads continue to
/// count. In the copy, no block is freed that is not also allocated.
template <class Record>
void copy_counters(Record* to, const Record* from, std::size_t count) noexcept {
    for (const bool frees : {true, false}) {
        for (std::size_t index = 0; index < count; ++index) {
            for (std::size_t word = 0; word < words_of<Record>; ++word) {
                if (Record::counts_frees(word) != frees) continue;
                // Acquire pairs with `add_release`, as in a reader.
                write(as_words(to[index])[word],
                      as_words(from[index])[word].load(std::memory_order_acquire));
            }
        }
    }
}

template <class Record>
void copy_records(SegmentHeader& to, const SegmentHeader& from) noexcept {
    const std::size_t used = read(from.region<Record>().used);  // 0 for the timeline
    auto* const records = records_in<Record>(to);
    if constexpr (requires { Record::counts_frees(0); }) {
        copy_counters(records, records_in<Record>(from), used);
    } else {
        copy_words(as_words(*records), as_words(*records_in<Record>(from)),
                   used * words_of<Record>);
    }
}

/// Copies the used part of the segment at `from` to the zeros at `to`. The magic is not copied;
/// readers wait for it.
void copy_used(std::byte* to, const SegmentHeader& from) noexcept {
    auto& copy = *reinterpret_cast<SegmentHeader*>(to);
    copy_words(as_words(copy) + 1, as_words(from) + 1, words_of<SegmentHeader> - 1);
    // The number from the copy, because entries continue to be written.
    const std::uint64_t head = read(copy.entries);
    copy_entries({records_in<EntryRecord>(from), std::min<std::size_t>(head, entry_count)},
                 {records_in<EntryRecord>(copy), entry_count}, head);
    // Before the records of their devices: bytes in use by a stream are part of the capacity of its
    // device.
    copy_records<DeviceStreamRecord>(copy, from);
    for_each_kind([&]<class Record>(const RecordKind<Record>&) {
        if constexpr (!std::is_same_v<Record, DeviceStreamRecord>) copy_records<Record>(copy, from);
    });
}

/// Writes the used part of the segment with its own values, so that its pages become private to the
/// process.
void write_used(SegmentHeader& header) noexcept {
    const auto rewrite = [](Counter* words, std::size_t bytes) {
        copy_words(words, words, bytes / sizeof(Counter));
    };
    rewrite(as_words(header), header_bytes);
    Used used = used_of(header);
    used[index_of<EntryRecord>] = entry_count;  // the parent continues to write entries
    for_each_kind([&]<class Record>(const RecordKind<Record>&) {
        rewrite(as_words(*records_in<Record>(header)), used[index_of<Record>] * sizeof(Record));
    });
}

}  // namespace

bool has_pages(void* begin, std::size_t bytes) noexcept {
    const std::size_t unit = platform::page_bytes();
    auto* const first =
        static_cast<std::byte*>(begin) - reinterpret_cast<std::uintptr_t>(begin) % unit;
    const auto end = static_cast<std::byte*>(begin) + bytes;
    return platform::get_shared_pages(first,
                                      base::align_up(static_cast<std::size_t>(end - first), unit));
}

Segment& segment() noexcept {
    return the_segment.get();
}

// REQUIRES: the mutex is held.
SegmentHeader* Segment::made() noexcept {
    if (SegmentHeader* const known = base_.load(std::memory_order_relaxed)) return known;
    platform::SharedMemory memory = memory_.get();
    if (memory.file >= 0 && !has_pages_of(used_at_first, static_cast<std::byte*>(memory.address))) {
        memory = memory_.get_private_instead(memory);
    }
    if (memory.address == nullptr) return nullptr;
    memory_.use(memory);
    auto* const header = new (memory.address) SegmentHeader;
    describe_layout(*header);
    describe_process(*header);
    write(header->made_ns, platform::monotonic_clock_ns());
    write(header->made_unix_ns, platform::wall_clock_ns());
    show_left_out(*header);
    header->magic.store(segment_magic, std::memory_order_release);
    base_.store(header, std::memory_order_release);
    return header;
}

ScopeRecord* Segment::find_or_add_scope(std::string_view name) noexcept {
    const std::lock_guard guard(mutex_);
    SegmentHeader* const header = made();
    if (header == nullptr) return nullptr;
    auto* const scopes = records_in<ScopeRecord>(*header);
    Name wanted{};
    store_name(wanted, name);
    const std::size_t used = read(header->region<ScopeRecord>().used);
    for (std::size_t i = 1; i < used; ++i) {
        const auto same = [](const Counter& a, const Counter& b) { return read(a) == read(b); };
        if (std::equal(std::begin(wanted.words), std::end(wanted.words),
                       std::begin(scopes[i].name.words), same)) {
            return scopes + i;
        }
    }
    if (used == count_of<ScopeRecord> || !has_pages(scopes + used, sizeof(ScopeRecord))) {
        ++left_out_[index_of<ScopeRecord>];
        show_left_out(*header);
        return scopes;
    }
    const StructureChange change(*header);
    store_name(scopes[used].name, name);
    write(scopes[used].id, next_id());
    write(header->region<ScopeRecord>().used, used + 1);
    return scopes + used;
}

void Segment::count_left_out(std::size_t kind, bool more) noexcept {
    const std::lock_guard guard(mutex_);
    left_out_[kind] += more ? 1 : ~std::uint64_t{0};
    if (SegmentHeader* const header = this->header()) show_left_out(*header);
}

void Segment::show_left_out(SegmentHeader& header) noexcept {
    for (std::size_t kind = 0; kind < kind_count; ++kind) {
        write(header.regions[kind].left_out, left_out_[kind]);
    }
}

// Entries are written without a lock. The pages of the first pass through the ring are therefore
// requested as it reaches them.
bool Segment::has_page_of_next_entry() noexcept {
    constexpr std::size_t entries_a_page = 4096 / sizeof(EntryRecord);
    static_assert(offset_of<EntryRecord> % 4096 == 0);
    const std::uint64_t written = read(header()->entries);
    return written >= entry_count || written % entries_a_page != 0 ||
           has_pages(timeline() + written, sizeof(EntryRecord));
}

EntryRecord* Segment::timeline() noexcept {
    SegmentHeader* const header = this->header();
    return header == nullptr ? nullptr : records_in<EntryRecord>(*header);
}

// Private memory is separated by the fork itself. If no copy can be allocated, the child copies
// what it sees of the parent's segment.
void Segment::before_fork() noexcept {
    mutex_.lock();
    forking_thread_ = platform::current_thread_id();
    if (memory_.used().file < 0) return;
    copy_ = platform::map(segment_bytes, platform::page_bytes());
    if (copy_ == nullptr) return;
    auto* const copy = static_cast<std::byte*>(copy_);
    (void)has_pages_of(used_of(*header()), copy);  // cheaper than a fault for each page
    copy_used(copy, *header());
}

void Segment::after_fork_in_parent() noexcept {
    if (copy_ != nullptr) platform::unmap(copy_, segment_bytes);
    copy_ = nullptr;
    mutex_.unlock();
}

// The child has counted nothing yet, and must never count in the memory of its parent.
void Segment::after_fork_in_child() noexcept {
    if (memory_.used().file >= 0) part_from_parent();
    if (SegmentHeader* const header = this->header()) {
        describe_process(*header);
        renumber_thread(*header);
        header->magic.store(segment_magic, std::memory_order_release);
    }
    mutex_.unlock();
}

// The only thread of the child has a new number.
void Segment::renumber_thread(SegmentHeader& header) noexcept {
    const std::uint64_t now = platform::current_thread_id();
    const Used used = used_of(header);
    for_each_kind([&]<class Record>(const RecordKind<Record>&) {
        if constexpr (requires(Record record) { record.thread; } &&
                      !std::is_same_v<Record, EntryRecord>) {
            auto* const records = records_in<Record>(header);
            for (std::size_t i = 0; i < used[index_of<Record>]; ++i) {
                if (read(records[i].thread) == forking_thread_) write(records[i].thread, now);
            }
        }
    });
}

void Segment::part_from_parent() noexcept {
    SegmentHeader* const header = this->header();
    const auto& from = *static_cast<const SegmentHeader*>(copy_ != nullptr ? copy_ : header);
    platform::SharedMemory memory = memory_.get();
    if (memory.file >= 0 && !has_pages_of(used_of(from), static_cast<std::byte*>(memory.address))) {
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
    if (!parted)
        platform::fail("fork: the child's statistics cannot be separated from its parent's");
    // If there was no copy, the parent may have been in the middle of a change.
    if (read(header->epoch) % 2 != 0) write(header->epoch, read(header->epoch) + 1);
    if (copy_ != nullptr) platform::unmap(std::exchange(copy_, nullptr), segment_bytes);
    platform::close_shared_memory(memory_.used());
    memory.address = header;
    memory_.use(memory);
}

// In a child that was made without the handlers of a fork. No lock is taken.
void Segment::part_without_locks() noexcept {
    if (memory_.used().file >= 0) (void)part_in_place();
}

// Used if no address space is left for a copy.
bool Segment::part_in_place() noexcept {
    if (!platform::make_private(header(), memory_.used(), segment_bytes)) return false;
    write_used(*header());
    return true;
}

}  // namespace tensorpool::statistics
